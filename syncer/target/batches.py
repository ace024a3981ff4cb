"""Which points can never be sent, and how the others are cut into requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

from syncer.keys import PointId
from syncer.model import Point, Reason
from syncer.target.bodies import Written

MOST_ID = 2**64 - 1  # Qdrant's own bound; local mode has none


class Batch(list[Point]):
    """The points of one request, with what they are on the wire."""

    def __init__(self, points: Iterable[Point], found: Written) -> None:
        super().__init__(points)
        self.written = found


def written(points: Sequence[Point], write: Callable[[Sequence[Point]], Written]) -> Written:
    """Return points as `write` makes them by id; those of a batch are known since it was cut."""
    return points.written if isinstance(points, Batch) else write(points)


def cut(
    points: Sequence[Point], most_points: int, most_bytes: int, found: Written, around: int = 1
) -> Iterator[Batch]:
    """Yield `points` in their order, so that no batch passes either bound.

    Each takes `around` bytes more than its JSON. One that passes the bound by itself comes alone.
    """
    batch = Batch((), found)
    size = 0
    for point in points:
        added = len(found[point.id]) + around
        if batch and (len(batch) >= most_points or size + added > most_bytes):
            yield batch
            batch, size = Batch((), found), 0
        batch.append(point)
        size += added
    if batch:
        yield batch


def unfit(point: Point, found: Written, most_bytes: int) -> tuple[Reason, str] | None:
    """Return why a point cannot be sent, None if it can: by its id, its size or its form."""
    if not _is_id(point.id):
        return Reason.REFUSED, "its id is neither an unsigned 64-bit integer nor a UUID"
    if not found[point.id]:
        return Reason.REFUSED, "its payload cannot be sent over gRPC; target.grpc = false may do"
    if (size := len(found[point.id])) > most_bytes:
        return Reason.TOO_LARGE, f"its point has {size} bytes, target.batch_bytes is {most_bytes}"
    return None


def _is_id(identifier: PointId) -> bool:
    if isinstance(identifier, int):
        return 0 <= identifier <= MOST_ID
    try:
        UUID(identifier)
    except ValueError:
        return False
    return True
