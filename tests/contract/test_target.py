"""What every target does: the fake in a dictionary, local mode, the test server, a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import on_the_wire
import pytest
from contract import targets
from contract.targets import Kind

from syncer.keys import PointId
from syncer.model import SYNC_KEY, Held, Point, Reason, SparseVector, Vector
from syncer.records import Record

RUNS_ON = {
    "fake": "a dictionary",
    "local": "local mode in ",
    "http": "Qdrant 1.20.0 at http://127.0.0.1:",
    "grpc": "Qdrant 1.20.0 at http://127.0.0.1:",
    "server": "Qdrant ",
    "server over grpc": "Qdrant ",
}


@pytest.fixture(params=targets.NAMES)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    """Each target that can be had here; which it is, is printed."""
    with made(request, tmp_path) as found:
        yield found


@pytest.fixture(params=targets.NAMES)
def preserving(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    """Each target once more, asked to preserve what is not syncer's."""
    with made(request, tmp_path, preserve=True) as found:
        yield found


@contextmanager
def made(request: pytest.FixtureRequest, folder: Path, *, preserve: bool = False) -> Iterator[Kind]:
    """Make the target that a test asks for, and see that it is that one."""
    with targets.made(request.param, folder, preserve=preserve) as found:
        where = found.runs_on()
        print(f"{request.node.name} runs on {where}")  # noqa: T201 - asked for
        assert f"[{found.name}" in request.node.name
        assert where.startswith(RUNS_ON[found.name])
        on_server = targets.URL is not None and targets.URL in where
        assert on_server == found.name.startswith("server")
        assert where.endswith("over gRPC") == found.name.endswith("grpc")
        yield found


def whole(
    identifier: PointId, text: str = "x", chunks: int = 1, vector: Vector = (0.6, 0.8)
) -> Point:
    """Return a complete point."""
    record = {"row": "1", "content": "c", "payload": "p", "text": "t", "chunk": 0, "chunks": chunks}
    return Point(
        identifier, {"document": text, "metadata": {"a": 1}, SYNC_KEY: record}, {"v": vector}
    )


def opened(identifier: PointId, chunks: int) -> Point:
    """Return a bare commit record."""
    record = {"row": "1", "content": "", "payload": "", "text": "", "chunk": 0, "chunks": chunks}
    return Point(identifier, {SYNC_KEY: record})


def test_a_point_is_there_with_payload_and_vector_when_upsert_returns(kind: Kind) -> None:
    kind.target.upsert([whole(1)])
    found = kind.peek(1)
    assert found is not None
    assert found[0] == whole(1).payload
    assert found[1]["v"] == pytest.approx([0.6, 0.8])


def test_the_same_point_twice_is_one_point(kind: Kind) -> None:
    kind.target.upsert([whole(1)])
    kind.target.upsert([whole(1, "y")])
    assert kind.count() == 1
    assert kind.target.look_up({1: (1,)}) == {(1,): Held("1", "c", "p", 1, "t")}


def test_a_look_up_returns_what_is_there_and_leaves_out_what_is_not(kind: Kind) -> None:
    uuid = "6a7f75b2-5afe-51b8-b4b4-da7ae14a678d"
    kind.target.upsert([whole(1), whole(uuid, chunks=3)])
    found = kind.target.look_up({1: (1,), uuid: ("a",), 2: (2,)})
    assert found == {(1,): Held("1", "c", "p", 1, "t"), ("a",): Held("1", "c", "p", 3, "t")}


def test_a_point_without_book_keeping_is_foreign(kind: Kind) -> None:
    kind.target.upsert([Point(5, {"document": "x", "metadata": {}}, {"v": (1.0, 0.0)})])
    assert kind.target.look_up({5: (5,)}) == {(5,): Held(None)}


def test_opening_a_row_keeps_its_text_and_vector_and_clears_its_hashes(kind: Kind) -> None:
    kind.target.upsert([whole(1)])
    kind.target.open_rows([opened(1, 4)], [])
    found = kind.peek(1)
    assert found is not None
    assert found[0]["document"] == "x"
    assert found[1]["v"] == pytest.approx([0.6, 0.8])
    assert kind.target.look_up({1: (1,)}) == {(1,): Held("1", "", "", 4)}


def test_opening_a_new_row_makes_a_bare_point(kind: Kind) -> None:
    kind.target.open_rows([], [opened(1, 4)])
    found = kind.peek(1)
    assert found is not None
    assert not found[1]
    assert kind.target.look_up({1: (1,)}) == {(1,): Held("1", "", "", 4)}


def test_overwriting_replaces_the_whole_payload_and_keeps_the_vector(kind: Kind) -> None:
    kind.target.upsert([whole(1)])
    kind.target.overwrite([Point(1, {"document": "new", SYNC_KEY: {"row": "1"}})])
    found = kind.peek(1)
    assert found is not None
    assert found[0] == {"document": "new", SYNC_KEY: {"row": "1"}}
    assert found[1]["v"] == pytest.approx([0.6, 0.8])


