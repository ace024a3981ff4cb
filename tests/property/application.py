"""The application: it owns the database and the clock, and never waits for anybody."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from property.modes import DATABASE, Mode
from property.promises import Clocks
from property.stamping import Stamps
from property.tables import Record
from property.writes import FIRST_SECOND, Write, second_of, stamp

from syncer.keys import Key


class Application:
    """A database and who writes to it; every commit becomes a promise of the mode's."""

    def __init__(self, folder: Path, mode: Mode) -> None:
        self.second = FIRST_SECOND
        self.seen = FIRST_SECOND  # the latest second that the clock has shown to a run
        self.stamps = Stamps()
        self.promise = mode.promise(self.stamps)
        self.table = mode.table
        self.backup: sqlite3.Connection | None = None
        self.database = sqlite3.connect(folder / DATABASE, isolation_level=None)
        self.database.execute("PRAGMA synchronous = OFF")
        self._given = 0  # the highest number of a row so far

    def close(self) -> None:
        """Close the connections."""
        self.database.close()
        if self.backup is not None:
            self.backup.close()

    def now(self) -> str:
        """Return what the clock shows."""
        return stamp(self.second)

    @property
    def clocks(self) -> Clocks:
        """What the clock shows, and has shown."""
        return Clocks(self.second, self.seen)

    def write(self, write: Write) -> int:
        """Commit one statement; return how many rows it changed."""
        changed = self._execute(write)
        self._committed()
        return changed

    def write_together(self, writes: Sequence[Write], end: str) -> int:
        """Make several changes in one transaction that ends with this word."""
        self.database.execute("BEGIN")
        changed = sum(max(0, self._execute(write)) for write in writes)
        self.database.execute(end)
        self._committed()
        return changed

    def records(self) -> dict[Key, Record]:
        """Return all rows by their keys."""
        return self.table.records(self.database)

    def content_of(self, row: int) -> str | None:
        """Return the text of a row, or None if there is no such row."""
        record = self.records().get(self.table.key_of(row))
        return None if record is None else record.content

    def next_expiry(self) -> int | None:
        """Return the second at which the next row expires, or None."""
        sql = f"SELECT min(expires_at) FROM {self.table.name} WHERE expires_at > ?"
        (found,) = self.database.execute(sql, (self.now(),)).fetchone()
        return None if found is None else second_of(found)

    def back_up(self) -> None:
        """Keep a copy of the database, instead of an earlier one."""
        if self.backup is not None:
            self.backup.close()
        self.backup = sqlite3.connect(":memory:")
        self.database.backup(self.backup)

    def restore(self) -> None:
        """Put the copy in the database's place."""
        assert self.backup is not None, "there is no copy"
        self.backup.backup(self.database)
        self._committed()

    def toggle_index(self) -> None:
        """Drop the index on the column of stamps, or make it again."""
        name = f"{self.table.name}_{self.table.stamp}"
        sql = "SELECT 1 FROM sqlite_master WHERE name = ?"
        if self.database.execute(sql, (name,)).fetchone():
            self.database.execute(f"DROP INDEX {name}")
        else:
            self.database.execute(f"CREATE INDEX {name} ON {self.table.name} ({self.table.stamp})")

    def _execute(self, write: Write) -> int:
        self._given = max(self._given, write.row or self._given + 1, write.other or 0)
        statement = self.table.sql(write, self._given, self.stamps.make(self.second))
        return self.database.execute(*statement).rowcount

    def _committed(self) -> None:
        self.promise.committed(self.records(), self.clocks)
