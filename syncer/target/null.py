"""A target that holds nothing and takes everything: for dry runs and for measuring the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from syncer.keys import Key, PointId
from syncer.model import Held, Point


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

    def upsert(self, points: Sequence[Point]) -> None:
        """Count the points."""
        self.written += len(points)

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Do nothing."""

    def overwrite(self, points: Sequence[Point]) -> None:
        """Do nothing."""

    def delete(self, ids: Sequence[PointId]) -> None:
        """Do nothing."""

    def row_pages(self) -> Iterator[list[str]]:
        """Yield nothing."""
        return iter(())
