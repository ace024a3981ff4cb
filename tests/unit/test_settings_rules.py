"""Settings: the rules that single values keep, and what follows from others."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_loading import KEY, given, refusal

from syncer.settings import digest, load
from syncer.settings.base import CANONICAL_DEFAULTS


@pytest.mark.rule("SR-03")
@pytest.mark.parametrize(
    "uri",
    [
        "file:/data/m.db?immutable=1",
        "file:m.db?mode=ro&nolock=1",
        "m.db?immutable=1",
        "FILE:m.db?IMMUTABLE=true",
    ],
)
def test_a_database_that_would_hide_committed_rows_is_refused(uri: str) -> None:
    line = refusal(source__database=uri)
    assert "rows that are still in the -wal file would be missed" in line


@pytest.mark.parametrize("uri", ["file:m.db", "sqlite:///m.db", ":memory:", "", "a\0b"])
def test_a_database_is_the_path_of_a_file(uri: str) -> None:
    assert "must" in refusal(source__database=uri)


def test_the_stamped_mode_needs_a_change_column_of_the_table() -> None:
    line = refusal(source__changes="updated_at", source__table="notes")
    assert line.startswith("source.updated_at: must name the change column")
    chosen = given(source__changes="updated_at", source__table="notes", source__updated_at="at")
    assert chosen.source.updated_at == "at"
    assert given(source__changes="updated_at").source.updated_at == "updated_at"
    assert given(source__changes="append_only", source__table="notes").source.updated_at is None


def test_the_state_is_no_part_of_a_database_that_is_only_read(tmp_path: Path) -> None:
    database = tmp_path / "m.db"
    options = {"source__database": str(database), "source__changes": "append_only"}
    assert given(**options).source.state == tmp_path / "m.db.syncer.db"
    assert given(source__database=str(database)).source.state is None
    (tmp_path / "link.db").symlink_to(database)
    for path in (database, tmp_path / "link.db"):
        assert "must not be source.database" in refusal(**options, source__state=str(path))


def test_where_the_database_s_folder_cannot_be_written_the_state_goes_home() -> None:
    options = {"source.database": "/nowhere/m.db", "source.changes": "append_only"}
    for environ, home in (
        ({"XDG_STATE_HOME": "/var/states"}, "/var/states"),
        ({"HOME": "/home/me"}, "/home/me/.local/state"),
        ({"HOME": "/home/me", "XDG_STATE_HOME": "relative"}, "/home/me/.local/state"),
    ):
        state = load(None, environ=environ, options=options).source.state
        assert state is not None
        assert str(state.parent) == f"{home}/syncer"
        assert state.name.startswith("m.db-")
        other = load(
            None, environ=environ, options={**options, "source.database": "/nowhere-else/m.db"}
        )
        assert other.source.state != state


def test_only_the_canonical_table_has_defaults_for_columns() -> None:
    canonical, other = given().source, given(source__table="notes").source
    assert canonical.metadata == CANONICAL_DEFAULTS["metadata"]
    assert canonical.expires_at == "expires_at"
    assert canonical.deleted == "superseded_by IS NOT NULL OR deleted_by IS NOT NULL"
    assert (other.metadata, other.expires_at, other.deleted) == ((), None, None)
    assert given(source__expires_at="", source__deleted="").source.expires_at is None


def test_texts_are_utf_8_and_names_of_files_need_not_be() -> None:
    assert "must be UTF-8" in refusal(source__table="\udc80")
    assert "must not contain a NUL" in refusal(source__where="a\0b")
    settings = given(source__database="/data/\udc80.db")
    assert settings.source.database == Path("/data/\udc80.db")
    assert digest(settings) != digest(given())


def test_columns_are_named_once_and_by_a_name() -> None:
    assert "twice" in refusal(source__key=["a", "a"])
    assert "at least one" in refusal(source__key=[])
    assert "empty" in refusal(source__metadata=["a", " "])
    assert given(source__key=["a", "b"]).source.key == ("a", "b")


@pytest.mark.parametrize("name", ["a--b", "a/b", "", ".", "a-", "-a", "a b", "ü", "a" * 129])
def test_a_collection_s_name_leaves_room_for_generations(name: str) -> None:
    assert "must" in refusal(target__collection=name)


def test_payload_keys_are_plain_and_apart() -> None:
    assert "must not be target.document_key" in refusal(target__metadata_key="document")
    assert "keeps its books" in refusal(target__document_key="_sync")
    assert "must be letters" in refusal(target__metadata_key="a.b")


def test_the_default_indexes_follow_the_metadata_key() -> None:
    assert given().target.payload_indexes == ("metadata.agent", "metadata.scope")
    assert given(target__metadata_key="m").target.payload_indexes == ("m.agent", "m.scope")
    chosen = given(target__metadata_key="m", target__payload_indexes=["metadata.agent"])
    assert chosen.target.payload_indexes == ("metadata.agent",)


def test_a_server_and_a_folder_exclude_each_other() -> None:
    line = refusal(target__url="http://localhost:6333", target__path="/q")
    assert "excludes target.path" in line
    assert given(target__url="http://localhost:6333", target__path="").target.path is None


@pytest.mark.parametrize("url", ["localhost:6333", "http://", "http://h:0", "http://h:70000"])
def test_an_address_is_complete(url: str) -> None:
    assert "must be like https://host:6333" in refusal(target__url=url)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://qdrant.example:6333", True),
        ("http://localhost:6333", True),
        ("http://127.0.0.1:6333", True),
        ("http://[::1]:6333/prefix", True),
        ("http://qdrant.example:6333", False),
        ("HTTP://10.0.0.1", False),
        ("http://127.0.0.1.example:6333", False),
        ("http://localhost.example", False),
    ],
)
def test_an_api_key_does_not_travel_in_the_clear(url: str, safe: bool, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    assert given(target__url=url).target.url == url
    allowed = given(target__url=url, target__api_key=KEY, target__allow_insecure_key=True)
    assert allowed.target.url == url
    for secret in ({"target__api_key": KEY}, {"target__api_key_file": tmp_path / "key"}):
        if safe:
            assert given(target__url=url, **secret).target.api_key
        else:
            assert "unencrypted" in refusal(target__url=url, **secret)


def test_a_key_belongs_to_a_certificate() -> None:
    assert "needs target.client_cert_file" in refusal(target__client_key_file="/client.key")
    both = given(target__client_cert_file="/client.pem", target__client_key_file="/client.key")
    assert both.target.client_key_file == Path("/client.key")


def test_the_dense_vector_has_a_name_of_its_own() -> None:
    assert "is the sparse vector" in refusal(target__vector="bm25")
