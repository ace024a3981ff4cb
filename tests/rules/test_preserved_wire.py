"""Rule QT-05 where others' payload keys are preserved: what is sent, and what is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import on_the_wire as wire
import pytest
from qdrant_client import models
from qdrant_http import Options, Server, running

from syncer.errors import TargetError, TargetUnavailableError
from syncer.keys import point_id
from syncer.model import Point, Reason
from syncer.retry import within

BATCH = "/collections/*/points/batch"
THEIRS = {"theirs": 1}

Send = Callable[[httpx.Request], httpx.Response]

pytestmark = pytest.mark.rule("QT-05")


@pytest.fixture
def preserving(server: Server) -> Iterator[wire.Wire]:
    """A fresh generation whose foreign payload keys are preserved."""
    with wire.fresh(server.url, preserve_foreign_payload=True) as found:
        yield found


def mark(target: wire.Wire) -> None:
    """Put a key of somebody else's into all points, and forget what was sent until then."""
    target.client.set_payload(target.generation, THEIRS, points=models.Filter())
    target.sent.clear()


def payloads(target: wire.Wire) -> dict[object, dict[str, object]]:
    """Return all points' payloads."""
    found, _ = target.client.scroll(target.generation, limit=10_000)
    return {one.id: one.payload or {} for one in found}


def requests(target: wire.Wire) -> list[tuple[str, str]]:
    """Return what was sent, by method and the end of the path."""
    return [(one.method, one.path.rpartition("/")[2]) for one in target.sent]


def test_nobody_pays_for_it_who_does_not_ask_for_it(target: wire.Wire) -> None:
    target.target.upsert([wire.point(1)])
    target.sent.clear()
    target.target.upsert([wire.point(1, "y"), wire.point(2)])
    target.target.overwrite([wire.point(1, "z")])
    assert requests(target) == [("PUT", "points"), ("POST", "batch")]
    assert list(target.sent[-1].body["operations"][0]) == ["overwrite_payload"]


def test_new_points_are_written_whole_and_those_that_are_there_by_one_batch(
    preserving: wire.Wire,
) -> None:
    preserving.target.upsert([wire.point(1), wire.point(2)])
    mark(preserving)
    preserving.target.upsert([wire.point(number, "y") for number in (1, 2, 3)])
    look_up, new, batch = (one for one in preserving.sent if "/points" in one.path)
    assert (look_up.body["with_payload"], look_up.body["with_vector"]) == (False, False)
    assert new.ids == [3]
    kinds = [next(iter(one)) for one in batch.body["operations"]]
    assert kinds == ["set_payload", "update_vectors", "set_payload", "set_payload"]
    assert "wait=true" in batch.query
    assert {one: found.get("theirs") for one, found in payloads(preserving).items()} == {
        1: 1,
        2: 1,
        3: None,
    }


def test_it_is_the_same_over_grpc(tmp_path: Path) -> None:
    with running(Options(folder=tmp_path), grpc=True) as server:
        rpc = {"grpc": True, "grpc_port": server.rpc.port}
        with wire.fresh(server.url, preserve_foreign_payload=True, **rpc) as target:
            target.target.upsert([wire.point(1), wire.point(2)])
            mark(target)
            target.target.upsert([wire.point(1, "y"), wire.point(3, "y")])
            target.target.overwrite([wire.point(2, "z")])
            assert payloads(target) == {
                1: {**wire.point(1, "y").payload, **THEIRS},
                2: {**wire.point(2, "z").payload, **THEIRS},
                3: wire.point(3, "y").payload,
            }


def test_no_request_is_larger_than_the_bound_where_points_are_changed_in_place(
    server: Server,
) -> None:
    with wire.fresh(
        server.url, batch_points=500, batch_bytes=2**16, preserve_foreign_payload=True
    ) as target:
        short = [wire.point(point_id("t", (f"k{number}",))) for number in range(500)]
        sizes = []
        for text in ("x", "y"):
            points = [replace(one, payload={**one.payload, "document": text}) for one in short]
            for batch in target.target.batches(points):
                assert target.target.upsert(batch) == {}
            sizes += [one.size for one in target.sent if one.path.endswith("/batch")]
        assert 2**15 < max(sizes) <= 2**16
        assert {found["document"] for found in payloads(target).values()} == {"y"}


def test_a_point_that_is_refused_is_found_and_all_others_are_changed(
    preserving: wire.Wire,
) -> None:
    points = [wire.point(number) for number in range(20)]
    preserving.target.upsert(points)
    mark(preserving)
    edited = [wire.point(number, "y") for number in range(20)]
    edited[7] = Point(7, edited[7].payload, {"unknown": (1.0, 0.0)})
    refused = preserving.target.upsert(edited)
    ((reason, _),) = refused.values()
    assert (list(refused), reason) == ([7], Reason.REFUSED)
    found = payloads(preserving)
    assert {one for one, payload in found.items() if payload["document"] == "y"} == {
        one for one in range(20) if one != 7
    }
    assert all(payload["theirs"] == 1 for payload in found.values())


@pytest.mark.parametrize("kind", ["closed_before", "closed_during", "closed_after", "error"])
def test_a_batch_without_an_answer_is_sent_again(
    server: Server, preserving: wire.Wire, kind: str
) -> None:
    preserving.target.upsert([wire.point(1), wire.point(2)])
    mark(preserving)
    server.faults.next(kind, 3, path=BATCH)
    patient = within(lambda _: 60, sleep=lambda _: None)
    assert patient(preserving.target.upsert, [wire.point(1, "y"), wire.point(2, "y")]) == {}
    for payload in payloads(preserving).values():
        assert payload == {**wire.point(0, "y").payload, **THEIRS, "_sync": payload["_sync"]}


def test_half_of_a_batch_that_is_applied_blames_no_row(
    server: Server, preserving: wire.Wire
) -> None:
    preserving.target.upsert([wire.point(number) for number in range(5)])
    mark(preserving)
    server.faults.next("half_applied", 3, path=BATCH)
    assert preserving.target.upsert([wire.point(number, "y") for number in range(5)]) == {}
    assert {payload["document"] for payload in payloads(preserving).values()} == {"y"}


def test_acknowledged_is_not_enough_for_a_change_in_place(
    server: Server, preserving: wire.Wire
) -> None:
    preserving.target.upsert([wire.point(1)])
    for write in (preserving.target.upsert, preserving.target.overwrite):
        server.faults.next("acknowledged", path=BATCH)
        with pytest.raises(TargetUnavailableError, match="acknowledged, not completed"):
            write([wire.point(1, "y")])


def test_a_point_that_somebody_takes_out_meanwhile_is_written_by_the_next_run(
    preserving: wire.Wire,
) -> None:
    preserving.target.upsert([wire.point(1)])
    passed = preserving.client.http.client.middleware

    def gone(request: httpx.Request, forward: Send) -> httpx.Response:
        if request.url.path.endswith("/batch"):
            preserving.client.http.client.middleware = passed
            preserving.client.delete(preserving.generation, models.PointIdsList(points=[1]))
        return forward(request)

    preserving.client.http.client.add_middleware(gone)
    with pytest.raises(TargetError, match="No point with id 1"):
        preserving.target.upsert([wire.point(1, "y")])
    assert preserving.target.upsert([wire.point(1, "y")]) == {}
    assert preserving.ids() == {1}
