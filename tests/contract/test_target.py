"""What every target does: the fake in a dictionary, local mode, and a server by QDRANT_URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest
from contract.fake_target import FakeTarget

from syncer.keys import PointId
from syncer.model import SYNC_KEY, Description, Held, Point, Recipe, Vector
from syncer.ports import Target
from syncer.target import (
    Catalog,
    Connection,
    GenerationTarget,
    TargetSpec,
    connect,
    generation_name,
)

RECIPE = Recipe("v", 2, {"provider": "test"}, {"normaliser": 1})
URL = os.environ.get("QDRANT_URL")


class Kind(Protocol):
    """A target under test, and a way to look into it without it."""

    name: str

    @property
    def target(self) -> Target:
        """Return the target under test."""

    def peek(self, identifier: PointId) -> tuple[dict[str, object], dict[str, list[float]]] | None:
        """Return payload and vectors of a point."""

    def count(self) -> int:
        """Return the number of points."""


class Fake:
    """The dictionary."""

    name = "fake"

    def __init__(self) -> None:
        self.target = FakeTarget()

    def peek(self, identifier: PointId) -> tuple[dict[str, object], dict[str, list[float]]] | None:
        """Look into the dictionary."""
        point = self.target.points.get(identifier)
        if point is None:
            return None
        return dict(point.payload), {name: list(v) for name, v in point.vectors.items()}

    def count(self) -> int:
        """Count the dictionary."""
        return self.target.count()


class Qdrant:
    """A generation in local mode or on a server."""

    def __init__(self, name: str, connection: Connection, alias: str) -> None:
        self.name = name
        self._connection = connection
        self._generation = generation_name(alias, datetime.now(UTC))
        description = Description(RECIPE, "source", "t", "mapping")
        Catalog(connection).create(self._generation, alias, description, ["_sync.row"])
        self.target = GenerationTarget(connection, self._generation)

    def peek(self, identifier: PointId) -> tuple[dict[str, object], dict[str, list[float]]] | None:
        """Ask the client."""
        records = self._connection.client.retrieve(
            self._generation, [identifier], with_payload=True, with_vectors=True
        )
        if not records:
            return None
        return records[0].payload or {}, records[0].vector  # type: ignore[return-value]

    def count(self) -> int:
        """Count exactly."""
        return self.target.count()

    def drop(self) -> None:
        """Leave nothing behind on a server."""
        self._connection.client.delete_collection(self._generation)


KINDS = ["fake", "local"] + (["server"] if URL else [])


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    """Each target that can be had here."""
    if request.param == "fake":
        yield Fake()
        return
    local = request.param == "local"
    key = os.environ.get("QDRANT_API_KEY")
    spec = TargetSpec(
        path=tmp_path / "qdrant" if local else None, url=None if local else URL, api_key=key
    )
    with connect(spec) as connection:
        assert connection.local == local
        found = Qdrant(request.param, connection, "syncer-contract-test")
        yield found
        found.drop()


@pytest.fixture(autouse=True)
def _says_which_target_it_ran_on(kind: Kind, request: pytest.FixtureRequest) -> None:
    assert f"[{kind.name}" in request.node.name
    expected = FakeTarget if kind.name == "fake" else GenerationTarget
    assert isinstance(kind.target, expected)


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
    assert kind.target.look_up({1: (1,)}) == {(1,): Held("1", "c", "p", 1)}


def test_a_look_up_returns_what_is_there_and_leaves_out_what_is_not(kind: Kind) -> None:
    uuid = "6a7f75b2-5afe-51b8-b4b4-da7ae14a678d"
    kind.target.upsert([whole(1), whole(uuid, chunks=3)])
    found = kind.target.look_up({1: (1,), uuid: ("a",), 2: (2,)})
    assert found == {(1,): Held("1", "c", "p", 1), ("a",): Held("1", "c", "p", 3)}


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


def test_a_thousand_points_arrive_in_batches(kind: Kind) -> None:
    kind.target.upsert([whole(number) for number in range(1000)])
    assert kind.count() == 1000
    ids: dict[PointId, tuple[int]] = {number: (number,) for number in range(1500)}
    assert len(kind.target.look_up(ids)) == 1000
