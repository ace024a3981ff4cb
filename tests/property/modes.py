"""How a mode reads the table: the part of a schedule that differs from mode to mode."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from property.promises import Everything, NewRows, Promise, StampedRows
from property.stamping import LOOK_BACK, Stamps
from property.tables import EVENTS, MEMORIES, NOTES, PAIRS, WORDS, Table

from syncer import changelog, migrate
from syncer.keys import decode_key
from syncer.model import Position
from syncer.ports import Source
from syncer.source import AppendSource, Limits, LogSource, StampedSource, TableSpec
from syncer.source import Stamps as StampColumn

DATABASE = "memory.db"
STATE = "state.db"


class Feed(Source, Protocol):
    """A source as the command line uses it."""

    json_columns: frozenset[str]

    def head(self) -> int:
        """Return how far there is to go."""

    def is_idle(self, position: Position, now: str) -> bool:
        """Say whether nothing has changed or expired since `position`."""

    def is_caught_up(self, position: Position, now: str) -> bool:
        """Say whether every change that shows was read."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to learn of changes, and the table that they are changes of.

    `feed` opens the source, `promise` knows what has to be seen. Where changes are `logged`, the
    state lives in the source's database.
    """

    name: str
    table: Table
    feed: Callable[[Path, TableSpec, Limits], Feed]
    promise: Callable[[Stamps], Promise]
    logged: bool = True

    def prepare(self, folder: Path) -> None:
        """Make the database and, where it is apart, the state."""
        if not self.table.schema:
            migrate.init_database(folder / DATABASE)
            return
        with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as database:
            database.executescript(self.table.schema)
            if self.logged:
                migrate.apply(database, "state")
                changelog.attach(database, self.table.spec(("agent", "metadata"), "scope <> ''"))
        if not self.logged:
            with closing(sqlite3.connect(folder / STATE, isolation_level=None)) as state:
                migrate.apply(state, "state")

    def state_in(self, folder: Path) -> Path:
        """Return the database that holds the state."""
        return folder / (DATABASE if self.logged else STATE)

    def leftovers(self, database: sqlite3.Connection, position: Position) -> list[str]:
        """Say what a caught-up generation has left behind in the change log.

        Entries may only be there for the sake of other generations, which are further behind.
        """
        if not self.logged:
            return []
        log = f"syncer_changes_{self.table.name}"
        found = database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (log,))
        head = next((seq for (seq,) in found), 0)
        (left,) = database.execute(f"SELECT count(*) FROM {log}").fetchone()
        (others,) = database.execute("SELECT count(*) - 1 FROM syncer_generations").fetchone()
        complaints = []
        if position.change_seq != head:
            complaints.append(f"the position is at {position.change_seq}, the log at {head}")
        if left and not others:
            complaints.append(f"{left} entries of the log are served and still there")
        return complaints

    def goes_backwards(self, database: sqlite3.Connection, position: Position) -> bool:
        """Say whether the table ends before the last key that was read, so that it shows."""
        if self.logged or not position.walked or position.last_id is None:
            return False
        (last,) = decode_key(position.last_id)
        (found,) = database.execute(f"SELECT max(id) FROM {self.table.name}").fetchone()
        if found is None:
            return True
        if "AUTOINCREMENT" in self.table.schema:
            sql = "SELECT seq FROM sqlite_sequence WHERE name = ?"
            (given,) = database.execute(sql, (self.table.name,)).fetchone()
            found = max(found, given)
        return bool(found < last)


def _stamped(path: Path, spec: TableSpec, limits: Limits) -> StampedSource:
    return StampedSource(path, spec, StampColumn("changed", LOOK_BACK), limits)


LOG = Mode("log", MEMORIES, LogSource, Everything)
LOG_OF_WORDS = Mode("log, text keys", WORDS, LogSource, Everything)
LOG_OF_PAIRS = Mode("log, composite keys", PAIRS, LogSource, Everything)
UPDATED_AT = Mode("updated_at", NOTES, _stamped, StampedRows, logged=False)
APPEND_ONLY = Mode("append_only", EVENTS, AppendSource, NewRows, logged=False)

LOGGED = (LOG, LOG_OF_WORDS, LOG_OF_PAIRS)
ALL = (*LOGGED, UPDATED_AT, APPEND_ONLY)
