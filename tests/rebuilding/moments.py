"""Moments of a run at which a process can die, or somebody else write: before or after a call."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from qdrant_client import QdrantClient

import syncer.verify
from syncer.state import StateStore
from syncer.state.generation import GenerationState
from syncer.target import Catalog, GenerationTarget, StoredPoints, Succession

PLACES: dict[str, tuple[object, str]] = {
    "noted": (StateStore, "add"),
    "phase": (StateStore, "enter"),
    "made": (Catalog, "make"),
    "kept by": (StateStore, "keep_by"),
    "walk again": (StateStore, "walk_again"),
    "described": (Catalog, "set_description"),
    "token pending": (GenerationState, "begin_token"),
    "token": (GenerationTarget, "write_token"),
    "token confirmed": (GenerationState, "confirm_token"),
    "lent": (StoredPoints, "stored"),
    "opened": (GenerationTarget, "open_rows"),
    "upsert": (GenerationTarget, "upsert"),
    "overwrite": (GenerationTarget, "overwrite"),
    "delete": (GenerationTarget, "delete"),
    "position": (GenerationState, "commit"),
    "compared": (syncer.verify, "mend"),
    "alias": (QdrantClient, "update_collection_aliases"),
    "served": (StateStore, "serve"),
    "counted": (GenerationState, "note_points"),
    "confirmed": (StateStore, "confirm_rows"),
    "removed": (Succession, "remove"),
    "forgotten": (StateStore, "forget"),
}
"""By name: what has the function, and the function's name."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Before or after the `turn`-th call of a place in a run."""

    place: str
    turn: int = 1
    after: bool = False

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} {self.place} {self.turn}"


@dataclass(frozen=True, slots=True)
class Act:
    """What happens at a moment: the process dies, or SQL is committed by somebody else."""

    moment: Moment
    sql: str | None = None


class Acts:
    """Lets each act happen at its moment, in this process."""

    def __init__(self, acts: list[Act], database: Path) -> None:
        self._acts, self._database = acts, database
        self._turns: Counter[str] = Counter()
        for name in {act.moment.place for act in acts}:
            owner, function = PLACES[name]
            setattr(owner, function, self._passing(name, getattr(owner, function)))

    def _passing(self, name: str, inner: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            self._turns[name] += 1
            turn = self._turns[name]
            self._happen(Moment(name, turn))
            found = inner(*args, **kwargs)
            self._happen(Moment(name, turn, after=True))
            return found

        return call

    def _happen(self, moment: Moment) -> None:
        for act in self._acts:
            if act.moment != moment:
                continue
            if act.sql is None:
                os.kill(os.getpid(), signal.SIGKILL)  # no handler, no flush, no clean-up
                raise AssertionError
            with closing(sqlite3.connect(self._database, timeout=10)) as connection, connection:
                connection.executescript(f"BEGIN IMMEDIATE; {act.sql}; COMMIT")
