"""What the mapping reads of a table, and whether its changes can be logged at all."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from dataclasses import replace

from syncer.changelog.evictions import evictions_of
from syncer.changelog.indexes import is_unique, unique_indexes
from syncer.changelog.shape import Shape, columns_read, shape_of
from syncer.changelog.statements import Watched
from syncer.errors import SettingsError
from syncer.table import TableSpec, check_table, quote, with_all_columns


def watched(connection: sqlite3.Connection, spec: TableSpec) -> Watched:
    """Return what of the source's table has to be logged.

    Raises SettingsError if the table or a column is not there, if it is a view or a virtual
    table, if its key is not unique, or if an expression reads other tables.
    """
    refuse_what_has_no_triggers(connection, spec.table, "source.table")
    spec = with_all_columns(connection, spec)
    check_table(connection, spec)
    shape = shape_of(connection, spec.table)
    indexes = unique_indexes(connection, shape)
    if not is_unique(indexes, shape, spec.key):
        raise SettingsError(
            f"source.key = {', '.join(spec.key)} is not unique in {spec.table}: two rows could "
            "have one key",
            hint=f"Name the columns of its primary key or of a unique index in source.key; or "
            f"run CREATE UNIQUE INDEX … ON {spec.table} ({', '.join(spec.key)}).",
        )
    key = shape.real_names(spec.key)
    counted = set(_columns_that_count(connection, spec))
    if _has_own_before_triggers(connection, spec):
        counted.update(name for index in indexes for name in index.columns)
    names = tuple(one.name for one in shape.columns if one.name in counted)
    if shape.rowid is not None and any(shape.column(name) is None for name in counted):
        names = (*names, shape.rowid)  # it reads the number of the row
    return Watched(
        shape=shape,
        log=spec.changes,
        log_key=replace(spec, key=key).log_key,
        key=key,
        columns=names,
        listed=shape.listable(name for name in names if name not in key),
        evictions=evictions_of(shape, indexes, key),
    )


def watched_for_evictions(connection: sqlite3.Connection, spec: TableSpec) -> Watched:
    """Return what of a table, whose other triggers are there, REPLACE may take away."""
    shape: Shape = shape_of(connection, spec.table)
    key = shape.real_names(spec.key)
    evictions = evictions_of(shape, unique_indexes(connection, shape), key)
    log_key = replace(spec, key=key).log_key
    return Watched(shape, spec.changes, log_key, key, (), (), evictions=evictions)


def _columns_that_count(connection: sqlite3.Connection, spec: TableSpec) -> tuple[str, ...]:
    """Return the columns whose values decide a row's text, metadata and membership.

    SQLite's authorizer tells them, whatever the expressions look like.
    """
    content = f"t.{quote(spec.content)}" if spec.content.isidentifier() else f"({spec.content}\n)"
    parts = [content]
    parts += [f"({part}\n)" for part in (spec.where, spec.deleted) if part is not None]
    parts += [f"t.{quote(name)}" for name in spec.metadata]
    if spec.expires_at is not None:
        parts.append(f"t.{quote(spec.expires_at)}")
    found = columns_read(connection, f"SELECT {', '.join(parts)} FROM {quote(spec.table)} AS t")
    refuse_other_tables(connection, found, spec.table)
    return found.get(spec.table, ())


def refuse_other_tables(connection: sqlite3.Connection, read: Collection[str], table: str) -> None:
    """Raise SettingsError if what an expression over `table` reads is not all its own."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if others := sorted((set(read) & names) - {table}):
        raise SettingsError(
            f"an expression under [source] reads {', '.join(others)}, whose changes are not those "
            f"of {table}: they would never reach the index",
            hint="Keep what is indexed in the table itself, for example by a trigger that fills "
            "a column; or name the other table under [[source.joined]].",
        )


def _has_own_before_triggers(connection: sqlite3.Connection, spec: TableSpec) -> bool:
    """Say whether the application has triggers that run before a row is written.

    Such a one may bring other rows into conflict with the new row, after our own triggers have
    looked for those that REPLACE will take away: so a row is logged whenever it moves in an index.
    """
    rows = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? "
        "AND substr(name, 1, 15) <> 'syncer_changes_'",
        (spec.table,),
    )
    words = [set(re.findall(r"\w+", sql.upper())) for (sql,) in rows]
    return any("BEFORE" in found or "AFTER" not in found for found in words)


def refuse_what_has_no_triggers(connection: sqlite3.Connection, table: str, setting: str) -> None:
    """Raise SettingsError if a table's changes cannot be logged; `setting` is what names it."""
    found = connection.execute(
        "SELECT type, sql FROM sqlite_master WHERE name = ? AND type IN ('table', 'view')",
        (table,),
    ).fetchone()
    if found is None:
        return  # which table there might be instead is said by the check of the settings
    kind, sql = found
    if kind == "view":
        what = "a view, and SQLite lets nobody log the changes of a view"
    elif str(sql).upper().startswith("CREATE VIRTUAL"):
        what = "a virtual table, and SQLite allows no triggers on one"
    elif table.lower().startswith("sqlite_"):
        what = "one of SQLite's own tables"
    else:
        return
    raise SettingsError(
        f"{table} is {what}",
        hint=f"Attach the table that holds the rows ({setting}), or set source.changes to "
        '"updated_at" or "append_only" and name source.key.',
    )
