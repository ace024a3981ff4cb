"""Rules that a comparison of both stores keeps: every page, exact counts, the collection itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import comparing
import httpx
import on_the_wire as wire
import pytest
from comparing import Compared
from qdrant_client import QdrantClient
from qdrant_http import Server

from syncer.cli import opening
from syncer.cli.ready import ready
from syncer.cli.verify import look
from syncer.errors import ExitCode, TargetError
from syncer.worker import Stop

Send = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def here(server: Server, tmp_path: Path) -> Iterator[Compared]:
    """A memory in sync with a server."""
    with comparing.compared(tmp_path, server.url, options={"sparse.enabled": False}) as found:
        yield found


@pytest.mark.rule("QT-14")
def test_orphans_are_found_on_every_page(here: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.target.points._LOOK_UP", 4)
    here.pipeline.target.__dict__.pop("_records", None)
    for row in (901, 905, 920):
        comparing.put(here, row, str(row), 0, 1)
    assert here.found() == {"orphan": {"901", "905", "920"}}
    assert here.verify().points == 19


@pytest.mark.rule("QT-14")
@pytest.mark.parametrize("offset", [5, 1])
def test_a_server_that_gives_the_same_page_again_decides_nothing(
    here: Compared, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    monkeypatch.setattr("syncer.target.points._LOOK_UP", 4)
    here.pipeline.target.__dict__.pop("_records", None)

    def again(request: httpx.Request, send: Send) -> httpx.Response:
        answer = send(request)
        if not request.url.path.endswith("/scroll"):
            return answer
        said = json.loads(answer.read())
        said["result"]["next_page_offset"] = offset
        return httpx.Response(200, json=said, request=request)

    here.client.http.client.add_middleware(again)
    with pytest.raises(TargetError, match="the same page of points again and again"):
        here.mend()


@pytest.mark.rule("QT-14")
def test_a_point_that_was_written_while_the_points_were_read_is_no_orphan(here: Compared) -> None:
    def write(request: httpx.Request, send: Send) -> httpx.Response:
        if request.url.path.endswith("/scroll") and not done:
            done.append(1)
            insert = "INSERT INTO memory_events (agent, scope, source, content) "
            here.execute(f"{insert} VALUES ('a', 's', 'x', 'new')")
            here.execute("DELETE FROM memory_events WHERE id = 3")
            here.sync()
        return send(request)

    done: list[int] = []
    here.client.http.client.add_middleware(write)
    result = here.verify()
    assert (comparing.named(result), result.clean) == ({}, True)
    assert done


@pytest.mark.rule("QT-14")
def test_a_row_that_is_edited_and_synced_during_the_second_look_is_no_drift(here: Compared) -> None:
    def edit(request: httpx.Request, send: Send) -> httpx.Response:
        if request.url.path.endswith("/points") and request.method == "POST" and not done:
            done.append(1)
            here.execute("UPDATE memory_events SET content = 'edited' WHERE id = 3")
            here.sync()
        return send(request)

    done: list[int] = []
    here.client.set_payload("memory", {"content": "0" * 16}, [3], key="_sync")
    here.client.http.client.add_middleware(edit)
    result = here.verify()
    assert (comparing.named(result), set(result.pending)) == ({}, {"3"})
    assert done


@pytest.mark.rule("CT-23")
@pytest.mark.rule("CT-02")
def test_what_somebody_took_out_of_the_collection_is_put_back_although_all_was_caught_up(
    server: Server, tmp_path: Path
) -> None:
    options = {"sparse.enabled": False, "target.check_interval": 0}
    with comparing.compared(tmp_path, server.url, options=options) as here:
        settings, before = here.settings, here.points()
        here.pipeline.state.note_points(len(before))  # type: ignore[attr-defined]
    with wire.anywhere_else(server.url) as client:
        empty(client)
    assert wire.once(settings)[0] == ExitCode.REFUSED
    code, told = wire.verify(settings, repair=True)
    assert code == ExitCode.OK
    assert [one.clean for one in told.comparisons] == [False, True]
    assert wire.documents(settings).keys() >= {1, 3, 5}
    assert len(wire.documents(settings)) >= len(before) - 6  # chunks are larger by default
    assert wire.verify(settings)[0] == ExitCode.OK


@pytest.mark.rule("CT-02")
def test_a_daemon_compares_and_mends_only_if_it_is_told_to(server: Server, tmp_path: Path) -> None:
    options = {"sparse.enabled": False}
    with comparing.compared(tmp_path, server.url, options=options) as here:
        settings = here.settings
        here.client.delete("memory", [1])
    found = []
    for repair in (False, True, False):
        told = wire.Told()
        with (
            opening.opened(settings, to_write=True) as sides,
            ready(sides, told, Stop()) as everything,
        ):
            look(everything, told, repair=repair)
            known = sides.store.serving("memory")
            assert known is not None
            kept = sides.store.verified(known.generation)
        assert kept is not None
        found.append(([one.drifted for one in told.comparisons], kept.drift["missing"]))
    assert found == [([1], 1), ([1, 0], 0), ([0], 0)]


def empty(client: QdrantClient) -> None:
    """Take every point out."""
    found, _ = client.scroll("memory", limit=100)
    client.delete("memory", [one.id for one in found])
