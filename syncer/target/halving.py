"""Finding the points of a batch that Qdrant does not take; all others are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from syncer.errors import RejectedError, TargetError
from syncer.keys import PointId
from syncer.model import Point, Reason

_TRIES = 2  # of a batch: an error may come although half of it was applied, and pass
_TRIES_ALONE = 4  # of one point, before its row is blamed for the answer
_SUSPICIOUS = 20  # points that are refused, and none taken, are not to blame themselves


class Halving:
    """Writes points by `put`; what is refused is halved down to the point.

    A refusal says nothing of what was applied, so the same points are always sent again whole
    before they are halved.
    """

    def __init__(self, put: Callable[[Sequence[Point]], None]) -> None:
        self._put = put
        self._taken = 0
        self.refused: dict[PointId, tuple[Reason, str]] = {}

    def write(self, points: Sequence[Point]) -> None:
        """Write all points that are taken, and note the others in ``refused``.

        Raises TargetError if so many are refused, and none is taken, that the cause must be
        another.
        """
        error = self._rejection(points)
        if error is None:
            self._taken += len(points)
            return
        if len(points) > 1:
            middle = len(points) // 2
            self.write(points[:middle])
            self.write(points[middle:])
            return
        reason = Reason.TOO_LARGE if error.too_large else Reason.REFUSED
        self.refused[points[0].id] = (reason, f"Qdrant refuses its point: {error.message}")
        if not self._taken and len(self.refused) > _SUSPICIOUS:
            raise TargetError(
                f"{error.message}; so it is with each of {len(self.refused)} points, and none is "
                "taken",
                hint="No row was quarantined for it. See `syncer doctor` and the server's log.",
            )

    def _rejection(self, points: Sequence[Point]) -> RejectedError | None:
        """Return why the points are not taken, None if they are."""
        found: RejectedError | None = None
        for _ in range(_TRIES if len(points) > 1 else _TRIES_ALONE):
            try:
                self._put(points)
            except RejectedError as error:
                found = error
            else:
                return None
        return found
