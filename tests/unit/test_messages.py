"""What points are over gRPC, made without the client's models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from qdrant_client import grpc
from qdrant_client.conversions.conversion import RestToGrpc

from syncer.model import Point, SparseVector, Vector
from syncer.target import messages
from syncer.target.structs import structs

ROW = np.array([0.1, -1e-9, 3.0], np.float32)
UUID = "0f0b0d0c-0000-5000-8000-000000000001"
PAYLOAD = {
    "document": 'naïve "text" \u2028 \x01 \U0001f600',
    "metadata": {"none": None, "list": [1, 2.5, True, {"deep": {}}], "large": 2**63 - 1},
    "_sync": {"row": "1", "content": "", "chunk": 0},
}


@pytest.mark.parametrize(
    "vectors",
    [
        {},
        {"v": (0.6, 0.8)},
        {"v": ROW, "bm25": SparseVector((3, 2**32 - 1), (0.5, 1e-7))},
        {"bm25": SparseVector((), ())},
    ],
    ids=["none", "dense", "both", "empty"],
)
def test_what_is_sent_says_what_the_client_would_say(
    vectors: dict[str, Vector | SparseVector],
) -> None:
    points = [Point(1, PAYLOAD, vectors), Point(UUID, {}, vectors), Point(2**64 - 1, PAYLOAD)]
    found = messages.written(points)
    assert [grpc.PointStruct.FromString(one) for one in found.values()] == [
        RestToGrpc.convert_point_struct(one) for one in structs(points)
    ]


def test_numbers_have_the_bits_that_they_had() -> None:
    row: Any = ROW
    (found,) = messages.written([Point(1, {}, {"v": row})]).values()
    sent = grpc.PointStruct.FromString(found).vectors.vectors.vectors["v"].dense.data
    assert np.asarray(sent, np.float32).tobytes() == ROW.tobytes()


def test_what_no_message_can_carry_is_nothing() -> None:
    deep: object = 1
    for _ in range(50):
        deep = [deep]
    bad = [Point(1, {"x": 2**63}), Point(2, {"x": "\ud800"}), Point(3, {"x": deep})]
    found = messages.written([*bad, Point(-1, {}), Point(4, PAYLOAD)])
    assert [identifier for identifier, one in found.items() if one == b""] == [1, 2, 3, -1]


def test_null_is_not_left_out_of_a_payload() -> None:
    (found,) = messages.written([Point(1, {"a": None})]).values()
    assert grpc.PointStruct.FromString(found).payload["a"].WhichOneof("kind") == "null_value"
