"""Which rows have expired since the last check; they are taken out of the target."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from syncer.model import Position, Row
from syncer.source.collector import Collector
from syncer.source.queries import Queries


@dataclass(frozen=True, slots=True)
class Expired:
    """Finds them by look-ups in an index. Its methods belong into a read transaction."""

    connection: sqlite3.Connection
    queries: Queries
    expires: bool  # whether the table says when a row expires

    def has_any(self, position: Position, now: str) -> bool:
        """Say whether a row expires between the last check and now, whichever comes first."""
        if not self.expires or position.expired_to is None:
            return False
        span = (min(position.expired_to, now), max(position.expired_to, now))
        return self._edge(*span) is not None

    def first(self, position: Position, now: str) -> str | None:
        """Return when the first row expired since the last check, or None."""
        if not self.expires or position.expired_to is None:
            return None
        return self._edge(position.expired_to, now)

    def next(self, now: str) -> str | None:
        """Return when the next row expires after `now`, or None."""
        if not self.expires:
            return None
        found = self.connection.execute(self.queries.next_expiry, (now,)).fetchone()
        return str(found[0]) if found and isinstance(found[0], str) else None

    def serve(self, position: Position, now: str, window: Collector) -> Position:
        """Add the rows that expired since the last check: whole groups of equal times."""
        if not self.expires or position.expired_to is None:
            return replace(position, expired_to=now)
        if window.full:
            window.cut = window.cut or self.has_any(position, now)
            return position if window.cut else replace(position, expired_to=now)
        edge = self._edge(position.expired_to, now, window.room)
        end = now if edge is None else edge
        keys = self.connection.execute(self.queries.expired, (position.expired_to, end))
        for key in keys.fetchall():
            window.add(Row(key, expired=True))
        window.cut = window.cut or edge is not None
        return replace(position, expired_to=end)

    def _edge(self, after: str, until: str, skipped: int = 0) -> str | None:
        """Return when the first row expires in this span, `skipped` ones left aside."""
        span = (after, until, skipped)
        found = self.connection.execute(self.queries.expiry_edge, span).fetchone()
        return found[0] if found else None
