"""A table that is only added to: new rows are those behind the last key, and nothing is edited.

Nothing is written to the database. What the key cannot tell, a verification has to find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from syncer.errors import IdentityError
from syncer.keys import Key, decode_key, encode_key
from syncer.model import Position, Window
from syncer.source import filesystem
from syncer.source.collector import Collector, Limits
from syncer.source.database import BUSY_SLICE
from syncer.source.departures import Departures
from syncer.source.feed import LogSource
from syncer.source.pending import Pending
from syncer.table import TableSpec, is_reusable_key

_REUSED_KEY = (
    "{} is INTEGER PRIMARY KEY without AUTOINCREMENT: SQLite gives the id of a deleted last row to "
    "the next new row. Where changes are not logged, the new row then passes for the old one until "
    "the next verification."
)


class AppendSource(LogSource):
    """Reads a table by its key alone; see ``syncer.ports.Source`` for the contract.

    A run's head is a number of its own, and stands for the last key there was when it was asked
    for: a run ends although a writer never does.
    """

    def __init__(
        self, path: Path, spec: TableSpec, limits: Limits | None = None, busy: float = BUSY_SLICE
    ) -> None:
        self._runs = 0
        self._ends: tuple[int, Key | None] | None = None
        super().__init__(path, spec, limits, busy)

    def warnings(self) -> list[str]:
        """Return what is risky about the table, in words."""
        found = [*filesystem.warning(self._path), *self._joined.warnings]
        if is_reusable_key(self.columns, self._spec):
            found.append(_REUSED_KEY.format(f"{self._spec.table}.{self._spec.key[0]}"))
        return found

    def head(self) -> int:
        """Return a number for a run that begins now; it reads up to the last key that there is."""
        self._runs += 1
        with self._snapshot():
            self._ends = (self._runs, self._last_key())
        return self._runs

    def is_idle(self, position: Position, now: str) -> bool:
        """Say whether there is nothing to read from `position` on, by look-ups in indexes."""
        with self._snapshot():
            self._check_forward(position)
            return position.walked and not (
                self._has_new(position) or self._expired.has_any(position, now)
            )

    def has_reached(self, position: Position, head: int, now: str) -> bool:  # noqa: ARG002
        """Say whether everything that is known to have changed was served."""
        return self.is_caught_up(position, now)

    def pending(self, position: Position) -> int:
        """Return how many rows are behind the last key."""
        with self._snapshot():
            return self._count_new(position)

    def oldest_change(self, position: Position, now: str) -> str | None:
        """Return when the first row expired that is not taken out; nothing else has a time."""
        with self._snapshot():
            return self._expired.first(position, now)

    def gone(self, position: Position, *, head: int, now: str) -> Iterator[list[Key]]:  # noqa: ARG002
        """Yield, in pages, the keys up to `head` whose rows are gone or out of scope."""
        if not position.walked:
            yield from self._departures().outsiders(position)

    def _changed(self, position: Position, keys: Sequence[Key], now: str) -> set[str]:
        """Return nothing: what is there stays as it is."""
        del position, keys, now
        return set()

    def _pending(self) -> Pending:
        return replace(super()._pending(), grows=True)

    def _departures(self) -> Departures:
        return Departures(self._connection, self._queries, self._snapshot)

    def _read(self, position: Position, head: int, now: str) -> Window:
        self._check_forward(position)
        if position.expired_to is not None and now < position.expired_to:
            return self._step_back(position, now)
        window = Collector(self._limits)
        position = self._serve_changes(position, head, now, window)
        position = self._expired.serve(position, now, window)
        position = self._serve_new(position, head, now, window)
        return Window(tuple(window.rows.values()), position, more=window.cut)

    def _serve_changes(
        self, position: Position, head: int, now: str, window: Collector
    ) -> Position:
        """Add nothing: what is there stays as it is."""
        del head, now, window
        return position

    def _serve_new(self, position: Position, head: int, now: str, window: Collector) -> Position:
        """Add the rows behind the last key, up to the last one there was when the run began."""
        run, end = self._ends or (None, None)
        if run == head and end is None:
            return replace(position, walked=True)
        until = end if run == head else None
        following = self._walk(replace(position, walked=False), now, window, until)
        window.cut = window.cut or not following.walked
        return replace(following, walked=position.walked or following.walked)

    def _check_log(self) -> None:
        """Ask for nothing: there is no log."""

    def _check_forward(self, position: Position) -> None:
        """Raise IdentityError if the table ends before the last key that was read."""
        if not position.walked or position.last_id is None:
            return
        last = decode_key(position.last_id)
        if None in last:  # such keys are compared with nothing
            return
        if self._connection.execute(*self._queries.reaches(last)).fetchone() is not None:
            return
        found = self._last_key()
        if found is not None and self._was_given(last):
            return
        ends = "is empty" if found is None else f"ends at key {encode_key(found)}"
        raise IdentityError(
            f"table {self._spec.table} in {self._path} {ends}, but key {position.last_id} was "
            "already read: the database was restored, replaced or emptied, or its last rows were "
            "deleted",
            hint="Check which database this is. To compare both stores row by row, run "
            "`syncer once --on-regression reconcile`.",
        )

    def _was_given(self, key: Key) -> bool:
        """Say whether AUTOINCREMENT remembers this key: then its row was deleted."""
        if not self.columns.has_autoincrement or self.columns.primary_key != self._spec.key:
            return False
        found = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", (self._spec.table,)
        ).fetchone()
        return found is not None and isinstance(key[0], int) and found[0] >= key[0]

    def _last_key(self) -> Key | None:
        found = self._connection.execute(self._queries.last_key).fetchone()
        return None if found is None else tuple(found)

    def _has_new(self, position: Position) -> bool:
        first = self._queries.walk(_last(position), "", 1)
        return self._connection.execute(*first).fetchone() is not None

    def _count_new(self, position: Position) -> int:
        count = self._connection.execute(*self._queries.count_after(_last(position))).fetchone()
        return int(count[0])


def _last(position: Position) -> Key | None:
    return decode_key(position.last_id) if position.last_id is not None else None
