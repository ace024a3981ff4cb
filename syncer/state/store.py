"""All generations of one state database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

from syncer.errors import SchemaError, SyncerError
from syncer.model import Phase
from syncer.result import Drift
from syncer.state.database import BUSY_SLICE, StateDatabase
from syncer.state.generation import GenerationState, utc_now
from syncer.state.pruning import ChangeLog
from syncer.state.records import (
    GENERATION_COLUMNS,
    Generation,
    QuarantineRecord,
    Verified,
    generation_from,
    verified_from,
)

_AUDITED = "SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = 'audit_expired'"
KEEP_OLD = 7 * 86_400.0  # seconds for which the log is kept for a generation that served before


class StateStore:
    """All generations of one state database."""

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], str] | None = None,
        busy: float = BUSY_SLICE,
        keep_old: float = KEEP_OLD,
    ) -> None:
        self._now = now or utc_now
        self._keep_old = timedelta(seconds=keep_old)
        self._database = StateDatabase(path, busy)
        try:
            self._check_schema()
        except SyncerError:
            self._database.close()
            raise

    @property
    def path(self) -> Path:
        """The database that holds the state."""
        return self._database.path

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def source_id(self) -> str:
        """Return the random id that this database was given when it was initialised."""
        return str(self._database.one("SELECT source_id FROM syncer_identity")[0])

    def serving(self, alias: str) -> Generation | None:
        """Return the generation that readers of `alias` see, or the first one in the making."""
        found = self.generations(alias)
        return next((one for one in found if one.serving or one.phase is Phase.NEW), None)

    def generations(self, alias: str) -> list[Generation]:
        """Return all generations of `alias`, the serving one first, then the newest."""
        rows = self._database.rows(
            f"SELECT {', '.join(GENERATION_COLUMNS)} FROM syncer_generations WHERE alias = ? "
            "ORDER BY serving DESC, created_at DESC",
            (alias,),
        )
        return [generation_from(row) for row in rows]

    def add(self, generation: str, alias: str, table: str, phase: Phase = Phase.NEW) -> None:
        """Note a generation that is about to be made, before anything of it exists.

        Its position begins at the log's present head and at this moment: whatever changes or
        expires from now on is served beside the walk.
        """
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO syncer_generations "
                "(generation, alias, source_table, created_at, expired_to, change_seq, phase) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (generation, alias, table, self._now(), self._now(), self._log_head(table), phase),
            )

    def enter(self, generation: str, phase: Phase) -> None:
        """Note that a generation that does not serve has come into another phase."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET phase = ? WHERE generation = ? AND serving = 0",
                (phase, generation),
            )

    def confirm_rows(self, generation: str, rows: int) -> None:
        """Note that somebody has confirmed that a generation may have so few rows."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET confirmed_rows = ? WHERE generation = ?",
                (rows, generation),
            )

    def keep_by(self, generation: str, settings_digest: str, mapping_digest: str) -> None:
        """Note by which settings a generation is kept."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET settings_digest = ?, mapping_digest = ? "
                "WHERE generation = ?",
                (settings_digest, mapping_digest, generation),
            )

    def forget(self, generation: str) -> None:
        """Drop all that is known of a generation."""
        with self._database.transaction():
            for table in (
                "syncer_generations",
                "syncer_quarantine",
                "syncer_withheld",
                "syncer_deletes",
                "syncer_verify",
            ):
                self._database.execute(f"DELETE FROM {table} WHERE generation = ?", (generation,))

    def serve(self, generation: str, settings_digest: str, mapping_digest: str) -> None:
        """Note that the alias points at `generation`, and by which settings it is kept.

        The one that served until now is kept from here on.
        """
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET serving = 0, phase = ?, kept_since = ? "
                "WHERE serving = 1 AND generation <> ? "
                "AND alias = (SELECT alias FROM syncer_generations WHERE generation = ?)",
                (Phase.KEPT, self._now(), generation, generation),
            )
            self._database.execute(
                "UPDATE syncer_generations SET serving = 1, phase = ?, kept_since = NULL, "
                "confirmed_rows = NULL, settings_digest = ?, mapping_digest = ? "
                "WHERE generation = ?",
                (Phase.SERVING, settings_digest, mapping_digest, generation),
            )

    def walk_again(self, generation: str) -> None:
        """Begin the walk anew, since the mapping has changed."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET last_id = NULL, walked = 0 WHERE generation = ?",
                (generation,),
            )

    def prune(self, now: str) -> int:
        """Drop what no generation needs of the change logs, and expired records of the audit log.

        Which of those may go is for the database to say: its view ``audit_expired``, by the
        retention that its owner has set. Returns how many of them went.
        """
        tables = self._database.rows("SELECT DISTINCT source_table FROM syncer_generations")
        log = ChangeLog(self._database, self._keep_old)
        with self._database.transaction():
            for (table,) in tables:
                log.prune(str(table), now)
        if not self._database.rows(_AUDITED):
            return 0
        gone = 0
        while (went := self._drop_audited()) > 0:
            gone += went
        return gone

    def _drop_audited(self) -> int:
        with self._database.transaction():
            return self._database.execute(
                "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_expired LIMIT 1000)"
            )

    def schema_version(self) -> int:
        """Return SQLite's count of changes to the database's schema."""
        return int(str(self._database.one("PRAGMA schema_version")[0]))

    def reconcile(self, generation: str, token: str | None) -> None:
        """Begin to compare both stores key by key, from the log's present head on.

        `token` is what the collection carries; from here on it is the one that is known.
        """
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET reconcile = 1, last_id = NULL, walked = 0, "
                "settled = NULL, cursor = NULL, expired_to = ?, token = ?, pending_token = NULL, "
                "points = NULL, change_seq = ? WHERE generation = ?",
                (self._now(), token, self._log_head(self._table_of(generation)), generation),
            )

    def compare(self, table: str) -> None:
        """Let all generations of `table` be compared row by row: its log was not whole."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET reconcile = 1, last_id = NULL, walked = 0 "
                "WHERE source_table = ?",
                (table,),
            )

    def has_due(self, generation: str, now: str) -> bool:
        """Say whether a quarantined row is to be tried again, or both stores to be compared."""
        found = self._database.one(
            "SELECT EXISTS (SELECT 1 FROM syncer_quarantine WHERE generation = ? AND "
            "next_try <= ?) OR EXISTS (SELECT 1 FROM syncer_generations WHERE generation = ? "
            "AND reconcile = 1)",
            (generation, now, generation),
        )
        return bool(found[0])

    def see_schema(self, generation: str, seen: str) -> None:
        """Note as what the schema was last found to be whole."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE syncer_generations SET schema_seen = ? WHERE generation = ?",
                (seen, generation),
            )

    def quarantine(self, generation: str) -> list[QuarantineRecord]:
        """Return the quarantined rows of `generation`, the oldest first."""
        rows = self._database.rows(
            f"SELECT {', '.join(field.name for field in fields(QuarantineRecord))} "
            "FROM syncer_quarantine WHERE generation = ? ORDER BY first_seen, row",
            (generation,),
        )
        return [QuarantineRecord(*row) for row in rows]  # type: ignore[arg-type]

    def quarantined(self, generation: str) -> dict[str, int]:
        """Return how many rows of `generation` are quarantined, by reason."""
        rows = self._database.rows(
            "SELECT reason, count(*) FROM syncer_quarantine WHERE generation = ? GROUP BY reason",
            (generation,),
        )
        return {str(reason): int(str(count)) for reason, count in rows}

    def withheld(self, generation: str) -> int:
        """Return of how many rows of `generation` the deletion is withheld."""
        count = "SELECT count(*) FROM syncer_withheld WHERE generation = ?"
        return int(str(self._database.one(count, (generation,))[0]))

    def verified(self, generation: str) -> Verified | None:
        """Return what the last comparison of `generation` found, None if there was none."""
        kinds = ", ".join(f'"{kind.value}"' for kind in Drift)
        there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'syncer_verify'"
        if not self._database.rows(there):  # a database that no run has brought up to date yet
            return None
        found = self._database.rows(
            "SELECT at, clean, rows, points, pending, quarantined, withheld, "
            f"{kinds} FROM syncer_verify WHERE generation = ?",
            (generation,),
        )
        return verified_from(found[0]) if found else None

    def forget_rows(self, generation: str, rows: Sequence[str]) -> None:
        """Drop the records of quarantined rows."""
        with self._database.transaction():
            for row in rows:
                self._database.execute(
                    "DELETE FROM syncer_quarantine WHERE generation = ? AND row = ?",
                    (generation, row),
                )

    def bind(self, generation: str) -> GenerationState:
        """Return the part of the state that a run on `generation` works with."""
        return GenerationState(self._database, generation, self._now, self._keep_old)

    def _log_head(self, table: str) -> int:
        """Return the last sequence number of a table's change log, 0 where there is no log."""
        there = "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'"
        if not self._database.rows(there):
            return 0
        found = self._database.rows(
            "SELECT seq FROM sqlite_sequence WHERE name = 'syncer_changes_' || ?", (table,)
        )
        return int(str(found[0][0])) if found else 0

    def _table_of(self, generation: str) -> str:
        found = self._database.one(
            "SELECT source_table FROM syncer_generations WHERE generation = ?", (generation,)
        )
        return str(found[0])

    def _check_schema(self) -> None:
        found = self._database.one(
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN "
            "('syncer_identity', 'syncer_generations', 'syncer_quarantine')"
        )
        if found[0] != len(("identity", "generations", "quarantine")):
            raise SchemaError(
                f"{self._database.path} holds no state of syncer's", hint="Run `syncer init` first."
            )
