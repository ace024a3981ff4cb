"""Rules about rows and points (QT): what a point carries, and what becomes of one refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import memory
import on_the_wire as wire
import pytest
from qdrant_http import Server

from syncer.errors import ExitCode, TargetError
from syncer.model import Reason
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.settings import Settings
from syncer.target import Connection

Send = Callable[[httpx.Request], httpx.Response]
LONG = "first part, a second part, and a third"
BIG = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """A memory and its generation on a server, in chunks of a few characters."""

    path: Path
    pipeline: Pipeline
    connection: Connection

    def sync(self) -> SyncResult:
        """Catch up."""
        return memory.sync(self.pipeline)

    def execute(self, sql: str) -> None:
        """Run one statement as the application does."""
        memory.execute(self.path, sql)

    def points(self) -> dict[object, tuple[dict[str, object], dict[str, object]]]:
        """Return payload and vectors by id."""
        return memory.all_points(self.connection)  # type: ignore[return-value]

    def rows(self) -> set[str]:
        """Return the rows that have points."""
        return {str(payload["_sync"]["row"]) for payload, _ in self.points().values()}  # type: ignore[index]


@pytest.fixture
def place(server: Server, tmp_path: Path) -> Iterator[Place]:
    """Three rows, the second of several chunks; not synced yet."""
    memory.make_memory(tmp_path, ["one", LONG, "three"])
    settings = wire.settings(tmp_path, server.url, **{"sparse.enabled": True})
    with memory.pipeline_for(settings, chunker=memory.by_characters) as (pipeline, connection):
        yield Place(settings.source.database, pipeline, connection)


def refuse(place: Place, chunk: int) -> None:
    """Let the server refuse, from now on, this chunk of a row of four, but not its opening."""

    def send(request: httpx.Request, forward: Send) -> httpx.Response:
        writes = request.method == "PUT" or request.url.path.endswith("/batch")
        content = request.content.replace(b" ", b"")
        if writes and wanted in content and b'"document"' in content:
            said = {"status": {"error": 'Wrong input: value "a row\'s own words" is bad'}}
            return httpx.Response(400, json=said, request=request)
        return forward(request)

    wanted = f'"chunk":{chunk},"chunks":4'.encode()
    place.connection.client.http.client.add_middleware(send)


@pytest.mark.rule("QT-04")
@pytest.mark.parametrize("chunk", [0, 2])
def test_of_a_row_with_a_refused_chunk_nothing_stays_and_the_rest_goes_on(
    place: Place, chunk: int
) -> None:
    refuse(place, chunk)
    result = place.sync()
    (found,) = result.quarantined
    assert (found.row, found.reason) == ("2", Reason.REFUSED)
    assert "HTTP 400: Wrong input" in found.detail
    assert "own words" not in found.detail
    assert place.rows() == {"1", "3"}
    assert (result.embedded, result.newly_quarantined) == (2, 1)
    assert place.pipeline.state.position().walked


@pytest.mark.rule("QT-04")
@pytest.mark.parametrize("chunk", [0, 2])
def test_a_row_that_was_there_goes_when_its_new_text_is_refused_and_comes_back_when_it_is_taken(
    place: Place, chunk: int
) -> None:
    place.sync()
    assert place.rows() == {"1", "2", "3"}
    undo = place.connection.client.http.client.middleware
    refuse(place, chunk)
    place.execute("UPDATE memory_events SET content = content || '!' WHERE id = 2")
    assert place.sync().newly_quarantined == 1
    assert place.rows() == {"1", "3"}
    place.connection.client.http.client.middleware = undo
    place.execute("UPDATE memory_events SET content = content || '?' WHERE id = 2")
    assert place.sync().newly_quarantined == 0
    assert place.rows() == {"1", "2", "3"}
    assert len(place.points()) == 6


@pytest.mark.rule("QT-04")
def test_the_commit_record_of_a_row_with_a_refused_chunk_is_never_written_whole(
    place: Place,
) -> None:
    refuse(place, 2)
    sent = wire.record(place.connection.client)
    place.sync()
    records = [
        point["payload"]["_sync"]
        for one in sent
        if one.method == "PUT" and one.path.endswith("/points")
        for point in one.body["points"]
    ]
    of_chunk_0 = [one for one in records if one["row"] == "2" and one["chunk"] == 0]
    assert {one["content"] for one in of_chunk_0} == {""}
    assert {one["row"] for one in records if one["chunk"] == 0} == {"1", "2", "3"}


@pytest.mark.rule("QT-04")
def test_a_payload_that_is_refused_takes_its_row_out(place: Place) -> None:
    place.sync()
    refuse(place, 1)
    place.execute("UPDATE memory_events SET agent = 'b'")
    result = place.sync()
    assert [one.row for one in result.quarantined] == ["2"]
    assert result.payload_only == 2
    assert place.rows() == {"1", "3"}


@pytest.mark.rule("QT-01")
def test_a_row_whose_point_is_too_large_is_quarantined_with_its_size(
    server: Server, tmp_path: Path
) -> None:
    memory.make_memory(tmp_path, ["one", "two"])
    large = json.dumps({"notes": "n" * 70_000})
    memory.execute(
        tmp_path / "memory.db", "UPDATE memory_events SET metadata = ? WHERE id = 2", [large]
    )
    settings = wire.settings(tmp_path, server.url, **{"target.batch_bytes": 2**16})
    code, told = wire.once(settings)
    assert code == ExitCode.QUARANTINED
    assert told.result is not None
    (found,) = told.result.quarantined
    assert (found.row, found.reason) == ("2", Reason.TOO_LARGE)
    assert "its point has 70" in found.detail
    assert wire.documents(settings) == {1: "one"}
    memory.execute(tmp_path / "memory.db", "UPDATE memory_events SET metadata = '{}'")
    assert wire.once(settings)[0] == ExitCode.OK
    assert wire.documents(settings) == {1: "one", 2: "two"}


@pytest.mark.rule("QT-05")
def test_an_edit_writes_the_whole_point_and_new_metadata_leave_both_vectors_alone(
    place: Place,
) -> None:
    place.sync()
    before = place.points()[1]
    place.execute("UPDATE memory_events SET agent = 'b' WHERE id = 1")
    assert place.sync().payload_only == 1
    payload, vectors = place.points()[1]
    assert vectors == before[1]
    assert set(vectors) == {"hash-8", "bm25"}
    assert payload["metadata"]["agent"] == "b"  # type: ignore[index]
    place.execute("UPDATE memory_events SET content = 'another' WHERE id = 1")
    assert place.sync().embedded == 1
    whole, other = place.points()[1]
    assert set(other) == {"hash-8", "bm25"}
    assert other != vectors
    assert set(whole) == {"document", "metadata", "_sync"}


@pytest.mark.rule("QT-05")
def test_keys_that_somebody_else_put_into_a_point_go_with_its_next_write(place: Place) -> None:
    place.sync()
    client = place.connection.client
    client.set_payload("memory", {"theirs": 1}, points=[1, 3])
    place.execute("UPDATE memory_events SET content = 'another' WHERE id = 1")
    place.sync()
    found = place.points()
    assert "theirs" not in found[1][0]
    assert found[3][0]["theirs"] == 1


@pytest.mark.rule("QT-08")
@pytest.mark.parametrize("mode", ["server", "local"])
def test_numbers_keep_every_digit(server: Server, tmp_path: Path, mode: str) -> None:
    memory.make_memory(tmp_path)
    path = tmp_path / "memory.db"
    numbers = {"exact": 2**53 + 1, "most": BIG, "beyond": BIG + 1, "low": -BIG - 2}
    memory.execute(
        path,
        "INSERT INTO memory_events (id, agent, scope, source, content, metadata) "
        "VALUES (?, 'a', 's', 'x', 'text', ?)",
        [BIG, json.dumps(numbers)],
    )
    payload = only_payload(settings_in(mode, tmp_path, server))
    assert payload["metadata"]["metadata"] == {  # type: ignore[index]
        "exact": 2**53 + 1,
        "most": BIG,
        "beyond": str(BIG + 1),
        "low": str(-BIG - 2),
    }
    assert payload["metadata"]["sqlite_id"] == BIG  # type: ignore[index]
    assert payload["_sync"]["row"] == str(BIG)  # type: ignore[index]


@pytest.mark.rule("QT-09")
@pytest.mark.parametrize("mode", ["server", "local"])
def test_values_that_json_has_not_become_the_same_everywhere(
    server: Server, tmp_path: Path, mode: str
) -> None:
    memory.make_memory(tmp_path, ["text"])
    path = tmp_path / "memory.db"
    odd = '{"nan": NaN, "inf": [Infinity, -Infinity], "pair": "\\ud83d\\ude00", "half": "\\ud83d"}'
    memory.execute(path, "UPDATE memory_events SET metadata = ?, source = ?", [odd, b"\xff\x00"])
    payload = only_payload(settings_in(mode, tmp_path, server))
    metadata = payload["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["metadata"] == {
        "nan": None,
        "inf": [None, None],
        "pair": "\U0001f600",
        "half": "\ufffd",
    }
    assert metadata["source"] == "/wA="
    assert all(math.isfinite(value) for value in metadata.values() if isinstance(value, float))


@pytest.mark.rule("QT-13")
def test_readers_find_text_and_metadata_under_the_keys_that_they_expect(
    server: Server, tmp_path: Path
) -> None:
    memory.make_memory(tmp_path, ["text"])
    keys = {"target.document_key": "page_content", "target.metadata_key": "meta"}
    settings = wire.settings(tmp_path, server.url, **keys)
    payload = only_payload(settings)
    assert set(payload) == {"page_content", "meta", "_sync"}
    with wire.anywhere_else(server.url) as client:
        info = client.get_collection("memory")
        described = (info.config.metadata or {})["syncer"]
        assert (described["document_key"], described["metadata_key"]) == ("page_content", "meta")
        assert set(info.payload_schema) == {"_sync.row", "meta.agent", "meta.scope"}


@pytest.mark.rule("QT-14")
def test_all_pages_are_read_and_one_that_comes_again_is_an_error(
    server: Server, target: wire.Wire
) -> None:
    target.target.upsert([wire.point(number) for number in range(2500)])
    rows = wire.rows(target.target)
    assert sorted(map(int, rows)) == list(range(2500))
    assert len([one for one in target.sent if one.path.endswith("/scroll")]) == 3

    def again(request: httpx.Request, send: Send) -> httpx.Response:
        if not request.url.path.endswith("/scroll"):
            return send(request)
        result = {"points": [], "next_page_offset": 7}
        return httpx.Response(200, json={"result": result, "status": "ok", "time": 0})

    target.client.http.client.add_middleware(again)
    with pytest.raises(TargetError, match="again and again"):
        wire.rows(target.target)


@pytest.mark.rule("QT-15")
def test_counts_are_exact(target: wire.Wire) -> None:
    target.target.upsert([wire.point(number) for number in range(5)])
    assert target.target.count() == 5
    assert target.sent[-1].body["exact"] is True


def settings_in(mode: str, folder: Path, server: Server) -> Settings:
    """Return settings for a server or for local mode."""
    if mode == "local":
        return memory.settings_for(folder)
    return wire.settings(folder, server.url)


def only_payload(settings: Settings) -> dict[str, object]:
    """Sync, and return the payload of the only point."""
    assert wire.once(settings)[0] == ExitCode.OK
    ((payload, _),) = memory.points_in(settings).values()
    assert isinstance(payload, dict)
    return payload
