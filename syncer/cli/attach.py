"""``syncer attach`` and ``syncer detach``: a change log on a table that somebody else made."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from urllib.parse import quote as quote_path

from syncer import changelog, lock, migrate
from syncer.cli import opening, specs, watch
from syncer.errors import SettingsError
from syncer.schema import SchemaObject, load, packaged, replay
from syncer.settings import Settings
from syncer.settings.base import CANONICAL_TABLE
from syncer.source import BUSY_SLICE, JoinedLists, key_order, open_readonly
from syncer.sqlite import transaction, translated
from syncer.state import StateStore
from syncer.table import check_table, quote, with_all_columns

_READS = re.compile(r"(?:\s|--[^\n]*\n)*(?:SELECT|PRAGMA)\b", re.IGNORECASE)
_BOOK = "syncer_migrations"


def attach(settings: Settings) -> str:
    """Make or complete the change log and syncer's own tables; return what was done, in words.

    Raises SettingsError if the table cannot be watched, SchemaError if something else bears one
    of the names, SourceError or SourceBusyError if the database cannot be written.
    """
    _refuse_other_modes(settings)
    database, table = settings.source.database, settings.source.table
    spec = specs.table_spec(settings)
    _plan(settings)  # refuses what cannot be watched before anything is written

    def work() -> tuple[int, int]:
        with closing(open_readwrite(database)) as connection, writing(database):
            applied = migrate.apply(connection, "state")
            run = changelog.attach(connection, spec)
        if run and not applied:  # it was not whole, and nobody watched meanwhile
            with closing(StateStore(database)) as store:
                store.compare(table)
        return len(applied), len(run)

    applied, run = opening.patiently(settings, work)
    warnings = opening.patiently(settings, lambda: _warnings(settings))
    if not applied and not run:
        return "\n".join([f"{table} in {database} is attached; there is nothing to do", *warnings])
    return "\n".join(
        [
            f"{table} in {database} is attached: its changes are logged in {spec.changes}",
            (
                "ALTER TABLE … DROP COLUMN on a column that the triggers read fails until "
                "`syncer detach`"
            ),
            *warnings,
            "next: syncer once",
        ]
    )


def attach_sql(settings: Settings) -> str:
    """Return the SQL that ``attach`` would run, for any SQLite shell."""
    _refuse_other_modes(settings)
    state, log = _plan(settings)
    return _script([*state, *_in_one_transaction(log)])


def detach(settings: Settings) -> str:
    """Take change log and state out of the database; return what was done, in words.

    No run may be at work meanwhile: raises LockedError if one is. Raises SettingsError if there
    is no such table, nor anything left of its change log.
    """
    database, table = settings.source.database, settings.source.table
    name = settings.target.collection
    wait = settings.target.lock_wait

    def work() -> tuple[list[str], list[str]]:
        with closing(open_readwrite(database)) as connection, writing(database):
            left = _generations(connection, table)
            if not _detaching(connection, settings):
                return left, []
            with transaction(connection):
                statements = _detaching(connection, settings)
                for statement in statements:
                    connection.execute(statement)
            return left, statements

    with closing(_open(settings)):
        pass  # a missing database is said before a lock file is left beside it
    with lock.held(opening.lock_path(settings, name), f"the lock on {name}", wait):
        left, statements = opening.patiently(settings, work)
    if not statements:
        return f"{table} in {database} is not attached; there is nothing to do"
    lines = [f"{table} in {database} is detached: its change log is gone"]
    if left:
        lines.append(f"left in Qdrant, for you to delete: {', '.join(left)}")
    return "\n".join(lines)


def detach_sql(settings: Settings) -> str:
    """Return the SQL that ``detach`` would run, for any SQLite shell."""
    with closing(_open(settings)) as connection, writing(settings.source.database):
        return _script(_in_one_transaction(_detaching(connection, settings)))


def open_readwrite(path: Path) -> sqlite3.Connection:
    """Return a connection that may write, and never makes a file that is not there."""
    open_readonly(path).close()
    with writing(path):
        return sqlite3.connect(
            f"file:{quote_path(str(path))}?mode=rw",
            uri=True,
            timeout=BUSY_SLICE,
            isolation_level=None,
        )


def writing(path: Path) -> AbstractContextManager[None]:
    """Raise SQLite's errors as SourceError or SourceBusyError that name the file."""
    return translated(
        f"the database {path}",
        "cannot be changed",
        "syncer must be able to write to the file and to its folder.",
    )


def _refuse_other_modes(settings: Settings) -> None:
    if settings.source.changes != "log":
        raise SettingsError(
            f"source.changes is {settings.source.changes}, which needs no change log",
            hint='Set source.changes = "log", or run `syncer once` right away.',
        )
    with closing(_open(settings)) as connection:
        _refuse_canonical(settings, connection)


