"""What a table is made of, as far as triggers on it have to know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from syncer.table import quote

_GENERATED = (2, 3)  # table_xinfo's marks of virtual and stored generated columns
_ROWID_NAMES = ("rowid", "_rowid_", "oid")


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `has_fallback` says that OR REPLACE puts the default for a NULL in it."""

    name: str
    declared: str
    generated: bool
    has_fallback: bool

    @property
    def affinity(self) -> str:
        """The affinity that SQLite gives it, as a type that CAST knows; empty for none."""
        declared = self.declared.upper()
        for parts, affinity in _AFFINITIES:
            if any(part in declared for part in parts):
                return affinity
        return "NUMERIC" if declared and declared != "ANY" else ""


_AFFINITIES = (  # in the order in which SQLite looks for these parts of a declared type
    (("INT",), "INTEGER"),
    (("CHAR", "CLOB", "TEXT"), "TEXT"),
    (("BLOB",), ""),
    (("REAL", "FLOA", "DOUB"), "REAL"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's columns, and its rowid where it has one.

    `rowid` is a name by which triggers reach the rowid: that of the INTEGER PRIMARY KEY if there
    is one (then also `alias`), None if there is no rowid, or no name left for it. `bases` are the
    columns that generated ones are made of; None if they are unknown.
    """

    table: str
    columns: tuple[Column, ...]
    rowid: str | None
    alias: str | None
    bases: tuple[str, ...] | None = ()

    def column(self, name: str) -> Column | None:
        """Return the column of this name, whatever its case."""
        return next((one for one in self.columns if one.name.lower() == name.lower()), None)

    def deciding(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns that decide the values of `names`: for a generated one its bases.

        If those are unknown it may be any column.
        """
        wanted = list(names)
        generated = {one.name for one in self.columns if one.generated}
        if generated.isdisjoint(wanted):
            return tuple(wanted)
        ordinary = tuple(one.name for one in self.columns if not one.generated)
        bases = ordinary if self.bases is None else self.bases
        kept = [name for name in wanted if name not in generated]
        return tuple(dict.fromkeys((*kept, *bases)))

    def listable(self, names: Iterable[str]) -> tuple[str, ...] | None:
        """Return in which columns' UPDATE the values of `names` change; None for any UPDATE.

        SET rowid changes the INTEGER PRIMARY KEY without naming it.
        """
        wanted = list(names)
        generated = {one.name for one in self.columns if one.generated}
        if self.bases is None and not generated.isdisjoint(wanted):
            return None
        found = self.deciding(wanted)
        ordinary = {one.name for one in self.columns} - {self.alias}
        return found if ordinary.issuperset(found) else None

    def real_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return `names` as the table spells them."""
        found = ((name, self.column(name)) for name in names)
        return tuple(column.name if column else name for name, column in found)

    def is_rowid_key(self, key: Sequence[str]) -> bool:
        """Say whether the key is the INTEGER PRIMARY KEY, SQLite's own number of the row."""
        return self.alias is not None and [name.lower() for name in key] == [self.alias.lower()]


def shape_of(connection: sqlite3.Connection, table: str) -> Shape:
    """Return what the database says of `table`."""
    info = connection.execute(f"PRAGMA table_xinfo({quote(table)})").fetchall()
    columns = tuple(
        Column(name, declared, hidden in _GENERATED, bool(not_null) and default is not None)
        for _, name, declared, not_null, default, _, hidden in info
    )
    primary = [(row[1], row[2].upper()) for row in info if row[5]]
    indexes = connection.execute(f"PRAGMA index_list({quote(table)})").fetchall()
    key_index = next((row[1] for row in indexes if row[3] == "pk"), None)
    is_alias = len(primary) == 1 and primary[0][1] == "INTEGER" and key_index is None
    alias = primary[0][0] if is_alias else None
    taken = {column.name.lower() for column in columns}
    free = next((name for name in _ROWID_NAMES if name not in taken), None)
    has_rowid = key_index is None or _ends_in_rowid(connection, key_index)
    bases = _bases(connection, table) if any(one.generated for one in columns) else ()
    return Shape(table, columns, alias or (free if has_rowid else None), alias, bases)


def columns_read(connection: sqlite3.Connection, sql: str) -> dict[str, tuple[str, ...]]:
    """Return the columns that a query reads, by table, as SQLite's authorizer tells them.

    Raises sqlite3.Error if the query cannot be prepared.
    """
    return {table: tuple(names) for table, names in _reads(connection, f"EXPLAIN {sql}").items()}


def _bases(connection: sqlite3.Connection, table: str) -> tuple[str, ...] | None:
    """Return the columns that the expressions in a CREATE TABLE read.

    SQLite resolves them when it makes the table, here once more in a database in memory.
    """
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        try:
            found = _reads(copy, sql).get(table, {})
        except sqlite3.Error:
            return None  # a function or collation that only the application has
        info = copy.execute(f"PRAGMA table_xinfo({quote(table)})").fetchall()
    ordinary = [row[1] for row in info if row[6] not in _GENERATED]
    return tuple(name for name in ordinary if name in found)


def _reads(connection: sqlite3.Connection, sql: str) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}

    def note(action: int, table: str | None, column: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and table:
            found.setdefault(table, {})
            if column:
                found[table][column] = None
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    try:
        connection.execute(sql).close()
    finally:
        connection.set_authorizer(None)
    return found


def _ends_in_rowid(connection: sqlite3.Connection, index: str) -> bool:
    """Say whether an index points at rows by rowid, as it does unless the table has none."""
    rows = connection.execute(f"PRAGMA index_xinfo({quote(index)})").fetchall()
    return any(row[1] == -1 for row in rows)
