"""Rules about writing to Qdrant (QT) over gRPC: the same as over REST comes of it."""

from __future__ import annotations

from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from on_the_wire import Wire, point
from over_grpc import fresh, ids, settings_for, upserts
from qdrant_http import Options, Server, running

from syncer.errors import (
    ExitCode,
    TargetError,
    TargetUnavailableError,
)
from syncer.keys import PointId
from syncer.model import Point, Reason

POINTS = "/collections/*/points"
LONG = "x" * 30_000
UUID = "6a7f75b2-5afe-51b8-b4b4-da7ae14a678d"


@pytest.fixture
def server(rpc_server: Server) -> Server:
    """The server over gRPC, in the place of the other one."""
    return rpc_server


@pytest.fixture
def target(rpc_target: Wire) -> Wire:
    """A fresh generation on it."""
    return rpc_target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of two rows."""
    memory.make_memory(tmp_path, ["one", "two"])
    return tmp_path


def nested(levels: int) -> object:
    """Return objects in each other."""
    found: object = 1
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.rule("QT-01")
@pytest.mark.parametrize("metadata", [{}, {"numbers": [0.5] * 5_000}], ids=["text", "numbers"])
def test_no_message_is_larger_than_the_bound(
    server: Server, metadata: dict[str, list[float]]
) -> None:
    """Small numbers take three times as much in a message as in JSON."""
    with fresh(server, batch_points=50, batch_bytes=2**18) as target:
        assert target.target.upsert([point(one, LONG, **metadata) for one in range(40)]) == {}
        sizes = [one.ByteSize() for one in upserts(server)]
        assert max(sizes) <= 2**18 + 1024
        assert max(sizes) > 2**17
        assert target.ids() == set(range(40))


@pytest.mark.rule("QT-01")
def test_what_is_too_large_for_the_server_is_halved(tmp_path: Path) -> None:
    """Here it takes 100,000 bytes, of which syncer knows nothing."""
    options = Options(folder=tmp_path)
    with running(options, grpc=True, most_grpc_bytes=100_000) as server, fresh(server) as target:
        points = [point(number, LONG) for number in range(8)]
        points[5] = point(5, LONG * 4)
        refused = target.target.upsert(points)
        assert {key: reason for key, (reason, _) in refused.items()} == {5: Reason.TOO_LARGE}
        assert target.ids() == {0, 1, 2, 3, 4, 6, 7}


def test_an_answer_may_be_larger_than_grpc_takes_by_itself(target: Wire) -> None:
    assert target.target.upsert([point(one, LONG * 20) for one in range(10)]) == {}
    found, _ = target.client.scroll(target.generation, limit=10)
    assert sum(len((one.payload or {})["document"]) for one in found) > 4 * 2**20


@pytest.mark.rule("QT-02")
@pytest.mark.parametrize("applied", [True, False])
def test_a_write_without_an_answer_is_sent_again_whole_and_then_in_parts(
    server: Server, applied: bool
) -> None:
    with fresh(server, timeout=1) as target:
        server.faults.next("slow", 2, method="PUT", path=POINTS, seconds=1.5, applied=applied)
        points = [point(number) for number in range(8)]
        for _ in range(2):
            with pytest.raises(TargetUnavailableError, match="gRPC DEADLINE_EXCEEDED"):
                target.target.upsert(points)
        assert target.target.upsert(points) == {}
        whole = list(range(8))
        assert [ids(one) for one in upserts(server)] == [whole, whole, whole[:4], whole[4:]]
        assert target.ids() == set(whole)


@pytest.mark.rule("QT-02")
def test_the_position_stays_until_there_is_an_answer(server: Server, folder: Path) -> None:
    options = {"target.timeout": 1, "target.retry_budget": 0}
    settings = settings_for(folder, server, **options)
    server.faults.next("slow", method="PUT", path=POINTS, seconds=1.5, applied=True)
    code, told = wire.once(settings)
    assert code == ExitCode.TARGET
    assert "gRPC DEADLINE_EXCEEDED" in str(told.error)
    with memory.pipeline_for(settings) as (pipeline, _):
        assert not pipeline.state.position().walked
    assert wire.once(settings)[0] == ExitCode.OK
    assert wire.documents(settings) == {1: "one", 2: "two"}


@pytest.mark.rule("QT-03")
def test_acknowledged_is_not_enough(server: Server, target: Wire) -> None:
    server.faults.next("acknowledged", method="PUT", path=POINTS, applied=True)
    with pytest.raises(TargetUnavailableError, match="acknowledged, not completed"):
        target.target.upsert([point(1)])
    server.faults.next("acknowledged", path=f"{POINTS}/delete")
    with pytest.raises(TargetUnavailableError, match="acknowledged, not completed"):
        target.target.delete([1])
    server.faults.next("acknowledged", path=f"{POINTS}/batch")
    with pytest.raises(TargetUnavailableError, match="acknowledged, not completed"):
        target.target.overwrite([point(1, "y")])
    target.target.overwrite([point(1, "z")])
    writes = [one.message for one in server.rpc.calls if hasattr(one.message, "wait")]
    assert len(writes) == 4
    assert all(one.wait for one in writes)


@pytest.mark.rule("QT-04")
def test_an_error_after_half_of_a_batch_blames_no_row(server: Server, target: Wire) -> None:
    server.faults.next("half_applied", 3, method="PUT", path=POINTS)
    assert target.target.upsert([point(number) for number in range(10)]) == {}
    server.faults.next("half_applied", 2, path=f"{POINTS}/delete")
    target.target.delete(list(range(5)))
    assert target.ids() == set(range(5, 10))
    assert [one.kind for one in server.faults.happened] == ["half_applied"] * 5


@pytest.mark.rule("QT-04")
def test_a_point_that_is_refused_is_found_and_all_others_are_written(target: Wire) -> None:
    points = [point(number) for number in range(50)]
    points[37] = Point(37, points[37].payload, {"unknown": (1.0, 0.0)})
    refused = target.target.upsert(points)
    ((reason, why),) = refused.values()
    assert (list(refused), reason) == ([37], Reason.REFUSED)
    assert "gRPC INVALID_ARGUMENT" in why
    assert target.ids() == set(range(50)) - {37}


@pytest.mark.rule("QT-07")
def test_what_no_message_can_carry_is_refused_before_it_is_sent(
    server: Server, target: Wire
) -> None:
    bad: dict[PointId, Point] = {one: point(one) for one in (-1, 2**64, "row-1")}
    bad[7] = point(7, deep=nested(60))
    bad[8] = point(8, large=2**63)
    good = [point(2**64 - 1), point(1), point(UUID, deep=nested(23))]
    refused = target.target.upsert([*bad.values(), *good])
    assert {key: reason for key, (reason, _) in refused.items()} == dict.fromkeys(
        bad, Reason.REFUSED
    )
    assert target.ids() == {1, 2**64 - 1, UUID}
    assert sum(len(one.points) for one in upserts(server)) == 3
    assert set(target.target.overwrite([point(1, deep=nested(60)), point(UUID, "y")])) == {1}


def test_json_of_any_depth_is_synced(server: Server, folder: Path) -> None:
    """Deeper than a message may be, it stays text."""
    path = folder / "memory.db"
    for key, levels in ((1, 23), (2, 24)):
        value = '{"a":' * levels + "1" + "}" * levels
        memory.execute(path, "UPDATE memory_events SET metadata = ? WHERE id = ?", (value, key))
    settings = settings_for(folder, server)
    assert wire.once(settings)[0] == ExitCode.OK
    points = memory.points_in(settings)
    found = [dict(points[key][0]["metadata"])["metadata"] for key in (1, 2)]  # type: ignore[index]
    assert found[0] == nested(23)
    assert isinstance(found[1], str)


@pytest.mark.rule("QT-19")
def test_a_large_write_too_is_made_good_once(server: Server, target: Wire) -> None:
    server.faults.next("closed_after", method="PUT", path=POINTS)
    assert target.target.upsert([point(one, LONG * 4) for one in range(50)]) == {}
    assert len(upserts(server)) == 2
    assert upserts(server)[0].ByteSize() > 5 * 2**20


@pytest.mark.rule("QT-11")
def test_a_time_to_wait_is_kept(server: Server, target: Wire) -> None:
    for form, seconds in (("json", 7.0), ("none", 0.0)):
        server.faults.next("too_many", method="PUT", path=POINTS, seconds=7, form=form)
        with pytest.raises(TargetUnavailableError) as found:
            target.target.upsert([point(1)])
        assert found.value.retry_after == seconds
    assert target.target.upsert([point(1)]) == {}


@pytest.mark.rule("QT-16")
def test_a_full_disk_ends_at_once_and_other_errors_are_tried_again(
    server: Server, target: Wire
) -> None:
    server.faults.next("disk_full", path=POINTS)
    with pytest.raises(TargetError, match="No space left on device") as found:
        target.target.upsert([point(1)])
    assert type(found.value) is TargetError
    for status in (500, 502, 503, 504):
        # The channel itself calls once more where the server is unavailable.
        server.faults.next("error", 2, method="PUT", path=POINTS, status=status)
        with pytest.raises(TargetUnavailableError):
            target.target.upsert([point(1)])
        server.faults.clear()
