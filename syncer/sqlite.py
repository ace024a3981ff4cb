"""What all who write to SQLite share: whole transactions, and what its errors mean."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from syncer.errors import SourceBusyError, SourceError

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY = 0xFF  # the part of an extended result code that says the kind


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 where the error is the module's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & _PRIMARY


def translate(error: sqlite3.Error, file: str, cannot: str, hint: str) -> SourceError:
    """Return the error as SourceBusyError if `file` is locked, else as SourceError.

    `file` names the database and what it is, `cannot` what went wrong with it, `hint` what helps.
    """
    if primary_code(error) in _BUSY:
        return SourceBusyError(
            f"{file} is locked by another program",
            hint="Find the program that holds a transaction open. Nothing was changed.",
        )
    return SourceError(f"{file} {cannot}: {error}", hint=hint)


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Run the block in a transaction that `begin` starts; on any exception nothing of it stays."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translated(file: str, cannot: str, hint: str) -> Iterator[None]:
    """Raise SQLite's errors in the block as ``translate`` returns them."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, file, cannot, hint) from error
