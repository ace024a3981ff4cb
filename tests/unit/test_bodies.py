"""Bodies of requests that are made without the client's models."""

from __future__ import annotations

import numpy as np
import pytest
from qdrant_client import models

from syncer.model import Point, SparseVector
from syncer.target import bodies

ROW = np.array([0.1, -1e-9, 3.0], np.float32)
UUID = "0f0b0d0c-0000-5000-8000-000000000001"
PAYLOAD = {
    "document": 'naïve "text" \u2028 \x01 \U0001f600',
    "metadata": {"none": None, "list": [1, 2.5, True, {"deep": {}}], "large": 2**63 - 1},
    "_sync": {"row": "1", "content": "", "chunk": 0},
}
NOTHING, BAD = SparseVector((), ()), (float("nan"), float("inf"))
SPARSE = SparseVector((3, 2**32 - 1), (0.5, 1e-7))


def _by_the_client(points: list[Point]) -> str:
    structs = [
        models.PointStruct(
            id=point.id,
            payload=dict(point.payload),
            vector={
                name: models.SparseVector(indices=list(one.indices), values=list(one.values))
                if isinstance(one, SparseVector)
                else [float(number) for number in one]
                for name, one in point.vectors.items()
            },
        )
        for point in points
    ]
    return _as_sent(models.PointsList(points=structs))


def _as_sent(body: models.PointsList) -> str:
    return body.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True)


@pytest.mark.parametrize(
    "vectors",
    [{}, {"v": (0.6, 0.8)}, {"v": ROW, "bm25": SPARSE}, {"bm25": NOTHING}, {"v": BAD}],
    ids=["none", "dense", "both", "empty", "not a number"],
)
def test_what_is_sent_is_to_the_byte_what_the_client_would_send(
    vectors: dict[str, tuple[float, ...] | SparseVector],
) -> None:
    points = [Point(1, PAYLOAD, vectors), Point(UUID, {}, vectors), Point(2**64 - 1, PAYLOAD)]
    assert _as_sent(bodies.upsert(points)) == _by_the_client(points)
