"""Rules about writing to Qdrant (QT), over the wire: batches, answers that stay out, and ids."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import httpx
import memory
import on_the_wire as wire
import pytest
from on_the_wire import Wire, point
from qdrant_http import Server

from syncer.errors import ExitCode, RejectedError, TargetError, TargetUnavailableError
from syncer.model import Point, Reason
from syncer.retry import within
from syncer.target import Catalog, GenerationTarget, TargetSpec, connect

POINTS = "/collections/*/points"
LONG = "x" * 30_000


@pytest.mark.rule("QT-01")
def test_no_request_is_larger_than_the_bound_or_has_more_points(server: Server) -> None:
    with wire.fresh(server.url, batch_points=50, batch_bytes=2**18) as target:
        points = [point(number, LONG if number < 40 else "short") for number in range(300)]
        for batch in target.target.batches(points):
            assert target.target.upsert(batch) == {}
        sizes = [one.size for one in target.upserts]
        assert max(sizes) <= 2**18
        assert max(sizes) > 2**17  # and not much smaller, either
        assert max(len(one.ids) for one in target.upserts) == 50
        assert target.ids() == set(range(300))


@pytest.mark.rule("QT-01")
def test_a_point_that_is_too_large_is_never_sent_and_its_size_is_told(server: Server) -> None:
    with wire.fresh(server.url, batch_bytes=2**16) as target:
        refused = target.target.upsert([point(1), point(2, "y" * 2**16), point(3)])
        ((reason, why),) = refused.values()
        assert (list(refused), reason) == ([2], Reason.TOO_LARGE)
        assert "65" in why
        assert "target.batch_bytes is 65536" in why
        assert target.ids() == {1, 3}
        assert [one.ids for one in target.upserts] == [[1, 3]]


@pytest.mark.rule("QT-01")
@pytest.mark.parametrize("status", [400, 413])
def test_a_batch_that_is_too_large_for_the_server_is_halved(target: Wire, status: int) -> None:
    """Here the server takes 100,000 bytes, of which syncer knows nothing."""
    target.client.http.client.add_middleware(limited(100_000, status))
    points = [point(number, LONG) for number in range(8)]
    points[5] = point(5, LONG * 4)
    refused = target.target.upsert(points)
    assert {key: reason for key, (reason, _) in refused.items()} == {5: Reason.TOO_LARGE}
    assert target.ids() == {0, 1, 2, 3, 4, 6, 7}


Send = Callable[[httpx.Request], httpx.Response]


def test_nothing_of_a_request_is_kept_once_it_was_answered(target: Wire) -> None:
    """Its megabytes would wait for the garbage collector, which may be long in coming."""
    requests: list[weakref.ref[httpx.Request]] = []

    def note(request: httpx.Request, forward: Send) -> httpx.Response:
        requests.append(weakref.ref(request))
        return forward(request)

    target.client.http.client.add_middleware(note)
    gc.disable()
    try:
        target.target.upsert([point(1)])
        target.target.look_up({1: (1,)})
        kept = [one() for one in requests if one() is not None]
        assert (kept, len(requests) > 1) == ([], True)
    finally:
        gc.enable()


def limited(most: int, status: int) -> Callable[[httpx.Request, Send], httpx.Response]:
    """Return a proxy that refuses bodies of more than `most` bytes."""

    def send(request: httpx.Request, forward: Send) -> httpx.Response:
        if len(request.content) <= most:
            return forward(request)
        said = {"status": {"error": f"JSON payload is larger than allowed (limit: {most} bytes)."}}
        return httpx.Response(status, json=said, request=request)

    return send


@pytest.mark.rule("QT-01")
def test_an_upload_that_is_cut_is_sent_in_smaller_parts(server: Server, target: Wire) -> None:
    server.faults.next("cut_upload", 100, method="PUT", path=POINTS, size=100_000)
    patient = within(lambda _: 60, sleep=lambda _: None)
    assert patient(target.target.upsert, [point(number, LONG) for number in range(8)]) == {}
    assert target.ids() == set(range(8))
    assert min(one.size for one in target.upserts) < 100_000


@pytest.mark.rule("QT-02")
@pytest.mark.parametrize("applied", [True, False])
def test_a_write_without_an_answer_is_sent_again_whole_and_then_in_parts(
    server: Server, applied: bool
) -> None:
    with wire.fresh(server.url, timeout=1) as target:
        server.faults.next("slow", 2, method="PUT", path=POINTS, seconds=1.5, applied=applied)
        points = [point(number) for number in range(8)]
        for _ in range(2):
            with pytest.raises(TargetUnavailableError):
                target.target.upsert(points)
        target.target.upsert(points)
        assert [one.ids for one in target.upserts] == [
            [0, 1, 2, 3, 4, 5, 6, 7],
            [0, 1, 2, 3, 4, 5, 6, 7],
            [0, 1, 2, 3],
            [4, 5, 6, 7],
        ]
        for _ in range(7):  # from 4 on, each answer doubles it
            target.target.upsert([point(9)])
        target.target.upsert(points)
        assert len(target.upserts[-1].ids) == 8
        assert target.ids() == {*range(8), 9}


@pytest.mark.rule("QT-02")
def test_the_position_stays_until_there_is_an_answer(server: Server, tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "two"])
    settings = wire.settings(
        tmp_path, server.url, **{"target.timeout": 1, "target.retry_budget": 0}
    )
    server.faults.next("slow", method="PUT", path=POINTS, seconds=1.5, applied=True)
    code, told = wire.once(settings)
    assert code == ExitCode.TARGET
    assert "ReadTimeout" in str(told.error)
    with memory.pipeline_for(settings) as (pipeline, _):
        assert not pipeline.state.position().walked
    assert wire.once(settings)[0] == ExitCode.OK
    assert wire.documents(settings) == {1: "one", 2: "two"}


@pytest.mark.rule("QT-03")
def test_every_write_waits_until_it_is_done(server: Server, tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "a text of several chunks", "three"])
    settings = wire.settings(tmp_path, server.url)
    with memory.pipeline_for(settings, chunker=memory.by_characters) as (pipeline, connection):
        sent = wire.record(connection.client)
        memory.sync(pipeline)
        path = settings.source.database
        memory.execute(path, "UPDATE memory_events SET agent = 'b'")
        memory.execute(path, "DELETE FROM memory_events WHERE id = 2")
        memory.sync(pipeline)
    writes = [one for one in sent if "/points" in one.path and changes(one)]
    kinds = {(one.method, one.path.rpartition("/")[2]) for one in writes}
    assert kinds == {("PUT", "points"), ("POST", "batch"), ("POST", "delete")}
    assert [one for one in writes if "wait=true" not in one.query] == []


def changes(sent: wire.Sent) -> bool:
    """Say whether a request to points changes them."""
    return sent.method == "PUT" or sent.path.endswith(("/batch", "/delete"))


@pytest.mark.rule("QT-03")
@pytest.mark.parametrize("applied", [True, False])
def test_acknowledged_is_not_enough(server: Server, target: Wire, applied: bool) -> None:
    server.faults.next("acknowledged", method="PUT", path=POINTS, applied=applied)
    with pytest.raises(TargetUnavailableError, match="acknowledged, not completed"):
        target.target.upsert([point(1)])
    server.faults.next("acknowledged", path=f"{POINTS}/delete")
    with pytest.raises(TargetUnavailableError, match="acknowledged, not completed"):
        target.target.delete([1])
    target.target.upsert([point(1)])
    server.faults.next("acknowledged", path=f"{POINTS}/batch")
    with pytest.raises(TargetUnavailableError, match="acknowledged, not completed"):
        target.target.overwrite([point(1, "y")])


@pytest.mark.rule("QT-04")
def test_an_error_after_half_of_a_batch_blames_no_row(server: Server, target: Wire) -> None:
    server.faults.next("half_applied", 3, method="PUT", path=POINTS)
    assert target.target.upsert([point(number) for number in range(10)]) == {}
    assert target.ids() == set(range(10))
    server.faults.next("half_applied", 2, method="PUT", path=POINTS)
    assert target.target.upsert([point(10)]) == {}
    server.faults.next("half_applied", 2, path=f"{POINTS}/delete")
    target.target.delete(list(range(10)))
    assert target.ids() == {10}


@pytest.mark.rule("QT-04")
def test_a_point_that_is_refused_is_found_and_all_others_are_written(target: Wire) -> None:
    points = [point(number) for number in range(100)]
    points[37] = Point(37, points[37].payload, {"unknown": (1.0, 0.0)})
    refused = target.target.upsert(points)
    ((reason, why),) = refused.values()
    assert (list(refused), reason) == ([37], Reason.REFUSED)
    assert "Not existing vector name" in why
    assert target.ids() == set(range(100)) - {37}


@pytest.mark.rule("QT-04")
def test_what_is_refused_whatever_it_is_blames_no_row(target: Wire) -> None:
    points = [Point(number, {}, {"unknown": (1.0, 0.0)}) for number in range(32)]
    with pytest.raises(TargetError, match="none is taken"):
        target.target.upsert(points)


@pytest.mark.rule("QT-06")
def test_of_two_points_with_one_id_the_later_one_is_sent(target: Wire) -> None:
    target.target.upsert([point(1, "old"), point(2), point(1, "new")])
    assert [one.ids for one in target.upserts] == [[1, 2]]
    (found,) = target.client.retrieve(target.generation, [1])
    assert (found.payload or {})["document"] == "new"


@pytest.mark.rule("QT-07")
@pytest.mark.parametrize("mode", ["server", "local"])
def test_an_id_that_is_none_is_refused_before_it_is_sent(
    server: Server, tmp_path: Path, mode: str
) -> None:
    where = {"url": server.url} if mode == "server" else {"path": tmp_path / "qdrant"}
    with connect(TargetSpec(**where)) as connection:
        Catalog(connection).create("g", "a", wire.DESCRIPTION, [])
        target = GenerationTarget(connection, "g")
        bad = (-1, 2**64, "row-1", "")
        refused = target.upsert([*(point(one) for one in bad), point(2**64 - 1), point(1)])
        assert {key: reason for key, (reason, _) in refused.items()} == dict.fromkeys(
            bad, Reason.REFUSED
        )
        assert {one.id for one in connection.client.scroll("g")[0]} == {1, 2**64 - 1}


def test_a_row_that_cannot_be_opened_stops_the_run_and_not_the_row(target: Wire) -> None:
    with pytest.raises(RejectedError, match="cannot be opened"):
        target.target.open_rows([], [point(-1)])
