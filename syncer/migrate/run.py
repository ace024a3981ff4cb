"""Applying what a database lacks, each file in a transaction of its own."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from syncer.errors import SchemaError, SourceError
from syncer.migrate.book import (
    BUSY,
    load_all,
    name_of,
    read_book,
    refuse_other_history,
    rows,
    translated,
)
from syncer.schema import OBJECTS, SETS, Migration, load, packaged, replay, statements
from syncer.sqlite import transaction

BUSY_TIMEOUT = 5.0  # seconds
_BOOK = """
CREATE TABLE IF NOT EXISTS syncer_migrations (
    set_name   TEXT NOT NULL,
    version    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (set_name, version)
)"""


@dataclass(frozen=True, slots=True)
class Applied:
    """One migration that a call has applied."""

    set: str
    version: int
    name: str


def init_database(
    path: Path, *, busy_timeout: float = BUSY_TIMEOUT, root: Path | None = None
) -> tuple[Applied, ...]:
    """Create the database if there is none, and apply what it lacks of all sets.

    Returns what was newly applied, () when it was up to date; it may be called again at any time
    and by several processes at once. A database that is still empty is put into WAL mode. In one
    that is not, the journal mode stays as it is. `busy_timeout` is in seconds; `root` stands in
    for the packaged ``migrations`` folder.

    Raises SchemaError, with nothing changed, if something that syncer did not make has one of
    the names, if the database was made by another or newer syncer, or if the files do not even
    work in an empty database; SourceBusyError if it is locked for longer than the timeout;
    SourceError if it cannot be created, read or written; and what ``apply`` raises.
    """
    everything = load_all(root)
    _create(path)
    with translated(str(path)), closing(_connect(path, busy_timeout)) as connection:
        if _survey(connection, str(path), everything):
            _switch_to_wal(connection, busy_timeout)
        return tuple(done for name in SETS for done in apply(connection, name, root=root))


def apply(
    connection: sqlite3.Connection, set_name: str, *, root: Path | None = None
) -> tuple[Applied, ...]:
    """Apply what the database lacks of one set, and return that; () when it is up to date.

    Each migration has a transaction of its own: one that fails leaves nothing behind, those
    before it stay. The connection must not be in a transaction. Takes no lock if nothing is
    missing. Raises SchemaError naming file and statement if one fails, or if the database was
    made by another or newer syncer; SourceBusyError after the connection's own busy timeout.
    """
    migrations = load(set_name, root or packaged())
    database = name_of(connection)
    with translated(database):
        book = read_book(connection)
        refuse_other_history(database, book, migrations)
        todo = [found for found in migrations if (set_name, found.version) not in book]
        done = [found for found in todo if _apply_one(connection, database, found)]
    return tuple(Applied(found.set, found.version, found.name) for found in done)


def _create(path: Path) -> None:
    if path.is_dir():
        raise SourceError(f"{path}: is a folder, not a database", hint="Give the path of a file.")
    if path.exists():
        return
    try:
        path.touch()
    except OSError as error:
        raise SourceError(
            f"{path}: cannot be created: {error.strerror}",
            hint=f"Make {path.parent} a folder that syncer may write to, or choose another path.",
        ) from error


def _connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    uri = path.absolute().as_uri() + "?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=busy_timeout, isolation_level=None)


def _switch_to_wal(connection: sqlite3.Connection, busy_timeout: float) -> None:
    """Wait here: SQLite does not always wait when two connections switch at once."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _survey(
    connection: sqlite3.Connection, database: str, everything: tuple[Migration, ...]
) -> bool:
    """Refuse a database that has a name of ours for something else; say whether it is empty."""
    with transaction(connection, "BEGIN"):  # one view of both, while another process may be at it
        book = read_book(connection)
        present = {name.lower(): kind for kind, name, _ in rows(connection, OBJECTS)}
    refuse_other_history(database, book, everything)
    for wanted in replay(everything):
        kind = present.get(wanted.name.lower())
        if kind and (wanted.made_by.set, wanted.made_by.version) not in book:
            raise SchemaError(
                f"{database}: has a {kind} called {wanted.name} that syncer did not make",
                hint=f"Nothing was changed. Rename that {kind}, or choose another database.",
            )
    return not present


def _apply_one(connection: sqlite3.Connection, database: str, migration: Migration) -> bool:
    """Apply and record one migration; False if another process has done so meanwhile."""
    with transaction(connection, "BEGIN IMMEDIATE"):
        connection.execute(_BOOK)
        if (migration.set, migration.version) in read_book(connection):
            return False
        for number, statement in enumerate(statements(migration.text), 1):
            where = f"{migration.file}, statement {number}"
            with translated(database, where, "Nothing of this file was kept."):
                connection.execute(statement)
        connection.execute(
            "INSERT INTO syncer_migrations (set_name, version, name, sha256) VALUES (?, ?, ?, ?)",
            (migration.set, migration.version, migration.name, migration.sha256),
        )
    return True
