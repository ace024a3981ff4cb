"""Which rows are gone or out of scope: counted before anything is taken out of the target."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from syncer.keys import Key, decode_key
from syncer.model import Position
from syncer.source.queries import Queries

_PAGE = 1000  # keys that are counted at a time


@dataclass(frozen=True, slots=True)
class Departures:
    """Looks through the pending log, and through the rest of a walk, one transaction a page.

    Expired rows do not count: they were to go.
    """

    connection: sqlite3.Connection
    queries: Queries
    snapshot: Callable[[], AbstractContextManager[None]]

    def pages(self, position: Position, head: int) -> Iterator[list[Key]]:
        """Yield the keys up to `head` whose rows are gone or out of scope."""
        keys = self._changed(position.change_seq, head)
        while keys:
            with self.snapshot():
                gone = [key for key in dict.fromkeys(keys.values()) if not self.is_member(key)]
            yield gone
            keys = self._changed(max(keys), head)
        if not position.walked:
            yield from self.outsiders(position)

    def _changed(self, after: int, head: int) -> dict[int, Key]:
        with self.snapshot():
            entries = self.connection.execute(self.queries.changes, (after, head, _PAGE))
            return {seq: tuple(parts) for seq, *parts in entries.fetchall()}

    def is_member(self, key: Key) -> bool:
        """Say whether the row with this key is there and in scope, expired or not."""
        return self.connection.execute(*self.queries.is_member(key)).fetchone() is not None

    def outsiders(self, position: Position) -> Iterator[list[Key]]:
        """Yield the keys behind the last one whose rows are out of scope."""
        after = decode_key(position.last_id) if position.last_id is not None else None
        while True:
            with self.snapshot():
                found = self.connection.execute(*self.queries.outsiders(after, _PAGE)).fetchall()
            yield found
            if len(found) < _PAGE:
                return
            after = found[-1]
