"""The change log of a table, as far as it is not read row by row."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from syncer.errors import SchemaError
from syncer.table import TableSpec


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """Says whether there is a log, and where it ends; `path` is for messages."""

    connection: sqlite3.Connection
    path: Path
    spec: TableSpec

    def check(self) -> None:
        """Raise SchemaError unless there is a log."""
        found = self.connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (self.spec.changes,)
        ).fetchone()
        if found is None:
            raise SchemaError(
                f"table {self.spec.table} in {self.path} has no change log",
                hint="Run `syncer attach` to add one; for the table memory_events `syncer init`.",
            )

    def head(self) -> int:
        """Return the last sequence number that the log has given, 0 if none.

        It comes from ``sqlite_sequence``, since a pruned log has no maximum.
        """
        found = self.connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", (self.spec.changes,)
        ).fetchone()
        return int(found[0]) if found else 0
