"""Which rows and texts of which table; checked against the database before it is used."""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from syncer.errors import SettingsError

_NAME = re.compile(r"\w+")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*""")
_SUBQUERY = re.compile(r"\bSELECT\b", re.IGNORECASE)
_LOG_OWN = frozenset({"seq", "changed_at"})


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table and what of it is indexed.

    `content` and `where`, `deleted` are SQL expressions over the table's columns, `content`
    usually just a column. `json` names metadata columns that hold JSON although they are not
    declared as such. `expires_at` is a column that holds UTC times as ISO 8601 text with
    milliseconds and Z.
    """

    table: str
    key: tuple[str, ...] = ("id",)
    content: str = "content"
    metadata: tuple[str, ...] = ()
    where: str | None = None
    deleted: str | None = None
    expires_at: str | None = None
    expiry_is_uniform: bool = True
    json: tuple[str, ...] = ()

    @property
    def changes(self) -> str:
        """Name of the table's change log."""
        return f"syncer_changes_{self.table}"

    @property
    def log_key(self) -> tuple[str, ...]:
        """Names of the key's columns in the change log, apart from the log's own."""
        names: list[str] = []
        for name in self.key:
            taken = _LOG_OWN | {one.lower() for one in (*self.key, *names) if one != name}
            free = name
            while free.lower() in taken:
                free += "_"
            names.append(free)
        return tuple(names)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table with their declared types, in their order."""

    types: dict[str, str]
    primary_key: tuple[str, ...]
    has_autoincrement: bool

    def names(self) -> list[str]:
        """Return the column names."""
        return list(self.types)


def quote(name: str) -> str:
    """Return `name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def check_table(connection: sqlite3.Connection, spec: TableSpec) -> Columns:
    """Return the table's columns, or raise SettingsError that names what is missing.

    Every name of the settings is looked up, since SQLite takes a misspelt identifier in double
    quotes for a text. All problems are reported at once.
    """
    found = connection.execute(
        "SELECT type, sql FROM sqlite_master WHERE name = ? AND type IN ('table', 'view')",
        (spec.table,),
    ).fetchone()
    if found is None:
        raise SettingsError(_no_table(connection, spec.table), hint=_ATTACH)
    info = connection.execute(f"PRAGMA table_xinfo({quote(spec.table)})").fetchall()
    columns = Columns(
        types={row[1]: row[2] for row in info},
        primary_key=tuple(row[1] for row in info if row[5]),
        has_autoincrement="AUTOINCREMENT" in (found[1] or "").upper(),
    )
    problems = [
        _no_column(name, setting, columns.names())
        for setting, name in _named_columns(spec)
        if name.lower() not in {column.lower() for column in columns.names()}
    ]
    problems += _bad_expressions(connection, spec)
    if problems:
        raise SettingsError(f"table {spec.table}: " + "; ".join(problems), hint=_COLUMNS)
    return columns


def check_columns(columns: Columns, spec: TableSpec, named: Mapping[str, str]) -> None:
    """Raise SettingsError if a column that a setting of [source] names is not there."""
    known = {column.lower() for column in columns.names()}
    problems = [
        _no_column(name, setting, columns.names())
        for setting, name in named.items()
        if name.lower() not in known
    ]
    if problems:
        raise SettingsError(f"table {spec.table}: " + "; ".join(problems), hint=_COLUMNS)


_ATTACH = "Correct source.table in the settings, or run `syncer init` to make the canonical table."
_COLUMNS = "Correct the settings under [source]."


def with_all_columns(connection: sqlite3.Connection, spec: TableSpec) -> TableSpec:
    """Return `spec` with ``*`` among its metadata replaced by all columns but key and content."""
    if "*" not in spec.metadata:
        return spec
    info = connection.execute(f"PRAGMA table_xinfo({quote(spec.table)})").fetchall()
    spoken_for = {name.lower() for name in (*spec.key, spec.content.strip().strip('"'))}
    names = [row[1] for row in info]
    return replace(spec, metadata=tuple(name for name in names if name.lower() not in spoken_for))


def json_columns(columns: Columns, spec: TableSpec) -> frozenset[str]:
    """Return the metadata columns that are declared as JSON, or are said to hold it."""
    found = {name.lower() for name, kind in columns.types.items() if "JSON" in kind.upper()}
    found |= {name.lower() for name in spec.json}
    return frozenset(name for name in spec.metadata if name.lower() in found)


def is_reusable_key(columns: Columns, spec: TableSpec) -> bool:
    """Say whether SQLite may give the key of a deleted row to a new one."""
    is_rowid = columns.primary_key == spec.key and columns.types[spec.key[0]].upper() == "INTEGER"
    return is_rowid and not columns.has_autoincrement


def reused_key_warning(spec: TableSpec) -> str:
    """Return why a key that may be given twice is a risk."""
    return (
        f"{spec.table}.{spec.key[0]} is INTEGER PRIMARY KEY without AUTOINCREMENT: SQLite gives "
        "the id of a deleted last row to the next new row. The change log notices that, but "
        "whoever remembers an id, in a link or an answer, then finds another row under it. "
        "AUTOINCREMENT never gives an id twice."
    )


def _named_columns(spec: TableSpec) -> list[tuple[str, str]]:
    named = [("key", name) for name in spec.key]
    named += [("metadata", name) for name in spec.metadata]
    named += [("json_columns", name) for name in spec.json]
    if _NAME.fullmatch(spec.content):
        named.append(("content", spec.content))
    if spec.expires_at is not None:
        named.append(("expires_at", spec.expires_at))
    return named


def _no_table(connection: sqlite3.Connection, name: str) -> str:
    tables = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'syncer\\_%' ESCAPE '\\' "
            "ORDER BY name"
        )
    ]
    there = ", ".join(tables) or "no table at all"
    return f"there is no table {name}{_closest(name, tables)}; the database has {there}"


def _no_column(name: str, setting: str, columns: Sequence[str]) -> str:
    there = ", ".join(columns)
    return f"no column {name} (source.{setting}){_closest(name, columns)}; there is {there}"


def _closest(name: str, names: Sequence[str]) -> str:
    match = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {match[0]}?)" if match else ""


def _bad_expressions(connection: sqlite3.Connection, spec: TableSpec) -> list[str]:
    problems = []
    for setting in ("content", "where", "deleted"):
        expression = getattr(spec, setting)
        if expression is None or _NAME.fullmatch(expression):
            continue
        try:
            connection.execute(
                f"EXPLAIN SELECT ({expression}\n) FROM {quote(spec.table)} AS t"
            ).close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            problems.append(f"source.{setting} is no SQL expression over it: {error}")
        else:
            problems += _taken_for_text(connection, spec.table, setting, expression)
    return problems


def _taken_for_text(
    connection: sqlite3.Connection, table: str, setting: str, expression: str
) -> list[str]:
    """Return what is wrong with names in double quotes that SQLite takes for texts."""
    if _SUBQUERY.search(expression):
        return []  # it has names of its own
    info = connection.execute(f"PRAGMA table_xinfo({quote(table)})").fetchall()
    columns = [row[1] for row in info]
    known = {name.lower() for name in (*columns, "t", "rowid", "oid", "_rowid_")}
    named = [
        part[1:-1].replace('""', '"') for part in _QUOTED.findall(expression) if part[0] == '"'
    ]
    return [_no_column(name, setting, columns) for name in named if name.lower() not in known]
