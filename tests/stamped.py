"""A table with a change column that nobody watches, and a source on it, for the tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from syncer.model import Position, Row
from syncer.source import Limits, StampedSource, Stamps, TableSpec
from syncer.source.append import AppendSource

SCHEMA = """
CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, at DATETIME, gone INTEGER, due TEXT);
CREATE INDEX notes_at ON notes (at);
"""
SPEC = TableSpec("notes", content="body")
MIDNIGHT = "2024-07-27T00:00:00.000Z"


def at(seconds: float) -> str:
    """Return the moment so many seconds into the tests' day."""
    moment = datetime.fromisoformat(MIDNIGHT) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Notes:
    """A database with notes, and what a generation has seen of it."""

    def __init__(self, path: Path, schema: str = SCHEMA) -> None:
        self.path = path
        self._writer = sqlite3.connect(path, isolation_level=None)
        self._writer.executescript(schema)
        self.position = Position("g", expired_to=at(0))

    def close(self) -> None:
        """Close the application's connection."""
        self._writer.close()

    def execute(self, sql: str, *values: object) -> None:
        """Run a statement as the application does."""
        self._writer.execute(sql, values)

    def put(self, row: int, body: str, stamp: object) -> None:
        """Add a note or give it another text."""
        self.execute(
            "INSERT INTO notes (id, body, at) VALUES (?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body, at = excluded.at",
            *(row, body, stamp),
        )

    def fill(self, count: int, stamp: object) -> None:
        """Add so many notes with one stamp."""
        for row in range(1, count + 1):
            self.put(row, f"note {row}", stamp)

    def source(
        self, look_back: float = 120.0, rows: int = 3, spec: TableSpec = SPEC
    ) -> StampedSource:
        """Return a source with small windows."""
        return StampedSource(self.path, spec, Stamps("at", look_back), Limits(rows=rows))

    def run(self, source: AppendSource, now: float) -> list[Row]:
        """Read window after window as a run does; return all rows."""
        return [row for window in self.windows(source, now) for row in window]

    def windows(self, source: AppendSource, now: float) -> list[list[Row]]:
        """Read window after window as a run does; return their rows."""
        head, found = source.head(), []
        for _ in range(200):
            window = source.read(self.position, head=head, now=at(now))
            self.position = window.next
            found.append(list(window.rows))
            if not window.more:
                return found
        raise AssertionError("the run does not end")

    def settle(self, source: AppendSource, now: float) -> None:
        """Run until nothing is read again."""
        self.run(source, now)
        self.run(source, now + 1000)
        self.run(source, now + 2000)
        assert source.is_idle(self.position, at(now + 2000))


def keys(rows: list[Row]) -> list[object]:
    """Return the keys of rows that have one part."""
    return [row.key[0] for row in rows]


def dump(path: Path) -> list[str]:
    """Return everything that a database holds."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())
