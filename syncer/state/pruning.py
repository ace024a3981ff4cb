"""Dropping what no generation needs of a change log any more."""

from __future__ import annotations

from datetime import datetime, timedelta

from syncer.model import Phase
from syncer.state.database import StateDatabase
from syncer.table import quote

_TOO_OLD = "phase = ? AND kept_since < ?"


class ChangeLog:
    """The logs of the tables in one database, as far as syncer may shorten them."""

    def __init__(self, database: StateDatabase, keep_old: timedelta) -> None:
        self._database = database
        self._keep_old = keep_old

    def prune(self, table: str, now: str) -> None:
        """Drop the entries of `table` that every generation of it has served; in a transaction.

        For a generation that served before, the log is kept for a while only. Where entries go
        that it has not seen, it is to be compared with the source before it serves again.
        """
        log = f"syncer_changes_{table}"
        there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if not self._database.rows(there, (log,)):
            return
        oldest = datetime.fromisoformat(now) - self._keep_old
        too_old = (Phase.KEPT, oldest.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
        found = self._database.one(
            "SELECT min(change_seq) FROM syncer_generations "
            f"WHERE source_table = ? AND NOT coalesce({_TOO_OLD}, 0)",
            (table, *too_old),
        )
        if found[0] is None:
            return
        served = int(str(found[0]))
        self._database.execute(f"DELETE FROM {quote(log)} WHERE seq <= ?", (served,))
        self._database.execute(
            "UPDATE syncer_generations SET reconcile = 1, last_id = NULL, walked = 0 "
            "WHERE source_table = ? AND (reconcile = 0 OR last_id IS NOT NULL OR walked) "
            f"AND change_seq < ? AND {_TOO_OLD}",
            (table, served, *too_old),
        )
