"""Makes and checks the tables that syncer needs: the numbered SQL files under ``migrations/``.

There are two sets. ``state`` holds syncer's own tables, ``canonical`` the table of those who have
none yet, with its audit and change log. Each file is applied and recorded, with the SHA-256 of its
bytes, in one transaction; what was applied once is never applied again.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncer.errors import SchemaError, SourceBusyError, SourceError, SyncerError
from syncer.schema import OBJECTS, SETS, differences, load, packaged, replay, statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from syncer.schema import Migration

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
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_STORAGE = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


@dataclass(frozen=True, slots=True)
class Applied:
    """One migration that a call has applied."""

    set: str
    version: int
    name: str


_Book = dict[tuple[str, int], tuple[str, str]]
"""What is recorded as applied: name and SHA-256 by set and version."""


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
    everything = _load_all(root)
    _create(path)
    with _translated(str(path)), closing(_connect(path, busy_timeout)) as connection:
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
    database = _name_of(connection)
    with _translated(database):
        book = _read_book(connection)
        _refuse_other_history(database, book, migrations)
        todo = [found for found in migrations if (set_name, found.version) not in book]
        done = [found for found in todo if _apply_one(connection, database, found)]
    return tuple(Applied(found.set, found.version, found.name) for found in done)


def pending(
    connection: sqlite3.Connection, set_name: str, *, root: Path | None = None
) -> tuple[str, ...]:
    """Return the files of one set that the database lacks, in order."""
    with _translated(_name_of(connection)):
        book = _read_book(connection)
    found = load(set_name, root or packaged())
    return tuple(one.file for one in found if (set_name, one.version) not in book)


def holds(connection: sqlite3.Connection, set_name: str) -> bool:
    """Say whether any migration of a set was applied to the database."""
    with _translated(_name_of(connection)):
        return any(name == set_name for name, _ in _read_book(connection))


def check(
    connection: sqlite3.Connection, sets: Sequence[str] = SETS, *, root: Path | None = None
) -> None:
    """Compare the database with what the migrations of `sets` make of it; writes nothing.

    Raises SchemaError for all that `lost` raises it for, and if a trigger or view is missing or
    was altered.
    """
    if wrong := _wrong(connection, sets, root):
        files = ", ".join(sorted(set(wrong.values())))
        raise SchemaError(
            f"{_name_of(connection)}: {'; '.join(wrong)}",
            hint=f"Run `syncer init`, which puts it back as {files} has it. What was written "
            "meanwhile may be missing from the audit.",
        )


def lost(
    connection: sqlite3.Connection, sets: Sequence[str] = SETS, *, root: Path | None = None
) -> dict[str, str]:
    """Return the triggers and views of `sets` that are missing or altered, each with which.

    Raises SchemaError if a migration is missing, if one was applied with another text, if the
    database was made by a newer syncer, or if a table or an index is missing. Columns and indexes
    that somebody added are theirs to add.
    """
    split = (what.split(" ", 2) for what in _wrong(connection, sets, root))
    return {f"{kind} {name}": finding for kind, name, finding in split}


def _wrong(
    connection: sqlite3.Connection, sets: Sequence[str], root: Path | None
) -> dict[str, str]:
    """Return the triggers and views that are not as they should be, each with its file."""
    everything = _load_all(root)
    wanted = [one for one in everything if one.set in sets]
    database = _name_of(connection)
    with _translated(database):
        book = _read_book(connection)
        if not book:
            raise SchemaError(f"{database}: not initialised by syncer", hint="Run `syncer init`.")
        _refuse_other_history(database, book, wanted)
        if missing := [one.file for one in wanted if (one.set, one.version) not in book]:
            raise SchemaError(
                f"{database}: migrations not applied: {', '.join(missing)}",
                hint="Run `syncer init`.",
            )
        objects = _rows(connection, OBJECTS)
    wrong = differences(objects, [one for one in replay(everything) if one.origin.set in sets])
    if gone := [what for what in wrong if not what.startswith(("trigger ", "view "))]:
        files = ", ".join(sorted({wrong[what] for what in gone}))
        raise SchemaError(f"{database}: {'; '.join(gone)}", hint=f"Put it back as {files} has it.")
    return wrong


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
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _load_all(root: Path | None) -> tuple[Migration, ...]:
    return tuple(one for name in SETS for one in load(name, root or packaged()))


def _survey(
    connection: sqlite3.Connection, database: str, everything: tuple[Migration, ...]
) -> bool:
    """Refuse a database that has a name of ours for something else; say whether it is empty."""
    with _transaction(connection, "BEGIN"):  # one view of both, while another process may be at it
        book = _read_book(connection)
        present = {name.lower(): kind for kind, name, _ in _rows(connection, OBJECTS)}
    _refuse_other_history(database, book, everything)
    for wanted in replay(everything):
        kind = present.get(wanted.name.lower())
        if kind and (wanted.origin.set, wanted.origin.version) not in book:
            raise SchemaError(
                f"{database}: has a {kind} called {wanted.name} that syncer did not make",
                hint=f"Nothing was changed. Rename that {kind}, or choose another database.",
            )
    return not present


def _apply_one(connection: sqlite3.Connection, database: str, migration: Migration) -> bool:
    """Apply and record one migration; False if another process has done so meanwhile."""
    with _transaction(connection, "BEGIN IMMEDIATE"):
        connection.execute(_BOOK)
        if (migration.set, migration.version) in _read_book(connection):
            return False
        for number, statement in enumerate(statements(migration.text), 1):
            where = f"{migration.file}, statement {number}"
            with _translated(database, where, "Nothing of this file was kept."):
                connection.execute(statement)
        connection.execute(
            "INSERT INTO syncer_migrations (set_name, version, name, sha256) VALUES (?, ?, ?, ?)",
            (migration.set, migration.version, migration.name, migration.sha256),
        )
    return True


def _read_book(connection: sqlite3.Connection) -> _Book:
    known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'syncer_migrations'"
    if not _rows(connection, known):
        return {}
    foreign = "Rename that table, or choose another database."
    with _translated(_name_of(connection), "table syncer_migrations", foreign):
        rows = _rows(connection, "SELECT set_name, version, name, sha256 FROM syncer_migrations")
    return {(set_name, version): (name, digest) for set_name, version, name, digest in rows}


def _refuse_other_history(database: str, book: _Book, migrations: Sequence[Migration]) -> None:
    """Raise SchemaError if the sets were applied by a newer syncer or from other files."""
    known = {(one.set, one.version): one for one in migrations}
    sets = {one.set for one in migrations}
    for (set_name, version), (name, digest) in sorted(book.items()):
        if set_name in SETS and set_name not in sets:
            continue
        if (set_name, version) not in known:
            raise SchemaError(
                f"{database}: made by a newer syncer: this one does not know the migration "
                f"{set_name}/{version:04}_{name}",
                hint="Install at least the version of syncer that initialised the database.",
            )
        if known[set_name, version].sha256 != digest:
            raise SchemaError(
                f"{database}: {known[set_name, version].file} was applied with another text than "
                "this syncer has (the SHA-256 differs)",
                hint="Install the syncer that initialised the database, or a later release.",
            )


def _rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.row_factory = None  # whatever the connection's owner has set
    return cursor.execute(sql).fetchall()


def _name_of(connection: sqlite3.Connection) -> str:
    """Return the path of the main database."""
    files = {name: file for _, name, file in _rows(connection, "PRAGMA database_list")}
    return files["main"] or ":memory:"


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _translated(database: str, where: str = "", hint: str | None = None) -> Iterator[None]:
    """Turn SQLite's errors into syncer's; `where` is what was being read or executed."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, database, where, hint) from error


def _translate(error: sqlite3.Error, database: str, where: str, hint: str | None) -> SyncerError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the primary code
    message = f"{database}: {where}: {error}" if where else f"{database}: {error}"
    if code in _BUSY:
        return SourceBusyError(
            f"{database}: another program held its lock for longer than the busy timeout",
            hint="Try again, or find the program that keeps a transaction open.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return SourceError(f"{database}: not a SQLite database", hint="Check the path.")
    if code in _STORAGE:
        folder = Path(database).parent
        return SourceError(
            message, hint=f"syncer must be able to write the file and the folder {folder}."
        )
    return SchemaError(message, hint=hint)
