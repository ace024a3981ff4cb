"""Which rows are still to be looked at: a comparison of both stores takes them for no drift."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from syncer.keys import Key, decode_key, encode_key
from syncer.model import Position, Row
from syncer.source.order import bound, mark
from syncer.source.queries import Queries

_VALUES = 900  # marks in a statement; SQLite before 3.32 takes 999


@dataclass(frozen=True, slots=True)
class Pending:
    """Looks single keys up. Its methods belong into a read transaction."""

    connection: sqlite3.Connection
    queries: Queries
    row_at: Callable[[Key, str], Row] | None = None  # where rows expire
    grows: bool = False  # whether new rows are found behind the walk's last key for ever

    def changed(self, after: int, keys: Sequence[Key]) -> set[str]:
        """Return which of `keys`, as JSON, stand in the change log behind `after`."""
        found: set[str] = set()
        left = iter(keys)
        width = max((len(key) for key in keys), default=1)
        while some := list(islice(left, _VALUES // width)):
            marks = ", ".join(f"({', '.join(map(mark, key))})" for key in some)
            values = [value for key in some for value in bound(key)]
            rows = self.connection.execute(self.queries.changed(marks), (after, *values))
            found |= {encode_key(tuple(row)) for row in rows}
        return found

    def ahead(self, position: Position, keys: Sequence[Key], now: str) -> set[str]:
        """Return the rows, as JSON, that the walk has not come to, or whose expiry was not served.

        A row that is not in the table is not ahead of the walk, which would not see it.
        """
        found = {encode_key(key) for key in keys if self._expires(position, key, now)}
        if self.grows or not position.walked:
            after = decode_key(position.last_id) if position.last_id is not None else None
            found |= {encode_key(key) for key in keys if self._is_behind(key, after)}
        return found

    def _is_behind(self, key: Key, after: Key | None) -> bool:
        sql, values = self.queries.is_behind(key, after)
        return self.connection.execute(sql, values).fetchone() is not None

    def _expires(self, position: Position, key: Key, now: str) -> bool:
        if self.row_at is None or position.expired_to is None:
            return False
        return self.row_at(key, position.expired_to).present != self.row_at(key, now).present
