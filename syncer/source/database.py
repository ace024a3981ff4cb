"""Opening a SQLite database for reading, and what its errors mean."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from syncer.errors import SourceBusyError, SourceError, SyncerError
from syncer.keys import RawText

BUSY_SLICE = 5.0  # seconds that SQLite itself waits; beyond that the retry policy decides


def open_readonly(path: Path, busy: float = BUSY_SLICE) -> sqlite3.Connection:
    """Return a connection that cannot write, and never makes a file that is not there.

    It waits `busy` seconds for a lock.
    Raises SourceError for a missing or empty file and for one that is no database.
    """
    _check_file(path)
    with translated(path):
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=ro", uri=True, timeout=busy, isolation_level=None
        )
        connection.text_factory = _text
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
    return connection


@dataclass(frozen=True, slots=True)
class FileMark:
    """Which file a path led to: device and inode. Another one in its place is another database."""

    path: Path
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> FileMark:
        """Return the mark of the file at `path` now. Raises SourceError if there is none."""
        try:
            found = path.stat()
        except OSError as error:
            raise SourceError(
                f"the database {path} is not there any more: {error.strerror}",
                hint="Nothing was taken for deleted. Put it back, or correct source.database.",
            ) from error
        return cls(path, found.st_dev, found.st_ino)

    def check(self) -> None:
        """Raise SourceError if the path leads to another file by now, or to none."""
        if FileMark.of(self.path) != self:
            raise SourceError(
                f"{self.path} was replaced by another file while it was open",
                hint="Nothing was taken for deleted. Run again: the new file is checked first.",
            )


@contextmanager
def snapshot(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Hold one read transaction while the block runs; all statements in it see the same state."""
    with translated(path):
        connection.execute("BEGIN")
        try:
            yield
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as SourceError or SourceBusyError that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error


def translate(error: sqlite3.Error, path: Path) -> SyncerError:
    """Return what an error of SQLite's means for the database at `path`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return SourceBusyError(
            f"the database {path} is locked by another program",
            hint="Find the program that holds a transaction open. Nothing was changed.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return SourceError(
            f"{path} is not a SQLite database", hint="Correct source.database in the settings."
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return SourceError(
            f"the database {path} cannot be opened: {error}",
            hint="syncer must be able to read it and, with a write-ahead log, to write to its "
            "folder; or keep a writer open, or point syncer at a copy made with VACUUM INTO.",
        )
    return SourceError(f"the database {path} cannot be read: {error}")


def _check_file(path: Path) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        raise SourceError(
            f"there is no database at {path}",
            hint="Correct source.database in the settings, or run `syncer init` to make one.",
        ) from None
    except OSError as error:
        raise SourceError(
            f"the database {path} cannot be reached: {error.strerror}",
            hint="Give syncer access to the folder, or correct source.database.",
        ) from error
    if stat.S_ISREG(found.st_mode) and found.st_size == 0:
        raise SourceError(
            f"{path} is empty and not an initialised database",
            hint="Run `syncer init`, or correct source.database in the settings.",
        )


def _text(data: bytes) -> str | RawText:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return RawText(data)
