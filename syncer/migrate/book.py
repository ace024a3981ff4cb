"""What is recorded as applied, and SQLite's errors in syncer's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncer.errors import SchemaError, SourceBusyError, SourceError, SyncerError
from syncer.schema import SETS, Migration, load, packaged

BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
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


Book = dict[tuple[str, int], tuple[str, str]]
"""What is recorded as applied: name and SHA-256 by set and version."""


def load_all(root: Path | None) -> tuple[Migration, ...]:
    """Return the migrations of all sets; `root` stands in for the packaged folder."""
    return tuple(one for name in SETS for one in load(name, root or packaged()))


def read_book(connection: sqlite3.Connection) -> Book:
    """Return what is recorded as applied; nothing in a database that syncer never touched."""
    known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'syncer_migrations'"
    if not rows(connection, known):
        return {}
    foreign = "Rename that table, or choose another database."
    with translated(name_of(connection), "table syncer_migrations", foreign):
        applied = rows(connection, "SELECT set_name, version, name, sha256 FROM syncer_migrations")
    return {(set_name, version): (name, digest) for set_name, version, name, digest in applied}


def refuse_other_history(database: str, book: Book, migrations: Sequence[Migration]) -> None:
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


def rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    """Return what a query finds, as plain tuples."""
    cursor = connection.cursor()
    cursor.row_factory = None  # whatever the connection's owner has set
    return cursor.execute(sql).fetchall()


def name_of(connection: sqlite3.Connection) -> str:
    """Return the path of the main database."""
    files = {name: file for _, name, file in rows(connection, "PRAGMA database_list")}
    return files["main"] or ":memory:"


@contextmanager
def translated(database: str, where: str = "", hint: str | None = None) -> Iterator[None]:
    """Turn SQLite's errors into syncer's; `where` is what was being read or executed."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, database, where, hint) from error


def _translate(error: sqlite3.Error, database: str, where: str, hint: str | None) -> SyncerError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the primary code
    message = f"{database}: {where}: {error}" if where else f"{database}: {error}"
    if code in BUSY:
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
