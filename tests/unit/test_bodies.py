"""What points are on the wire, made without the client's models."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models

from syncer.keys import PointId
from syncer.model import Point, SparseVector, Vector
from syncer.target import bodies
from syncer.target.structs import as_client

ROW = np.array([0.1, -1e-9, 3.0], np.float32)
UUID = "0f0b0d0c-0000-5000-8000-000000000001"
PAYLOAD = {
    "document": 'naïve "text" \u2028 \x01 \U0001f600',
    "metadata": {"none": None, "list": [1, 2.5, True, {"deep": {}}], "large": 2**63 - 1},
    "_sync": {"row": "1", "content": "", "chunk": 0},
}
NOTHING = SparseVector((), ())
SPARSE = SparseVector((3, 2**32 - 1), (0.5, 1e-7))
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def _by_the_client(points: list[Point]) -> object:
    structs = [
        models.PointStruct(
            id=point.id,
            payload=dict(point.payload),
            vector={name: as_client(one) for name, one in point.vectors.items()},
        )
        for point in points
    ]
    body = models.PointsList(points=structs)
    return json.loads(body.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True))


def _sent(points: list[Point]) -> bytes:
    return bodies.upsert([point.id for point in points], bodies.written(points))


def _as_stored(sent: object) -> object:
    """Return JSON with its fractions as Qdrant keeps those of vectors."""
    match sent:
        case dict():
            return {name: _as_stored(one) for name, one in sent.items()}
        case list():
            return [_as_stored(one) for one in sent]
        case float():
            return np.float32(sent)
        case _:
            return sent


@pytest.mark.parametrize(
    "vectors",
    [{}, {"v": (0.6, 0.8)}, {"v": ROW, "bm25": SPARSE}, {"bm25": NOTHING}],
    ids=["none", "dense", "both", "empty"],
)
def test_what_is_sent_says_what_the_client_would_say(
    vectors: dict[str, Vector | SparseVector],
) -> None:
    points = [Point(1, PAYLOAD, vectors), Point(UUID, {}, vectors), Point(2**64 - 1, PAYLOAD)]
    assert _as_stored(json.loads(_sent(points))) == _as_stored(_by_the_client(points))


@given(st.lists(FLOATS, max_size=20))
def test_no_bit_of_a_number_is_lost_and_no_digit_is_for_nothing(found: list[float]) -> None:
    (sent,) = json.loads(_sent([Point(1, {}, {"v": found})]))["points"]
    row = np.asarray(found, np.float32)
    assert np.asarray(sent["vector"]["v"], np.float32).tobytes() == row.tobytes()
    assert [str(np.float32(one)) for one in sent["vector"]["v"]] == [str(one) for one in row]


def test_a_payload_is_sent_as_its_hash_was_made_of_it() -> None:
    large = {"b": 10**30, "a": [1.0, 1e300]}
    assert b'"payload":{"a":[1.0,1e+300],"b":1' in _sent([Point(1, large)])


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": "\ud800"}])
def test_what_is_no_json_is_refused_here(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the encoders have their own words
        bodies.written([Point(1, bad)])


def test_only_the_points_that_are_asked_for_are_sent() -> None:
    found = bodies.written([Point(one, {}) for one in (1, UUID, 3)])
    wanted: list[PointId] = [3, UUID]
    body = json.loads(bodies.upsert(wanted, found))
    assert [one["id"] for one in body["points"]] == wanted
