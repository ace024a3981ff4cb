"""The migration files: where they are, what is in them, and which schema they add up to."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from syncer.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SETS = ("state", "canonical")
"""Every set, in the order in which ``syncer init`` applies them."""

OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
"""Query for everything in a database that somebody made by hand, as text."""

_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered SQL file of a set, and the SHA-256 of its bytes in hexadecimal."""

    set: str
    version: int
    name: str
    text: str
    sha256: str

    @property
    def file(self) -> str:
        """Where a reader finds it, from the top of the source tree."""
        return f"migrations/{self.set}/{self.version:04}_{self.name}.sql"


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """A table, index, trigger or view: the migrations that gave it its form, and that made it."""

    kind: str
    name: str
    sql: str | None
    origin: Migration
    made_by: Migration


def packaged() -> Path:
    """Return the folder of the migrations: in the installed package, or else in the checkout."""
    package = Path(str(resources.files("syncer")))
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def load(set_name: str, root: Path) -> tuple[Migration, ...]:
    """Return one set's migrations under `root` in order; other files are left alone."""
    found: list[Migration] = []
    for entry in (root / set_name).iterdir():
        if match := _FILE_NAME.fullmatch(entry.name):
            data = entry.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            found.append(Migration(set_name, int(match[1]), match[2], data.decode(), digest))
    return tuple(sorted(found, key=lambda one: one.version))


def statements(text: str) -> Iterator[str]:
    """Split SQL into its statements; a trigger with its inner semicolons is one.

    Comments stay with the statement that follows. A last statement without a semicolon counts.
    """
    start = 0
    for semicolon in re.finditer(";", text):
        candidate = text[start : semicolon.end()]
        if sqlite3.complete_statement(candidate):
            yield candidate.strip()
            start = semicolon.end()
    if rest := text[start:].strip():
        yield rest


@cache
def replay(migrations: tuple[Migration, ...]) -> tuple[SchemaObject, ...]:
    """Return the objects that `migrations`, applied in order, make in an empty database.

    Raises SchemaError naming file and statement if one does not work.
    """
    objects: dict[tuple[str, str], SchemaObject] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in migrations:
            _execute(connection, migration)
            present = {(kind, name): sql for kind, name, sql in connection.execute(OBJECTS)}
            objects = {key: kept for key, kept in objects.items() if key in present}
            for key, sql in present.items():
                made_by = objects[key].made_by if key in objects else migration
                if key not in objects or objects[key].sql != sql:
                    objects[key] = SchemaObject(*key, sql, migration, made_by)
    return tuple(objects.values())


def differences(
    present: Iterable[tuple[str, str, str | None]], expected: Iterable[SchemaObject]
) -> dict[str, str]:
    """Return what is missing in, or altered from, `expected`, each with the file to look at.

    `present` are the rows of OBJECTS. Triggers and views are compared by their text; tables and
    indexes only need to be there, since columns and indexes may be added.
    """
    found = {(kind, name): sql for kind, name, sql in present}
    wrong: dict[str, str] = {}
    for one in expected:
        if (one.kind, one.name) not in found:
            wrong[f"{one.kind} {one.name} is missing"] = one.origin.file
        elif one.kind in {"trigger", "view"} and found[one.kind, one.name] != one.sql:
            wrong[f"{one.kind} {one.name} was altered"] = one.origin.file
    return wrong


def _execute(connection: sqlite3.Connection, migration: Migration) -> None:
    for number, statement in enumerate(statements(migration.text), 1):
        try:
            connection.execute(statement)
        except sqlite3.Error as error:
            raise SchemaError(f"{migration.file}, statement {number}: {error}") from error
