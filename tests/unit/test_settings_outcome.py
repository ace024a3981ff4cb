"""Settings: their digests, their reference, the example, and what loading them costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from settings_loading import KEY, given, problems

from syncer.settings import Settings, digest, load, mapping_digest, write_example
from syncer.settings.reference import table
from syncer.settings.sections import ENTRIES, FIELDS, SECTIONS

OTHER: dict[str, object] = {
    "source.database": "/data/other.db",
    "source.table": "notes",
    "source.key": ["id", "part"],
    "source.content": "title",
    "source.metadata": ["agent"],
    "source.where": "agent = 'a'",
    "source.expires_at": "until",
    "source.deleted": "gone",
    "source.changes": "append_only",
    "source.updated_at": "at",
    "source.look_back": 1.0,
    "source.state": "/state.db",
    "source.busy_timeout": 1.0,
    "target.collection": "other",
    "target.path": "/other",
    "source.repair_triggers": False,
    "source.invalid_utf8": "quarantine",
    "source.json_columns": ["metadata"],
    "source.joined": [{"name": "tags", "table": "t", "key": ["m"], "value": "tag"}],
    "source.max_content_bytes": 2048,
    "target.api_key": KEY,
    "target.allow_insecure_key": True,
    "target.url": "http://localhost:6333",
    "target.grpc": True,
    "target.timeout": 1.0,
    "target.batch_points": 1,
    "target.batch_bytes": 65536,
    "target.document_key": "text",
    "target.metadata_key": "meta",
    "target.preserve_foreign_payload": True,
    "target.vector": "v",
    "target.payload_indexes": [],
    "target.grpc_port": 1,
    "target.ca_file": "/ca.pem",
    "target.client_cert_file": "/client.pem",
    "target.allow_old_server": True,
    "target.shard_number": 2,
    "target.replication_factor": 2,
    "target.write_consistency_factor": 2,
    "target.vectors_on_disk": True,
    "target.payload_on_disk": True,
    "target.hnsw_m": 8,
    "target.hnsw_ef_construct": 64,
    "target.quantization": "scalar",
    "target.lock_wait": 1.0,
    "target.keep_generations": 2,
    "target.keep_old": 1.0,
    "target.check_interval": 1.0,
    "target.retry_budget": 1.0,
    "embed.provider": "hash",
    "embed.model": "other",
    "embed.model_path": "/model",
    "embed.cache_dir": "/cache",
    "embed.threads": 1,
    "embed.token_budget": 64,
    "embed.devices": ["CUDAExecutionProvider"],
    "embed.batch_timeout": 1.0,
    "embed.chunk_tokens": 8,
    "embed.chunk_overlap": 1,
    "embed.passage_prefix": "p",
    "embed.query_prefix": "q",
    "embed.dimension": 2,
    "embed.url": "http://localhost:1/v1",
    "embed.api_key": KEY,
    "embed.allow_insecure_key": True,
    "embed.concurrency": 1,
    "embed.batch_items": 1,
    "embed.timeout": 1.0,
    "embed.retry_budget": 1.0,
    "embed.tokenizer": "/tokenizer.json",
    "sparse.enabled": False,
    "sparse.language": "german",
    "sparse.k": 1.0,
    "sparse.b": 0.5,
    "sync.window_rows": 1,
    "sync.window_bytes": 65536,
    "sync.max_deletes": 1,
    "sync.max_delete_share": 1.0,
    "daemon.interval": 5.0,
    "daemon.cron": "* * * * *",
    "daemon.timezone": "Europe/Berlin",
    "daemon.wake": False,
    "daemon.verify_interval": 60.0,
    "daemon.verify_cron": "0 3 * * *",
    "daemon.repair": True,
    "daemon.prune_interval": 60.0,
    "daemon.on_recipe_change": "rebuild",
    "daemon.shutdown_timeout": 5.0,
    "log.format": "json",
    "log.level": "debug",
    "metrics.listen": "[::1]:1",
    "metrics.port_in_use": "warn",
    "metrics.textfile": "/syncer.prom",
    "metrics.unhealthy_failures": 1,
    "metrics.unhealthy_seconds": 1.0,
}
ROWS_AND_TEXTS = {
    *("source.table", "source.key", "source.content", "source.metadata", "source.where"),
    *("source.max_content_bytes", "source.invalid_utf8", "source.changes", "source.updated_at"),
    *("source.json_columns", "source.joined"),
    *("source.expires_at", "source.deleted", "target.document_key", "target.metadata_key"),
}
TARGET_AND_VECTORS = {
    *("source.look_back", "source.state"),
    *("source.database", "target.collection", "target.path", "target.url", "target.vector"),
    *("embed.provider", "embed.model", "embed.model_path", "embed.url"),
    *("embed.chunk_tokens", "embed.chunk_overlap"),
    *("embed.passage_prefix", "embed.query_prefix", "embed.dimension"),
    *("sparse.enabled", "sparse.language", "sparse.k", "sparse.b"),
}


def with_other(key: str) -> Settings:
    """Return the defaults but for one setting."""
    return given(**{key.replace(".", "__"): OTHER[key]})


def test_every_setting_is_looked_at_below() -> None:
    with_another = {"target.api_key_file", "embed.api_key_file", "target.client_key_file"}
    assert {*FIELDS} - {*OTHER} == with_another


@pytest.mark.parametrize("key", OTHER)
def test_a_digest_changes_with_what_it_is_about_and_with_nothing_else(key: str) -> None:
    settings, default = with_other(key), given()
    assert settings != default
    changed = digest(settings) != digest(default)
    mapping_changed = mapping_digest(settings) != mapping_digest(default)
    assert changed == (key in ROWS_AND_TEXTS | TARGET_AND_VECTORS)
    assert mapping_changed == (key in ROWS_AND_TEXTS)


def test_a_digest_is_the_same_however_a_path_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    plain = given(source__database=tmp_path / "m.db")
    for detour in (tmp_path / "link" / "m.db", tmp_path / "link" / ".." / tmp_path.name / "m.db"):
        assert digest(given(source__database=detour)) == digest(plain)


def test_a_digest_is_16_hex_digits_and_stays_what_it_was() -> None:
    settings = given(target__url="http://localhost:6333")
    assert (digest(settings), mapping_digest(settings)) == ("97931e8ac56a5cd4", "561fdfe1063af7a3")


def test_the_order_of_metadata_columns_decides_nothing() -> None:
    first, second = given(source__metadata=["a", "b"]), given(source__metadata=["b", "a"])
    assert mapping_digest(first) == mapping_digest(second)


def test_settings_are_frozen() -> None:
    settings = given()
    with pytest.raises(ValidationError):
        settings.source.table = "other"


@pytest.mark.parametrize("section", [*SECTIONS, *ENTRIES])
def test_the_reference_in_the_docs_lists_every_setting(section: str) -> None:
    docs = Path(__file__).parents[2] / "docs" / "settings.md"
    lines = docs.read_text("utf-8").splitlines()
    assert [row for row in table(section).splitlines() if row not in lines] == []


def test_the_example_loads_as_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "syncer.toml"
    file.write_text(write_example())
    assert load(file, environ={}) == given(source__database=tmp_path / "memory.db")


def test_what_the_example_comments_out_are_settings_that_exist(tmp_path: Path) -> None:
    lines = write_example().replace("\n# ", "\n").splitlines()
    text = "\n".join(line for line in lines if " = " in line or line.startswith("["))
    (tmp_path / "qdrant.key").write_text(KEY)
    (line,) = problems(text, tmp_path)
    assert "excludes target.path" in line


def test_loading_settings_is_cheap() -> None:
    code = (
        "import sys, syncer.settings as s\n"
        "s.digest(s.load(None, environ={}, options={'source.database': 'm.db'}))\n"
        "print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    heavy = {"pydantic_settings", "asyncio", "qdrant_client", "fastembed", "numpy", "httpx"}
    assert heavy.isdisjoint(run.stdout.split())
