"""The rows that need remembering: quarantined, withheld, and how many were taken out lately."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

from syncer.keys import Key, decode_key
from syncer.model import Quarantined
from syncer.state.database import StateDatabase

_FIRST_WAIT = timedelta(minutes=1)  # until a quarantined row is tried again; doubles each time
_LONGEST_WAIT = timedelta(days=1)
_DELETES_KEPT = timedelta(hours=1)
_THIS = "WHERE generation = ?"


class RowBook:
    """The book on one generation's rows. Its writing methods belong into a transaction."""

    def __init__(self, database: StateDatabase, generation: str) -> None:
        self._database = database
        self._key = (generation,)

    def holds_any(self, rows: AbstractSet[str]) -> bool:
        """Say whether one of these rows is quarantined or withheld."""
        return any(self._among(table, rows) for table in _TABLES)

    def quarantine(self, items: Sequence[Quarantined], now: str) -> int:
        """Record rows that cannot be indexed; return how many were not recorded before.

        They are not withheld any longer: their old points have gone, by their own doing.
        """
        new = 0
        for item in items:
            self._database.execute(
                f"DELETE FROM syncer_withheld {_THIS} AND row = ?", (*self._key, item.row)
            )
            attempts = self._attempts(item.row)
            values = (item.reason, item.detail, now, _later(now, attempts), *self._key, item.row)
            if attempts:
                self._database.execute(
                    "UPDATE syncer_quarantine SET reason = ?, detail = ?, last_seen = ?, "
                    f"next_try = ?, attempts = attempts + 1 {_THIS} AND row = ?",
                    values,
                )
            else:
                self._database.execute(
                    "INSERT INTO syncer_quarantine (reason, detail, last_seen, next_try, "
                    "generation, row, first_seen) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*values, now),
                )
                new += 1
        return new

    def withhold(self, rows: Iterable[str], now: str) -> None:
        """Record rows that are still in the target although they should go."""
        for row in rows:
            self._database.execute(
                "INSERT OR IGNORE INTO syncer_withheld (generation, row, since) VALUES (?, ?, ?)",
                (*self._key, row, now),
            )

    def release(self, rows: AbstractSet[str]) -> None:
        """Forget rows that are in the target as they are, or gone from it."""
        for table in _TABLES:
            for row in self._among(table, rows):
                self._database.execute(
                    f"DELETE FROM {table} {_THIS} AND row = ?", (*self._key, row)
                )

    def count(self, indexed: int, removed: int, now: str) -> None:
        """Keep count of the target's rows, and of the last hour's deletes."""
        if indexed:
            self._database.execute(
                f"UPDATE syncer_generations SET rows = max(0, coalesce(rows, 0) + ?) {_THIS}",
                (indexed, *self._key),
            )
        if removed:
            self._database.execute(
                f"DELETE FROM syncer_deletes {_THIS} AND at < ?",
                (*self._key, _shifted(now, -_DELETES_KEPT)),
            )
            self._database.execute(
                "INSERT INTO syncer_deletes (generation, at, rows) VALUES (?, ?, ?)",
                (*self._key, now, removed),
            )

    def due(self, now: str) -> list[Key]:
        """Return the quarantined rows whose next try has come."""
        rows = self._database.rows(
            f"SELECT row FROM syncer_quarantine {_THIS} AND next_try <= ?", (*self._key, now)
        )
        return [decode_key(str(row)) for (row,) in rows]

    def withheld(self) -> list[Key]:
        """Return the rows whose deletion is withheld."""
        return [decode_key(row) for row in sorted(self._rows_in("syncer_withheld"))]

    def quarantined_among(self, rows: Sequence[str]) -> set[str]:
        """Return which of these rows are quarantined."""
        return self._among("syncer_quarantine", rows)

    def withheld_among(self, rows: Sequence[str]) -> set[str]:
        """Return which of these rows are withheld."""
        return self._among("syncer_withheld", rows)

    def deletes_since(self, moment: str) -> int:
        """Return how many rows were taken out since then."""
        (total,) = self._database.one(
            f"SELECT coalesce(sum(rows), 0) FROM syncer_deletes {_THIS} AND at >= ?",
            (*self._key, moment),
        )
        return int(str(total))

    def _rows_in(self, table: str) -> set[str]:
        rows = self._database.rows(f"SELECT row FROM {table} {_THIS}", self._key)
        return {str(row) for (row,) in rows}

    def _among(self, table: str, rows: Collection[str]) -> set[str]:
        if not self._database.rows(f"SELECT 1 FROM {table} {_THIS} LIMIT 1", self._key):
            return set()  # as nearly always
        there = f"SELECT 1 FROM {table} {_THIS} AND row = ?"
        return {row for row in rows if self._database.rows(there, (*self._key, row))}

    def _attempts(self, row: str) -> int:
        found = self._database.rows(
            f"SELECT attempts FROM syncer_quarantine {_THIS} AND row = ?", (*self._key, row)
        )
        return int(str(found[0][0])) if found else 0


_TABLES = ("syncer_quarantine", "syncer_withheld")


def _later(now: str, attempts: int) -> str:
    """Return when a row is to be tried again after so many failed attempts."""
    return _shifted(now, min(_FIRST_WAIT * 2 ** min(attempts, 20), _LONGEST_WAIT))


def _shifted(moment: str, by: timedelta) -> str:
    found = datetime.fromisoformat(moment) + by
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
