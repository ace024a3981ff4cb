"""Whether a database is as the migrations make it; nothing here writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from syncer.errors import SchemaError
from syncer.migrate.book import load_all, name_of, read_book, refuse_other_history, rows, translated
from syncer.schema import OBJECTS, SETS, differences, load, packaged, replay


def pending(
    connection: sqlite3.Connection, set_name: str, *, root: Path | None = None
) -> tuple[str, ...]:
    """Return the files of one set that the database lacks, in order."""
    with translated(name_of(connection)):
        book = read_book(connection)
    found = load(set_name, root or packaged())
    return tuple(one.file for one in found if (set_name, one.version) not in book)


def holds(connection: sqlite3.Connection, set_name: str) -> bool:
    """Say whether any migration of a set was applied to the database."""
    with translated(name_of(connection)):
        return any(name == set_name for name, _ in read_book(connection))


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
            f"{name_of(connection)}: {'; '.join(wrong)}",
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
    everything = load_all(root)
    wanted = [one for one in everything if one.set in sets]
    database = name_of(connection)
    with translated(database):
        book = read_book(connection)
        if not book:
            raise SchemaError(f"{database}: not initialised by syncer", hint="Run `syncer init`.")
        refuse_other_history(database, book, wanted)
        if missing := [one.file for one in wanted if (one.set, one.version) not in book]:
            raise SchemaError(
                f"{database}: migrations not applied: {', '.join(missing)}",
                hint="Run `syncer init`.",
            )
        objects = rows(connection, OBJECTS)
    wrong = differences(objects, [one for one in replay(everything) if one.origin.set in sets])
    if gone := [what for what in wrong if not what.startswith(("trigger ", "view "))]:
        files = ", ".join(sorted({wrong[what] for what in gone}))
        raise SchemaError(f"{database}: {'; '.join(gone)}", hint=f"Put it back as {files} has it.")
    return wrong