def test_deleting_takes_points_away_and_does_not_mind_missing_ones(kind: Kind) -> None:
    kind.target.upsert([whole(1), whole(2)])
    kind.target.delete([1, 99])
    assert kind.peek(1) is None
    assert kind.count() == 1


def test_of_two_points_with_one_id_the_later_one_counts(kind: Kind) -> None:
    kind.target.upsert([whole(1, "old"), whole(2), whole(1, "new")])
    found = kind.peek(1)
    assert found is not None
    assert (found[0]["document"], kind.count()) == ("new", 2)


def test_points_that_nobody_takes_are_returned_and_the_others_written(kind: Kind) -> None:
    refused = kind.target.upsert([whole(-1), whole(1), whole("no uuid"), whole(2**64 - 1)])
    assert {key: reason for key, (reason, _) in refused.items()} == {
        -1: Reason.REFUSED,
        "no uuid": Reason.REFUSED,
    }
    assert kind.count() == 2
    assert kind.target.overwrite([whole(1, "y")]) == {}


def test_what_is_taken_returns_nothing(kind: Kind) -> None:
    assert kind.target.upsert([whole(1), whole(2)]) == {}
    assert kind.target.overwrite([whole(2)]) == {}


def test_batches_hold_every_point_once_and_in_order(kind: Kind) -> None:
    points = [whole(number) for number in range(600)]
    batches = list(kind.target.batches(points))
    assert [point for batch in batches for point in batch] == points
    assert len(batches) > 1
    assert list(kind.target.batches([])) == []


