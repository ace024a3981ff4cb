"""A target that holds nothing and takes everything: for dry runs and for measuring the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syncer.keys import Key, PointId
from syncer.model import Held, Point, Reason, Vector
from syncer.records import Record, RecordPage


class NullTarget:
    """Takes every write and forgets it; see ``syncer.ports.Target`` for the contract."""

    def __init__(self) -> None:
        self._token: str | None = None
        self.written = 0

    def count(self) -> int:
        """Return 0."""
        return 0

    def look_up(self, ids: Mapping[PointId, Key]) -> dict[Key, Held]:  # noqa: ARG002
        """Return nothing."""
        return {}

    def token(self) -> str | None:
        """Return the token that was written last."""
        return self._token

    def write_token(self, token: str) -> None:
        """Keep the token, the only thing that is kept."""
        self._token = token

    def batches(self, points: Sequence[Point]) -> list[Sequence[Point]]:
        """Return all points at once, if there are any."""
        return [points] if points else []

    def upsert(self, points: Sequence[Point]) -> dict[PointId, tuple[Reason, str]]:
        """Count the points."""
        self.written += len(points)
        return {}

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Do nothing."""

    def overwrite(self, points: Sequence[Point]) -> dict[PointId, tuple[Reason, str]]:  # noqa: ARG002
        """Do nothing."""
        return {}

    def delete(self, ids: Sequence[PointId]) -> None:
        """Do nothing."""

    def row_page(self, offset: PointId | None = None) -> tuple[list[str], PointId | None]:  # noqa: ARG002
        """Return an empty page."""
        return [], None

    def records(self, offset: PointId | None = None, *, lacking: str = "") -> RecordPage:  # noqa: ARG002
        """Return an empty page."""
        return RecordPage(())

    def records_of(self, ids: Sequence[PointId]) -> tuple[Record, ...]:  # noqa: ARG002
        """Return nothing."""
        return ()

    def lacking(self, vector: str, ids: Sequence[PointId]) -> set[PointId]:  # noqa: ARG002
        """Return nothing."""
        return set()

    def vectors(self, vector: str, ids: Sequence[PointId]) -> dict[PointId, Vector]:  # noqa: ARG002
        """Return nothing."""
        return {}
