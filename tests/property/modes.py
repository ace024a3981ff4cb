"""How a mode reads the table: the part of a schedule that differs from mode to mode."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from syncer.model import Position
from syncer.ports import Source
from syncer.source import Limits, LogSource, TableSpec

TABLE = "memory_events"


class Feed(Source, Protocol):
    """A source as the command line uses it."""

    json_columns: frozenset[str]

    def head(self) -> int:
        """Return how far there is to go."""

    def is_idle(self, position: Position, now: str) -> bool:
        """Say whether nothing has changed or expired since `position`."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to learn of changes.

    `feed` opens the source and `state_of` names the state's database for a source's. `complaints`
    says what is wrong with the mode's own tables once everything is in the target.
    """

    name: str
    feed: Callable[[Path, TableSpec, Limits], Feed]
    state_of: Callable[[Path], Path]
    complaints: Callable[[sqlite3.Connection, Position], list[str]]


def _log_complaints(database: sqlite3.Connection, position: Position) -> list[str]:
    """Say what a caught-up generation has left behind in the change log.

    Entries may only be there for the sake of other generations, which are further behind.
    """
    log = f"syncer_changes_{TABLE}"
    found = database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (log,)).fetchone()
    head = found[0] if found else 0
    (left,) = database.execute(f"SELECT count(*) FROM {log}").fetchone()
    (others,) = database.execute("SELECT count(*) - 1 FROM syncer_generations").fetchone()
    complaints = []
    if position.change_seq != head:
        complaints.append(f"the position is at {position.change_seq}, the log at {head}")
    if left and not others:
        complaints.append(f"{left} entries of the log are served and still there")
    return complaints


LOG = Mode("log", LogSource, lambda source: source, _log_complaints)
