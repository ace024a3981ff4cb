"""The order of a table's keys: the one in which no two rows are equal, by index if there is one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from syncer.keys import Key, RawText
from syncer.table import TableSpec, own_collations, quote

_BINARY = "BINARY"
_KNOWN = (_BINARY, "NOCASE", "RTRIM")  # what every SQLite has; others belong to the application

Sql = tuple[str, Sequence[object]]
"""A condition and the values of its marks."""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """How the columns of a key are compared, as SQL over the alias ``t``.

    `collations` has one for each column: that of the unique index over the key, since only there
    two rows are never equal, and only there an index gives the order. `stated` says which of them
    have to be written down because the column has another one by itself.
    """

    columns: tuple[str, ...]
    collations: tuple[str, ...]
    stated: tuple[bool, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(f"t.{quote(name)}" for name in self.columns)

    @property
    def terms(self) -> tuple[str, ...]:
        """The columns as they are sorted."""
        return tuple(
            f"{name} COLLATE {collation}" if stated else name
            for name, collation, stated in zip(
                self.names, self.collations, self.stated, strict=True
            )
        )

    def behind(self, after: Key | None) -> Sql:
        """Return the condition that a row comes after `after`; NULL comes before everything.

        A key with a NULL in it may belong to several rows: they count as one.
        """
        if after is None:
            return "1", ()
        if None in after:
            return self._behind_null(after)
        marks = [mark(part) for part in after]
        values = bound(after)
        if not any(self.stated):  # SQLite searches by a row of values only if they are bare
            return f"({', '.join(self.names)}) > ({', '.join(marks)})", values
        if len(after) == 1:
            return f"{self.names[0]} > {marks[0]} COLLATE {self.collations[0]}", values
        seek = f"{self.names[0]} >= {marks[0]} COLLATE {self.collations[0]}"
        exact = f"({', '.join(self.terms)}) > ({', '.join(marks)})"
        return f"{seek} AND {exact}", (values[0], *values)

    def matches(self, key: Key) -> Sql:
        """Return the condition that a row has this key, byte for byte, found by the index."""
        conditions: list[str] = []
        values: list[object] = []
        for name, collation, part in zip(self.names, self.collations, key, strict=True):
            if part is None:
                conditions.append(f"{name} IS NULL")
                continue
            for each in dict.fromkeys((collation, _BINARY)):
                conditions.append(f"{name} = {mark(part)} COLLATE {each}")
                values += bound((part,))
        return " AND ".join(conditions), tuple(values)

    def _behind_null(self, after: Key) -> Sql:
        alternatives: list[str] = []
        values: list[object] = []
        for place, part in enumerate(after):
            same, same_values = self._same(after[:place])
            name, collation = self.names[place], self.collations[place]
            larger = f"{name} > {mark(part)} COLLATE {collation}"
            larger = f"{name} IS NOT NULL" if part is None else larger
            alternatives.append(" AND ".join([*same, larger]))
            values += [*same_values, *(() if part is None else bound((part,)))]
        return "(" + " OR ".join(f"({each})" for each in alternatives) + ")", tuple(values)

    def _same(self, parts: Key) -> tuple[list[str], tuple[object, ...]]:
        conditions = [
            f"{name} IS NULL" if part is None else f"{name} = {mark(part)} COLLATE {collation}"
            for name, collation, part in zip(self.names, self.collations, parts, strict=False)
        ]
        return conditions, bound([part for part in parts if part is not None])


def plain_order(spec: TableSpec) -> KeyOrder:
    """Return the order of a key whose columns compare byte by byte of themselves."""
    count = len(spec.key)
    return KeyOrder(spec.key, (_BINARY,) * count, (False,) * count)


def key_order(connection: sqlite3.Connection, spec: TableSpec) -> KeyOrder:
    """Return the order of the keys of a table or view, as the database has it."""
    names = [name.lower() for name in spec.key]
    indexed = [
        found for found in _unique_indexes(connection, spec.table) if found.keys() == set(names)
    ]
    found = min(indexed, key=_strangeness, default=dict.fromkeys(names, _BINARY))
    collations = tuple(found[name] for name in names)
    own = own_collations(connection, spec.table, spec.key)
    return KeyOrder(
        spec.key,
        collations,
        tuple(own.get(name) != one for name, one in zip(names, collations, strict=True)),
    )


def _unique_indexes(connection: sqlite3.Connection, table: str) -> list[dict[str, str]]:
    """Return the collation by column of each unique index over whole columns and all rows."""
    found = []
    for _, name, unique, _, partial in connection.execute(f"PRAGMA index_list({quote(table)})"):
        terms = _terms(connection, name)
        if unique and not partial and all(column is not None for column, _ in terms):
            collations = {str(column).lower(): collation for column, collation in terms}
            if all(collation in _KNOWN for collation in collations.values()):
                found.append(collations)
    return found


def _strangeness(collations: dict[str, str]) -> int:
    return sum(collation != _BINARY for collation in collations.values())


def _terms(connection: sqlite3.Connection, index: str) -> list[tuple[str | None, str]]:
    rows = connection.execute(f"PRAGMA index_xinfo({quote(index)})").fetchall()
    return [(row[2], str(row[4]).upper()) for row in rows if row[5]]


def mark(part: object) -> str:
    """Return the mark for a value to be bound."""
    # Bytes bind as a BLOB, which never equals a TEXT of the same bytes.
    return "CAST(? AS TEXT)" if isinstance(part, RawText) else "?"


def bound(key: Sequence[object]) -> tuple[object, ...]:
    """Return the values of a key as they are bound to its marks."""
    return tuple(part.data if isinstance(part, RawText) else part for part in key)
