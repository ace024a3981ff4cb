"""How large points are, which can never be sent, and how they are cut into requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from syncer.keys import PointId, canonical_json
from syncer.model import Point, Reason, SparseVector, Vector

MOST_ID = 2**64 - 1  # Qdrant's own bound; local mode has none
_BYTES_A_NUMBER = 25  # a float32 as JSON at most: sign, 17 digits, point, exponent, comma, blank
_BYTES_A_POINT = 160  # id, names and braces


class Batch(list[Point]):
    """The points of one request, with upper bounds of their serialised bytes by id."""

    def __init__(self, points: Iterable[Point], sizes: Mapping[PointId, int]) -> None:
        super().__init__(points)
        self.sizes = sizes


def sizes_at_most(points: Sequence[Point]) -> Mapping[PointId, int]:
    """Return upper bounds of points' serialised bytes by id; raise ValueError if one is no JSON.

    Those of a batch are known since it was cut.
    """
    if isinstance(points, Batch):
        return points.sizes
    return {point.id: _size_at_most(point) for point in points}


def _size_at_most(point: Point) -> int:
    count = sum(
        2 * len(vector.indices) if isinstance(vector, SparseVector) else len(vector)
        for vector in point.vectors.values()
    )
    payload = len(canonical_json(point.payload).encode())
    return payload + count * _BYTES_A_NUMBER + _BYTES_A_POINT


def cut(
    points: Sequence[Point], most_points: int, most_bytes: int, sizes: Mapping[PointId, int]
) -> Iterator[Batch]:
    """Yield `points` in their order, so that no batch passes either bound.

    `sizes` are upper bounds, for the sake of speed: what is sent is measured once more then. A
    point that passes the bound by itself comes alone.
    """
    batch = Batch((), sizes)
    size = 0
    for point in points:
        added = sizes[point.id]
        if batch and (len(batch) >= most_points or size + added > most_bytes):
            yield batch
            batch, size = Batch((), sizes), 0
        batch.append(point)
        size += added
    if batch:
        yield batch


def unfit(point: Point, size: int, most_bytes: int) -> tuple[Reason, str] | None:
    """Return why a point cannot be sent to any Qdrant, None if it can: by its id or its size."""
    if not _is_id(point.id):
        return Reason.REFUSED, "its id is neither an unsigned 64-bit integer nor a UUID"
    if size > most_bytes and (size := _exactly(point)) > most_bytes:
        return Reason.TOO_LARGE, f"its point has {size} bytes, target.batch_bytes is {most_bytes}"
    return None


def numbers(vector: Vector | SparseVector) -> list[float]:
    """Return a vector as plain numbers: a sparse one as its indices and its values."""
    if isinstance(vector, SparseVector):
        return [*vector.indices, *vector.values]
    listed = getattr(vector, "tolist", None)  # numpy's rows convert themselves, and much faster
    return listed() if listed is not None else list(vector)


def _is_id(identifier: PointId) -> bool:
    if isinstance(identifier, int):
        return 0 <= identifier <= MOST_ID
    try:
        UUID(identifier)
    except ValueError:
        return False
    return True


def _exactly(point: Point) -> int:
    vectors = {name: numbers(vector) for name, vector in point.vectors.items()}
    whole = {"id": point.id, "payload": point.payload, "vector": vectors}
    return len(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())