def test_the_rows_come_in_pages_each_at_least_once(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncer.target.points._LOOK_UP", 20)
    points = []
    for number in range(50):
        point = whole(number)
        record = {**point.payload[SYNC_KEY], "row": str(number // 2)}  # type: ignore[dict-item]
        points.append(replace(point, payload={**point.payload, SYNC_KEY: record}))
    kind.target.upsert([*points, Point(200, {"document": "foreign"}, {"v": (1.0, 0.0)})])
    pages = on_the_wire.row_pages(kind.target)
    assert len(pages) > 1
    assert {row for page in pages for row in page} == {str(number) for number in range(25)}


def test_numbers_and_odd_texts_in_a_payload_come_back_as_they_were(kind: Kind) -> None:
    values = {
        "int": 2**63 - 1,
        "low": -(2**63),
        "float": 0.1,
        "none": None,
        "nul": "a\0b",
        "\u4f60": [1, {}],
    }
    kind.target.upsert([replace(whole(1), payload={**whole(1).payload, "metadata": values})])
    found = kind.peek(1)
    assert found is not None
    assert found[0]["metadata"] == values


def test_every_write_may_be_repeated(kind: Kind) -> None:
    for _ in range(2):
        kind.target.upsert([whole(1), whole(2)])
        kind.target.overwrite([whole(2, "y")])
        kind.target.open_rows([opened(1, 2)], [opened(3, 2)])
    for _ in range(2):
        kind.target.delete([2, 3])
    assert kind.count() == 1
    assert kind.target.look_up({1: (1,)}) == {(1,): Held("1", "", "", 2)}


def test_writing_nothing_is_no_error(kind: Kind) -> None:
    kind.target.upsert([])
    kind.target.open_rows([], [])
    kind.target.overwrite([])
    kind.target.delete([])
    assert kind.target.look_up({}) == {}
    assert kind.count() == 0


def test_the_token_is_the_last_that_was_written(kind: Kind) -> None:
    assert kind.target.token() is None
    kind.target.write_token("a")
    kind.target.write_token("b")
    assert kind.target.token() == "b"


def test_more_points_than_a_batch_has_all_arrive(kind: Kind) -> None:
    assert kind.target.upsert([whole(number) for number in range(300)]) == {}
    assert kind.count() == 300
    ids: dict[PointId, tuple[int]] = {number: (number,) for number in range(400)}
    assert len(kind.target.look_up(ids)) == 300


def test_a_point_has_its_sparse_vector_beside_the_dense_one(kind: Kind) -> None:
    sparse = SparseVector((3, 4_294_967_295), (0.5, 1.25))
    plain = whole(1)
    kind.target.upsert([replace(plain, vectors={**plain.vectors, "bm25": sparse}), whole(2)])
    found, other = kind.peek(1), kind.peek(2)
    assert found is not None
    assert found[1]["bm25"] == [3, 4_294_967_295, 0.5, 1.25]
    assert found[1]["v"] == pytest.approx([0.6, 0.8])
    assert other is not None
    assert set(other[1]) == {"v"}


def test_a_payload_that_is_overwritten_leaves_the_sparse_vector_alone(kind: Kind) -> None:
    point = replace(whole(1), vectors={"v": (0.6, 0.8), "bm25": SparseVector((7,), (1.0,))})
    kind.target.upsert([point])
    kind.target.overwrite([replace(whole(1, text="y"), vectors={})])
    found = kind.peek(1)
    assert found is not None
    assert (found[0]["document"], found[1]["bm25"]) == ("y", [7, 1.0])


def test_all_points_come_in_the_order_of_their_ids_with_what_they_say_of_themselves(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncer.target.points._LOOK_UP", 20)
    ids: list[PointId] = [*range(50), "6a7f75b2-5afe-51b8-b4b4-da7ae14a678d"]
    kind.target.upsert([whole(one, chunks=2) for one in reversed(ids)])
    kind.target.upsert([Point(60, {"document": "foreign"}, {"v": (1.0, 0.0)})])
    records: list[Record] = []
    offset, pages = None, 0
    while True:
        page = kind.target.records(offset)
        records += page.records
        pages, offset = pages + 1, page.next
        if offset is None:
            break
    assert [one.id for one in records] == [*range(50), 60, ids[-1]]
    assert pages > 1
    assert records[3] == Record(3, "1", 0, 2, "c", "p", "t")
    assert records[50] == Record(60, None)


def test_records_by_id_leave_out_what_is_not_there(kind: Kind) -> None:
    kind.target.upsert([whole(1), whole(2)])
    assert {one.id for one in kind.target.records_of([2, 3, 1])} == {1, 2}
    assert kind.target.records_of([]) == ()


def test_points_without_a_vector_are_told_from_those_that_have_it(kind: Kind) -> None:
    plain, empty = whole(1), whole(2)
    sparse = SparseVector((3,), (0.5,))
    kind.target.upsert([replace(plain, vectors={**plain.vectors, "bm25": sparse})])
    kind.target.upsert([replace(empty, vectors={**empty.vectors, "bm25": SparseVector((), ())})])
    kind.target.upsert([whole(3)])
    kind.target.open_rows([], [opened(4, 2)])
    assert [one.id for one in kind.target.records(lacking="v").records] == [4]
    assert [one.id for one in kind.target.records(lacking="bm25").records] == [3, 4]
    assert kind.target.lacking("v", [1, 4, 9]) == {4}
    assert kind.target.lacking("bm25", [1, 2, 3]) == {3}
    assert kind.target.lacking("bm25", []) == set()


def test_vectors_come_by_id_and_name(kind: Kind) -> None:
    kind.target.upsert([whole(1)])
    kind.target.open_rows([], [opened(2, 2)])
    found = kind.target.vectors("v", [1, 2, 3])
    assert found.keys() == {1}
    assert found[1] == pytest.approx([0.6, 0.8])


def test_a_whole_write_replaces_foreign_keys_and_vectors(kind: Kind) -> None:
    with_theirs(kind)
    kind.target.upsert([whole(1, "y")])
    assert is_whole(kind, whole(1, "y"))


@pytest.mark.rule("QT-05")
def test_a_whole_write_preserves_what_it_does_not_name_and_replaces_what_it_does(
    preserving: Kind,
) -> None:
    with_theirs(preserving)
    written = Point(1, {"metadata": {"b": 2}, SYNC_KEY: {"row": "1"}}, {"v": (0.8, 0.6)})
    assert preserving.target.upsert([written, whole(2)]) == {}
    found = preserving.peek(1)
    assert found is not None
    assert found[0] == {"document": "x", "theirs": {"k": [1]}, **written.payload}
    assert found[1] == {"v": pytest.approx([0.8, 0.6]), "bm25": [3, 0.5]}
    assert is_whole(preserving, whole(2))


@pytest.mark.rule("QT-05")
def test_a_payload_write_preserves_what_it_does_not_name(preserving: Kind) -> None:
    with_theirs(preserving)
    before = preserving.peek(1)
    written = Point(1, {"document": "new", "metadata": {"b": 2}, SYNC_KEY: {"row": "1"}})
    assert preserving.target.overwrite([written]) == {}
    found = preserving.peek(1)
    assert found is not None
    assert before is not None
    assert found[0] == {"theirs": {"k": [1]}, **written.payload}
    assert found[1] == before[1]


@pytest.mark.rule("QT-05")
def test_a_point_that_is_deleted_takes_what_was_preserved_with_it(preserving: Kind) -> None:
    with_theirs(preserving)
    preserving.target.delete([1])
    preserving.target.upsert([whole(1)])
    assert is_whole(preserving, whole(1))


@pytest.mark.rule("QT-05")
def test_a_record_that_opens_a_row_may_come_twice_where_others_are_preserved(
    preserving: Kind,
) -> None:
    for _ in range(2):
        preserving.target.open_rows([], [opened(1, 4)])
    assert preserving.target.look_up({1: (1,)}) == {(1,): Held("1", "", "", 4)}


def with_theirs(kind: Kind) -> None:
    """Write a point that has a key and a vector more than those that follow."""
    plain = whole(1)
    vectors = {**plain.vectors, "bm25": SparseVector((3,), (0.5,))}
    kind.target.upsert([Point(1, {**plain.payload, "theirs": {"k": [1]}}, vectors)])


def is_whole(kind: Kind, written: Point) -> bool:
    """Say whether a point has what was written, and nothing else."""
    found = kind.peek(written.id)
    assert found is not None
    return found[0] == written.payload and found[1] == {"v": pytest.approx([0.6, 0.8])}