def _refuse_canonical(settings: Settings, connection: sqlite3.Connection) -> None:
    if watch.is_canonical(settings, connection):
        raise SettingsError(
            f"{CANONICAL_TABLE} is the table that `syncer init` makes, with its change log",
            hint="Run `syncer init`; or set source.table to the table that is meant.",
        )


def _open(settings: Settings) -> sqlite3.Connection:
    return opening.patiently(settings, lambda: open_readonly(settings.source.database))


def _plan(settings: Settings) -> tuple[list[str], list[str]]:
    """Return the SQL that is missing, of syncer's own tables and of the change log."""
    with closing(_open(settings)) as connection, writing(settings.source.database):
        log = changelog.attaching(connection, specs.table_spec(settings))
        return _missing_state(connection), log


def _warnings(settings: Settings) -> list[str]:
    """Return for which joined lists a look at one row reads a whole table."""
    spec = specs.table_spec(settings)
    with closing(_open(settings)) as connection, writing(settings.source.database):
        found = JoinedLists(connection, spec, key_order(connection, spec)).warnings
    return [f"warning: {one}" for one in found]


def _missing_state(connection: sqlite3.Connection) -> list[str]:
    """Return the statements of the ``state`` migrations that the database lacks.

    They are recorded while they run in a database in memory that has what this one has.
    """
    done: list[str] = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        known = {one.name for one in _state_objects()} | {_BOOK}
        found = connection.execute(
            "SELECT name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        ).fetchall()
        for name, table, sql in found:
            if name in known or table in known:
                copy.execute(sql)
        if _BOOK in {name for name, *_ in found}:
            rows = connection.execute(f"SELECT * FROM {_BOOK}").fetchall()
            copy.executemany(f"INSERT INTO {_BOOK} VALUES (?, ?, ?, ?, ?)", rows)
        copy.set_trace_callback(done.append)
        migrate.apply(copy, "state")
        copy.set_trace_callback(None)
    return [statement for statement in done if not _READS.match(statement)]


def _detaching(connection: sqlite3.Connection, settings: Settings) -> list[str]:
    """Return the statements that take out the log and what the state knows of its table."""
    _refuse_canonical(settings, connection)
    spec = specs.table_spec(settings)
    statements = changelog.detaching(connection, spec)
    if not statements:
        check_table(connection, with_all_columns(connection, spec))
    return statements + _forgetting(connection, settings)


def _forgetting(connection: sqlite3.Connection, settings: Settings) -> list[str]:
    table = settings.source.table
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if _BOOK not in tables:
        return []
    own = [one.name for one in _state_objects() if one.kind == "table" and one.name in tables]
    if not _is_shared(connection, settings):
        return [f"DROP TABLE {quote(name)}" for name in [*own, _BOOK]]
    if not _generations(connection, table):
        return []
    this = "'" + table.replace("'", "''") + "'"
    whose = f"(SELECT generation FROM syncer_generations WHERE source_table = {this})"
    held = [name for name in own if "generation" in _columns(connection, name)]
    held.sort(key=lambda name: name == "syncer_generations")  # the others are found by it
    return [f"DELETE FROM {quote(name)} WHERE generation IN {whose}" for name in held]


def _is_shared(connection: sqlite3.Connection, settings: Settings) -> bool:
    """Say whether another table is attached, or generations of another one are kept."""
    spec = specs.table_spec(settings)
    logs = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> ? "
        "AND substr(name, 1, 15) = 'syncer_changes_'",
        (spec.changes,),
    ).fetchall()
    others = connection.execute(
        "SELECT 1 FROM syncer_generations WHERE source_table <> ?", (spec.table,)
    ).fetchone()
    sets = connection.execute(f"SELECT 1 FROM {_BOOK} WHERE set_name <> 'state'").fetchone()
    attached = any(changelog.is_log(connection, name) for (name,) in logs)
    return attached or others is not None or sets is not None


def _generations(connection: sqlite3.Connection, table: str) -> list[str]:
    if "generation" not in _columns(connection, "syncer_generations"):
        return []
    rows = connection.execute(
        "SELECT generation FROM syncer_generations WHERE source_table = ? ORDER BY 1", (table,)
    )
    return [str(name) for (name,) in rows]


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_xinfo({quote(table)})")}


def _state_objects() -> Sequence[SchemaObject]:
    return replay(load("state", packaged()))


def _in_one_transaction(statements: Sequence[str]) -> list[str]:
    return ["BEGIN IMMEDIATE", *statements, "COMMIT"] if statements else []


def _script(statements: Sequence[str]) -> str:
    if not statements:
        return "-- there is nothing to do"
    return "\n".join(f"{statement.rstrip().rstrip(';')};" for statement in statements)
