"""The state's database: short statements, immediate transactions, errors that name the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote

from syncer.errors import SchemaError
from syncer.sqlite import transaction, translated

BUSY_SLICE = 5.0  # seconds that SQLite itself waits; beyond that the retry policy decides


class StateDatabase:
    """One connection to the state; it never makes a file that is not there."""

    def __init__(self, path: Path, busy: float = BUSY_SLICE) -> None:
        self.path = path
        with self.translated():
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode=rw", uri=True, timeout=busy, isolation_level=None
            )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Return all rows that `sql` selects."""
        with self.translated():
            return self._connection.execute(sql, values).fetchall()

    def one(self, sql: str, values: Sequence[object] = ()) -> tuple[object, ...]:
        """Return the one row that `sql` selects. Raises SchemaError if there is none."""
        rows = self.rows(sql, values)
        if not rows:
            raise SchemaError(
                f"{self.path}: a record of syncer's state is missing",
                hint="Somebody changed syncer's tables. Build the collection again.",
            )
        return rows[0]

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement inside a transaction and return how many rows it changed."""
        return self._connection.execute(sql, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write in one transaction; on any exception nothing of it stays."""
        with self.translated(), transaction(self._connection):
            yield

    def translated(self) -> AbstractContextManager[None]:
        """Raise SQLite's errors as SourceError or SourceBusyError that name the file."""
        return translated(
            f"the database {self.path}",
            "holds syncer's state, which cannot be read or written",
            "syncer needs write access to the file and to its folder.",
        )
