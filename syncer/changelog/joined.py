"""Watching the tables that are joined: whose changes are changes of a row of the source."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from syncer.changelog.evictions import evictions_of
from syncer.changelog.indexes import unique_indexes
from syncer.changelog.mapping import refuse_other_tables, refuse_what_has_no_triggers
from syncer.changelog.shape import Column, Shape, columns_read, shape_of
from syncer.changelog.statements import Owner, Statement, Watched, triggers
from syncer.table import Joined, TableSpec, check_table, own_collations, quote, with_all_columns

_WHOLE_NUMBERS = ("INTEGER", "NUMERIC")
_NUMBERS = (*_WHOLE_NUMBERS, "REAL")


def joined_triggers(connection: sqlite3.Connection, spec: TableSpec) -> list[Statement]:
    """Return the triggers on all joined tables.

    Raises SettingsError if one of them or a column is not there, if it is a view or a virtual
    table, or if an expression reads yet another table.
    """
    return [one for each in _watched(connection, spec) for one in triggers(each)]


def _watched(connection: sqlite3.Connection, spec: TableSpec) -> list[Watched]:
    if not spec.joined:
        return []
    for one in spec.joined:
        refuse_what_has_no_triggers(connection, one.table, f"source.joined[{one.name}]")
    spec = with_all_columns(connection, spec)
    check_table(connection, spec)
    main = shape_of(connection, spec.table)
    spec = replace(spec, key=main.real_names(spec.key))
    return [_of(connection, spec, main, one) for one in spec.joined]


def _of(connection: sqlite3.Connection, spec: TableSpec, main: Shape, one: Joined) -> Watched:
    shape = shape_of(connection, one.table)
    indexes = unique_indexes(connection, shape)
    key = shape.real_names(one.key)
    # Two rows of one key may stand in each other's way, and SQLite tells nobody which of them goes:
    # so a row counts as changed whenever it moves in an index.
    counted = {name for index in indexes for name in index.columns}
    if any(index.reads is None for index in indexes):
        counted = {column.name for column in shape.columns}
    counted.update(_columns_that_count(connection, one))
    names = tuple(
        column.name
        for column in shape.columns
        if column.name in counted and column.name not in (*key, shape.rowid)
    )
    return Watched(
        shape=shape,
        log=spec.changes,
        log_key=spec.log_key,
        key=key,
        columns=(*key, *names),
        listed=shape.listable(names),
        evictions=evictions_of(shape, indexes, key),
        prefix=f"joined.{one.name}.",
        place=() if shape.rowid is None or shape.rowid in key else (shape.rowid,),
        owner=_owner(connection, spec, main, shape, key),
    )


def _columns_that_count(connection: sqlite3.Connection, one: Joined) -> tuple[str, ...]:
    sql = (
        f"SELECT {', '.join(one.values)} FROM {quote(one.table)} AS j "
        f"ORDER BY {', '.join(one.terms)}"
    )
    found = columns_read(connection, sql)
    refuse_other_tables(connection, found, one.table)
    return found.get(one.table, ())


def _owner(
    connection: sqlite3.Connection,
    spec: TableSpec,
    main: Shape,
    shape: Shape,
    key: tuple[str, ...],
) -> Owner:
    """Return how an entry leads to its row.

    Where a key can only be equal if it is the same value, the source's table is not asked: while
    the application makes that anew, a trigger that names it would let its RENAME fail.
    """
    collations = own_collations(connection, spec.table, spec.key)
    pairs = [
        (main.column(theirs), shape.column(ours))
        for theirs, ours in zip(spec.key, key, strict=True)
    ]
    exact = all(_is_exact(theirs, ours, collations) for theirs, ours in pairs)
    casts = tuple(
        ours is not None
        and theirs is not None
        and ours.affinity in _NUMBERS
        and theirs.affinity not in _NUMBERS
        for theirs, ours in pairs
    )
    return Owner(None if exact else spec.table, spec.key, casts)


def _is_exact(theirs: Column | None, ours: Column | None, collations: dict[str, str]) -> bool:
    """Say whether values of two columns are only equal if they are one value of one type."""
    if theirs is None or ours is None:
        return False
    if theirs.affinity in _WHOLE_NUMBERS and ours.affinity in _WHOLE_NUMBERS:
        return collations.get(theirs.name.lower()) == "BINARY"
    both = theirs.affinity == ours.affinity
    return both and theirs.affinity == "TEXT" and collations.get(theirs.name.lower()) == "BINARY"
