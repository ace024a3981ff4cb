"""Putting a change log into a database, seeing that it is whole, and taking it out again."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence

from syncer.changelog.joined import joined_triggers
from syncer.changelog.mapping import watched, watched_for_evictions
from syncer.changelog.statements import Statement, eviction_triggers, log_table, triggers
from syncer.errors import SchemaError
from syncer.sqlite import transaction
from syncer.table import TableSpec, quote

_JOINED = re.compile(r"joined\.[^.]+\.(?:insert|delete|update|rekey|rekey_from|evict_\w+)")


def plan(connection: sqlite3.Connection, spec: TableSpec) -> list[Statement]:
    """Return the objects that the change log of `spec` consists of, the log first.

    Raises SettingsError if the settings do not fit a table, or if its changes cannot be logged.
    """
    found = watched(connection, spec)
    return [log_table(found), *triggers(found), *joined_triggers(connection, spec)]


def evictions(connection: sqlite3.Connection, spec: TableSpec) -> list[Statement]:
    """Return the triggers that a table with a change log needs for unique indexes added to it."""
    return eviction_triggers(watched_for_evictions(connection, spec))


def find_faults(connection: sqlite3.Connection, spec: TableSpec) -> dict[str, str]:
    """Return what of the change log is missing, altered or left over, by the object's name.

    Writes nothing. Raises what ``plan`` raises.
    """
    return _faults(plan(connection, spec), _present(connection, spec))


def find_eviction_faults(connection: sqlite3.Connection, spec: TableSpec) -> dict[str, str]:
    """Return the same for the triggers of ``evictions`` alone."""
    return _faults(evictions(connection, spec), _present_evictions(connection, spec))


def find_joined_faults(connection: sqlite3.Connection, spec: TableSpec) -> dict[str, str]:
    """Return the same for the triggers on joined tables alone."""
    return _faults(joined_triggers(connection, spec), _present_joined(connection, spec))


def attach(connection: sqlite3.Connection, spec: TableSpec) -> list[str]:
    """Make or complete the change log in one transaction; return the statements that were run.

    Safe to run again: what is there as it should be is left alone, and so are logged changes. If
    nothing is to be done no lock is taken. Raises what ``plan`` raises, SchemaError if a table of
    the log's name is not a change log, and sqlite3.Error.
    """
    return _run(connection, lambda: attaching(connection, spec))


def attaching(connection: sqlite3.Connection, spec: TableSpec) -> list[str]:
    """Return the statements that ``attach`` would run."""
    return _mending(connection, plan(connection, spec), _present(connection, spec))


def attach_evictions(connection: sqlite3.Connection, spec: TableSpec) -> list[str]:
    """Make or complete the triggers of ``evictions``, likewise."""

    def mending() -> list[str]:
        wanted = evictions(connection, spec)
        return _mending(connection, wanted, _present_evictions(connection, spec))

    return _run(connection, mending)


def attach_joined(connection: sqlite3.Connection, spec: TableSpec) -> list[str]:
    """Make or complete the triggers on joined tables for a table with a change log, likewise."""

    def mending() -> list[str]:
        wanted = joined_triggers(connection, spec)
        return _mending(connection, wanted, _present_joined(connection, spec))

    return _run(connection, mending)


def detaching(connection: sqlite3.Connection, spec: TableSpec) -> list[str]:
    """Return the statements that take the change log out, or what is left of it."""
    present = _present(connection, spec)
    kinds = sorted(present, key=lambda name: (present[name][0] == "table", name))
    return [_drop(name, present[name][0]) for name in kinds]


def is_log(connection: sqlite3.Connection, table: str) -> bool:
    """Say whether a table looks like a change log."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_xinfo({quote(table)})")]
    return columns[:1] == ["seq"] and columns[-1:] == ["changed_at"]


def _run(connection: sqlite3.Connection, statements: Callable[[], list[str]]) -> list[str]:
    if not statements():
        return []
    with transaction(connection):
        found = statements()  # once more: somebody else may have been at it
        for statement in found:
            connection.execute(statement)
    return found


_Present = dict[str, tuple[str, str]]
"""Kind and SQL by name."""


def _present(connection: sqlite3.Connection, spec: TableSpec) -> _Present:
    """Return the log and the triggers that bear its name, on the table and on joined ones.

    The log of a table ``a`` has triggers named like those of ``a_b``, but those are on another
    table, or joined for it.
    """
    rows = connection.execute(
        "SELECT name, type, sql, tbl_name FROM sqlite_master WHERE (type = 'table' AND name = ?1) "
        "OR (type = 'trigger' AND substr(name, 1, ?2) = ?3)",
        (spec.changes, len(spec.changes) + 1, f"{spec.changes}_"),
    ).fetchall()
    return {
        name: (kind, sql)
        for name, kind, sql, table in rows
        if kind == "table"
        or _is_joined(name, spec)
        or (table == spec.table and "." not in _rest(name, spec))
    }


def _present_joined(connection: sqlite3.Connection, spec: TableSpec) -> _Present:
    found = _present(connection, spec)
    return {name: one for name, one in found.items() if _is_joined(name, spec)}


def _is_joined(name: str, spec: TableSpec) -> bool:
    """Say whether a trigger has a name as those on joined tables have."""
    return _JOINED.fullmatch(_rest(name, spec)) is not None


def _rest(name: str, spec: TableSpec) -> str:
    return name[len(spec.changes) + 1 :]


def _present_evictions(connection: sqlite3.Connection, spec: TableSpec) -> _Present:
    prefix = f"{spec.changes}_evict_"
    found = _present(connection, spec)
    return {name: one for name, one in found.items() if name.startswith(prefix)}


def _faults(wanted: Sequence[Statement], present: _Present) -> dict[str, str]:
    faults = {
        one.name: "missing" if one.name not in present else "altered"
        for one in wanted
        if present.get(one.name, ("", ""))[1] != one.sql
    }
    return faults | dict.fromkeys(
        sorted(present.keys() - {one.name for one in wanted}), "left over"
    )


def _mending(
    connection: sqlite3.Connection, wanted: Sequence[Statement], present: _Present
) -> list[str]:
    statements = []
    by_name = {one.name: one for one in wanted}
    for name in _faults(wanted, present):
        kind = present[name][0] if name in present else None
        if kind == "table":
            statements += _renew_log(connection, by_name[name])
            continue
        if kind is not None:
            statements.append(_drop(name, kind))
        if name in by_name:
            statements.append(by_name[name].sql)
    return statements


def _renew_log(connection: sqlite3.Connection, log: Statement) -> list[str]:
    """Return what replaces a log whose rows had another key; its numbers go on.

    Entries under the old key say nothing any more, but a position must never lie ahead of the log.
    """
    if not is_log(connection, log.name):
        raise SchemaError(
            f"there is a table {log.name} that is not a change log",
            hint="Nothing was changed. Rename that table.",
        )
    found = connection.execute(
        "SELECT seq FROM sqlite_sequence WHERE name = ?", (log.name,)
    ).fetchone()
    statements = [_drop(log.name, "table"), log.sql]
    if found:
        name = "'" + log.name.replace("'", "''") + "'"
        values = f"{name}, {int(found[0])}"
        statements.append(f"INSERT INTO sqlite_sequence (name, seq) VALUES ({values})")
    return statements


def _drop(name: str, kind: str) -> str:
    return f"DROP {kind.upper()} {quote(name)}"
