"""The tables of the schedules: how their rows are named, and what a write to them is in SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from property.writes import Write

from syncer.keys import Key
from syncer.table import TableSpec

_COLUMNS = """
agent TEXT, scope TEXT, source TEXT, content TEXT, metadata JSON TEXT DEFAULT '{}',
expires_at TEXT, superseded_by INTEGER, deleted_by TEXT
"""
_DELETED = "superseded_by IS NOT NULL OR deleted_by IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a table, whichever it is; `stamp` is None where the table has no such column."""

    key: Key
    agent: str
    scope: str
    content: str
    metadata: str
    expires_at: str | None
    is_deleted: bool
    stamp: object


@dataclass(frozen=True, slots=True)
class Table:
    """A table that syncer follows.

    `key_of` names the row with a number by the values of the key's columns. Where rows `count`
    themselves, SQLite gives a new one its number. `stamp` is the column with the time of a row's
    last change; `spot` another unique one, from which a row may drive another out.
    """

    name: str
    key: tuple[str, ...]
    key_of: Callable[[int], Key]
    schema: str = ""
    counts: bool = True
    keys_are_fixed: bool = False
    stamp: str | None = None
    spot: str | None = None

    def spec(self, metadata: tuple[str, ...], where: str | None) -> TableSpec:
        """Return what the settings say of it."""
        return TableSpec(
            self.name,
            key=self.key,
            metadata=metadata,
            where=where,
            deleted=_DELETED,
            expires_at="expires_at",
            expiry_is_uniform=not self.schema,  # as it is for the canonical table alone
        )

    def sql(self, write: Write, fresh: int, stamp: object) -> tuple[str, dict[str, object]]:
        """Return a write as SQL and its values; `fresh` is the number of a row that is new."""
        row = fresh if write.row is None and not self.counts else write.row
        values = dict(write.values) | {"stamp": stamp}
        for mark, number in (("this", row), ("that", write.other)):
            parts = self.key_of(number) if number is not None else ()
            values |= {f"{mark}{place}": part for place, part in enumerate(parts)}
        named = self.key if row is not None else ()
        sql = write.sql.format(
            table=self.name,
            columns="".join(f"{name}, " for name in named),
            marks="".join(f":this{place}, " for place, _ in enumerate(named)),
            this=self._equal("this", " AND "),
            that=self._equal("that", " AND "),
            rekeyed=self._equal("that", ", "),
            touched=f", {self.stamp} = :stamp" if self.stamp else "",
            stamp_column=f", {self.stamp}" if self.stamp else "",
            stamp_mark=", :stamp" if self.stamp else "",
            spot=self.spot,
        )
        return sql, values

    def records(self, database: sqlite3.Connection) -> dict[Key, Record]:
        """Return all rows by their keys."""
        stamp = self.stamp or "NULL"
        rows = database.execute(
            "SELECT agent, scope, content, metadata, expires_at, "
            f"{_DELETED}, {stamp}, {', '.join(self.key)} FROM {self.name}"
        )
        found = (
            Record(tuple(key), agent, scope, content, metadata, expires_at, bool(deleted), stamp)
            for agent, scope, content, metadata, expires_at, deleted, stamp, *key in rows
        )
        return {record.key: record for record in found}

    def _equal(self, mark: str, between: str) -> str:
        return between.join(f"{name} = :{mark}{place}" for place, name in enumerate(self.key))


def _number(row: int) -> Key:
    return (row,)


def _word(row: int) -> Key:
    return (f"né{row}" if row % 2 else f"N{row}",)


def _pair(row: int) -> Key:
    return ("ab"[row % 2], row // 2)


MEMORIES = Table("memory_events", ("id",), _number, keys_are_fixed=True)
"""The table that ``syncer init`` makes."""

WORDS = Table(
    "words",
    ("name",),
    _word,
    f"CREATE TABLE words (name TEXT PRIMARY KEY, {_COLUMNS}, spot INTEGER UNIQUE);",
    counts=False,
    spot="spot",
)
PAIRS = Table(
    "pairs",
    ("kind", "place"),
    _pair,
    f"CREATE TABLE pairs (kind TEXT, place INTEGER, {_COLUMNS}, spot INTEGER UNIQUE, "
    "PRIMARY KEY (kind, place)) WITHOUT ROWID;",
    counts=False,
    spot="spot",
)
NOTES = Table(
    "notes",
    ("id",),
    _number,
    f"CREATE TABLE notes (id INTEGER PRIMARY KEY, {_COLUMNS}, changed);"
    "CREATE INDEX notes_changed ON notes (changed);",
    stamp="changed",
)
EVENTS = Table(
    "events",
    ("id",),
    _number,
    f"CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, {_COLUMNS});",
)
