"""Position and tokens of one generation."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from syncer.errors import IdentityError, PositionMovedError
from syncer.keys import Key
from syncer.model import Outcome, Position
from syncer.result import VerifyResult
from syncer.state.database import StateDatabase
from syncer.state.pruning import ChangeLog
from syncer.state.records import (
    POSITION_COLUMNS,
    position_from,
    position_values,
    verify_values,
)
from syncer.state.rowbook import RowBook

_POSITION = ", ".join(POSITION_COLUMNS)
_SET_POSITION = ", ".join(f"{column} = ?" for column in POSITION_COLUMNS)
_AT_POSITION = " AND ".join(f"{column} IS ?" for column in POSITION_COLUMNS)
_THIS = "WHERE generation = ?"


def utc_now() -> str:
    """Return the time in UTC as ISO 8601 text with milliseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class GenerationState:
    """Position, tokens and book-keeping of one generation; see ``syncer.ports.State``."""

    def __init__(
        self,
        database: StateDatabase,
        generation: str,
        now: Callable[[], str],
        keep_old: timedelta,
    ) -> None:
        self._database = database
        self._now = now
        self._log = ChangeLog(database, keep_old)
        self._generation = generation
        self._book = RowBook(database, generation)
        self._writer = secrets.token_hex(8)
        self._own_token: str | None = None
        self._own_position: Position | None = None

    def position(self) -> Position:
        """Return the stored position.

        Raises IdentityError if it bears this process's mark, and yet is not the one that this
        process stored last: the database was restored under it.
        """
        *row, writer = self._database.one(
            f"SELECT {_POSITION}, writer FROM syncer_generations {_THIS}", self._key
        )
        position = position_from(self._generation, row)
        if writer == self._writer and position != self._own_position:
            raise IdentityError(
                f"the position in {self._database.path} went back from {self._own_position} to "
                f"{position}: the database was restored while syncer was running",
                hint="Stop syncer, check the database, then start it again.",
            )
        return position

    def tokens(self) -> frozenset[str | None]:
        """Return the tokens that the collection may carry; None before the first one."""
        token, pending = self._database.one(
            f"SELECT token, pending_token FROM syncer_generations {_THIS}", self._key
        )
        known = {None if token is None else str(token)}
        return frozenset(known if pending is None else known | {str(pending)})

    def owns_token(self) -> bool:
        """Say whether this process wrote the last token."""
        row = self._database.one(f"SELECT token FROM syncer_generations {_THIS}", self._key)
        return self._own_token is not None and row[0] == self._own_token

    def begin_token(self, token: str, carried: str | None) -> None:
        """Note `token` as pending, and `carried` as the one that the collection has now.

        Points are written from here on; their number is not known until the run has ended.
        """
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET token = ?, pending_token = ?, points = NULL "
                f"{_THIS}",
                (carried, token, *self._key),
            )

    def confirm_token(self, token: str) -> None:
        """Note that the collection carries `token`."""
        with self._database.transaction():
            self._database.execute(
                f"UPDATE syncer_generations SET token = ?, pending_token = NULL {_THIS}",
                (token, *self._key),
            )
        self._own_token = token

    def commit(self, old: Position, new: Position, outcome: Outcome) -> int:
        """Record `outcome` and move the position, in one transaction."""
        settled = set(outcome.settled) - {item.row for item in outcome.quarantined}
        if old == new and outcome.is_empty and not self._book.holds_any(settled):
            return 0
        now = self._now()
        with self._database.transaction():
            self._move(old, new)
            found = self._book.quarantine(outcome.quarantined, now)
            self._book.withhold(outcome.withheld, now)
            self._book.release(settled)
            self._book.count(outcome.indexed, outcome.removed, now)
            self._log.prune(str(self._column("source_table")), now)
        self._own_position = new
        return found

    def due(self, now: str) -> list[Key]:
        """Return the quarantined rows that are to be tried again now."""
        return self._book.due(now)

    def withheld(self) -> list[Key]:
        """Return the rows whose deletion is withheld."""
        return self._book.withheld()

    def quarantined_among(self, rows: Sequence[str]) -> set[str]:
        """Return which of these rows are quarantined."""
        return self._book.quarantined_among(rows)

    def withheld_among(self, rows: Sequence[str]) -> set[str]:
        """Return which of these rows are withheld from deletion."""
        return self._book.withheld_among(rows)

    def deletes_since(self, moment: str) -> int:
        """Return how many rows were taken out since then that nobody had announced."""
        return self._book.deletes_since(moment)

    def rows(self) -> int:
        """Return how many rows the target holds, as far as the state has kept count."""
        return int(str(self._column("rows") or 0))

    def reconciling(self) -> bool:
        """Say whether both stores are still to be compared key by key."""
        return bool(self._column("reconcile"))

    def reconciled(self) -> None:
        """Note that they were compared."""
        self._set("reconcile", 0)

    def points(self) -> int | None:
        """Return the target's count of points after the last run that ended well, if it did."""
        found = self._column("points")
        return found if isinstance(found, int) else None

    def note_points(self, points: int, *, at_least: bool = False) -> None:
        """Note how many points the target has now that a run ends, or has `at_least`.

        A row has a point at least, so an exact number corrects a count of rows that a kill has
        made too high.
        """
        if self.points() != points:
            self._set("points", points)
        if not at_least and self.rows() > points:
            self._set("rows", points)

    def note_verified(self, result: VerifyResult) -> None:
        """Keep what a comparison of both stores has found, in the place of the last one's."""
        values = verify_values(result)
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * (len(values) + 2))
        with self._database.transaction():
            self._database.execute(
                f"INSERT OR REPLACE INTO syncer_verify (generation, at, {names}) VALUES ({marks})",
                (*self._key, self._now(), *values.values()),
            )

    def _column(self, name: str) -> object:
        return self._database.one(f"SELECT {name} FROM syncer_generations {_THIS}", self._key)[0]

    def _set(self, name: str, value: object) -> None:
        with self._database.transaction():
            self._database.execute(
                f"UPDATE syncer_generations SET {name} = ? {_THIS}", (value, *self._key)
            )

    @property
    def _key(self) -> tuple[str]:
        return (self._generation,)

    def _move(self, old: Position, new: Position) -> None:
        moved = self._database.execute(
            f"UPDATE syncer_generations SET {_SET_POSITION}, last_success_at = ?, writer = ? "
            f"WHERE generation = ? AND {_AT_POSITION}",
            (*position_values(new), self._now(), self._writer, *self._key, *position_values(old)),
        )
        if moved != 1:
            raise PositionMovedError(
                f"the position of {self._generation} was moved by another process meanwhile",
                hint="What this run wrote is in the target and will be found unchanged. "
                "See to it that one syncer runs at a time.",
            )
