"""Position, tokens and quarantine of one generation."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from syncer.errors import IdentityError, PositionMovedError
from syncer.model import Position, Quarantined
from syncer.state.database import StateDatabase
from syncer.state.records import POSITION_COLUMNS, position_from, position_values

_POSITION = ", ".join(POSITION_COLUMNS)
_THIS = "WHERE generation = ?"
_QUOTE = '"'


def utc_now() -> str:
    """Return the time in UTC as ISO 8601 text with milliseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class GenerationState:
    """Position, tokens and quarantine of one generation; see ``syncer.ports.State``."""

    def __init__(self, database: StateDatabase, generation: str, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._generation = generation
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
        """Note `token` as pending, and `carried` as the one that the collection has now."""
        with self._database.transaction():
            self._database.execute(
                f"UPDATE syncer_generations SET token = ?, pending_token = ? {_THIS}",
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

    def commit(
        self, old: Position, new: Position, quarantined: Sequence[Quarantined], rows: Sequence[str]
    ) -> None:
        """Record and release quarantined rows and move the position, in one transaction."""
        released = self._released(rows, quarantined)
        if old == new and not quarantined and not released:
            return
        with self._database.transaction():
            self._move(old, new)
            self._record(quarantined)
            self._release(released)
            self._prune()
        self._own_position = new

    @property
    def _key(self) -> tuple[str]:
        return (self._generation,)

    def _move(self, old: Position, new: Position) -> None:
        moved = self._database.execute(
            "UPDATE syncer_generations SET last_id = ?, change_seq = ?, walked = ?, "
            "expired_to = ?, last_success_at = ?, writer = ? WHERE generation = ? "
            "AND last_id IS ? AND change_seq = ? AND walked = ? AND expired_to IS ?",
            (*position_values(new), self._now(), self._writer, *self._key, *position_values(old)),
        )
        if moved != 1:
            raise PositionMovedError(
                f"the position of {self._generation} was moved by another process meanwhile",
                hint="What this run wrote is in the target and will be found unchanged. "
                "See to it that one syncer runs at a time.",
            )

    def _released(self, rows: Sequence[str], quarantined: Sequence[Quarantined]) -> list[str]:
        found = self._database.rows(f"SELECT row FROM syncer_quarantine {_THIS}", self._key)
        candidates = set(rows) - {item.row for item in quarantined} if found else set()
        return [str(row) for (row,) in found if row in candidates]

    def _record(self, quarantined: Sequence[Quarantined]) -> None:
        now = self._now()
        for item in quarantined:
            updated = self._database.execute(
                "UPDATE syncer_quarantine SET reason = ?, detail = ?, last_seen = ?, "
                f"attempts = attempts + 1 {_THIS} AND row = ?",
                (item.reason, item.detail, now, *self._key, item.row),
            )
            if updated == 0:
                self._database.execute(
                    "INSERT INTO syncer_quarantine (generation, row, reason, detail, first_seen, "
                    "last_seen) VALUES (?, ?, ?, ?, ?, ?)",
                    (*self._key, item.row, item.reason, item.detail, now, now),
                )

    def _release(self, rows: Sequence[str]) -> None:
        for row in rows:
            self._database.execute(
                f"DELETE FROM syncer_quarantine {_THIS} AND row = ?", (*self._key, row)
            )

    def _prune(self) -> None:
        """Drop the log's entries that every generation of the table has served."""
        (table,) = self._database.one(
            f"SELECT source_table FROM syncer_generations {_THIS}", self._key
        )
        log = f'"syncer_changes_{str(table).replace(_QUOTE, 2 * _QUOTE)}"'
        self._database.execute(
            f"DELETE FROM {log} WHERE seq <= (SELECT min(change_seq) FROM syncer_generations "
            "WHERE source_table = ?)",
            (table,),
        )
