"""How a collection is stored: asked for when it is made, and told of where it is otherwise."""

from __future__ import annotations

from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from qdrant_client import models
from qdrant_http import Server

from syncer.errors import ExitCode
from syncer.target import Catalog, Creation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of three rows."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    return tmp_path


CREATION: dict[str, object] = {
    "target.shard_number": 2,
    "target.replication_factor": 3,
    "target.write_consistency_factor": 2,
    "target.vectors_on_disk": True,
    "target.payload_on_disk": False,
    "target.hnsw_m": 8,
    "target.hnsw_ef_construct": 64,
    "target.quantization": "scalar",
}


def test_a_collection_is_made_as_the_settings_ask(server: Server, folder: Path) -> None:
    assert wire.once(wire.settings(folder, server.url, **CREATION))[0] == ExitCode.OK
    with wire.anywhere_else(server.url) as client:
        config = client.get_collection("memory").config
    params = config.params
    assert (params.shard_number, params.replication_factor) == (2, 3)
    assert params.write_consistency_factor == 2
    assert params.on_disk_payload is False
    assert isinstance(params.vectors, dict)
    assert params.vectors["hash-8"].on_disk is True
    assert (config.hnsw_config.m, config.hnsw_config.ef_construct) == (8, 64)
    assert isinstance(config.quantization_config, models.ScalarQuantization)


def test_a_collection_that_is_stored_otherwise_is_told_of_and_used(
    server: Server, folder: Path
) -> None:
    assert wire.once(wire.settings(folder, server.url))[0] == ExitCode.OK
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new'")
    code, told = wire.once(wire.settings(folder, server.url, **CREATION))
    assert code == ExitCode.OK
    assert [line.partition("ask: ")[2] for line in told.warnings] == [
        "target.shard_number = 2, the collection has 1",
        "target.replication_factor = 3, the collection has 1",
        "target.write_consistency_factor = 2, the collection has 1",
        "target.vectors_on_disk = true, the collection has false",
        "target.payload_on_disk = false, the collection has true",
        "target.hnsw_m = 8, the collection has 16",
        "target.hnsw_ef_construct = 64, the collection has 100",
        "target.quantization = scalar, the collection has none",
    ]


@pytest.mark.parametrize("kind", ["scalar", "binary"])
def test_what_was_asked_for_is_no_difference(server: Server, kind: str) -> None:
    creation = Creation(quantization=kind, vectors_on_disk=False, hnsw_m=0)  # type: ignore[arg-type]
    with wire.fresh(server.url, creation=creation) as target:
        assert Catalog(target.connection).differences(target.generation, wire.RECIPE) == []


def test_local_mode_has_none_of_it_and_says_nothing(folder: Path) -> None:
    settings = memory.settings_for(folder, **CREATION)
    for content in ("one", "new"):
        memory.execute(folder / "memory.db", "UPDATE memory_events SET content = ?", [content])
        code, told = wire.once(settings)
        assert (code, told.warnings) == (ExitCode.OK, [])
