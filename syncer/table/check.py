"""The settings of a table, checked against the database before they are used."""

from __future__ import annotations

import difflib
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from syncer.errors import SettingsError
from syncer.table.spec import Joined, TableSpec, is_name, quote

_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*""")
_SUBQUERY = re.compile(r"\bSELECT\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table with their declared types, in their order."""

    types: dict[str, str]
    primary_key: tuple[str, ...]
    has_autoincrement: bool

    def names(self) -> list[str]:
        """Return the column names."""
        return list(self.types)


def check_table(connection: sqlite3.Connection, spec: TableSpec) -> Columns:
    """Return the table's columns, or raise SettingsError that names what is missing.

    Every name of the settings is looked up, since SQLite takes a misspelt identifier in double
    quotes for a text. All problems are reported at once.
    """
    found = _find(connection, spec.table)
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
    problems += [bad for each in spec.joined for bad in _bad_joined(connection, spec, each)]
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


def own_collations(
    connection: sqlite3.Connection, table: str, names: Sequence[str]
) -> dict[str, str]:
    """Return by lower-case name the collations that columns are declared with; none if unknown.

    No PRAGMA tells them, but an index takes them over: here one in memory, over a copy.
    """
    found = _find(connection, table)
    if found is None or found[0] != "table":
        return {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        try:
            copy.execute(found[1])
            columns = ", ".join(map(quote, names))
            copy.execute(f"CREATE INDEX syncer_probe ON {quote(table)} ({columns})")
        except sqlite3.Error:
            return {}  # it needs a function or collation that only the application has
        terms = copy.execute("PRAGMA index_xinfo(syncer_probe)").fetchall()
    return {str(row[2]).lower(): str(row[4]).upper() for row in terms if row[5]}


def _find(connection: sqlite3.Connection, name: str) -> tuple[str, str] | None:
    """Return kind and SQL of a table or view, None if there is none."""
    sql = "SELECT type, sql FROM sqlite_master WHERE name = ? AND type IN ('table', 'view')"
    found: tuple[str, str] | None = connection.execute(sql, (name,)).fetchone()
    return found


def _named_columns(spec: TableSpec) -> list[tuple[str, str]]:
    named = [("key", name) for name in spec.key]
    named += [("metadata", name) for name in spec.metadata]
    named += [("json_columns", name) for name in spec.json]
    if is_name(spec.content):
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
        if expression is None or is_name(expression):
            continue
        sql = f"SELECT ({expression}\n) FROM {quote(spec.table)} AS t"
        bad = _bad_sql(connection, sql, f"source.{setting}")
        problems += bad or _taken_for_text(connection, spec.table, setting, expression)
    return problems


def _bad_joined(connection: sqlite3.Connection, spec: TableSpec, one: Joined) -> list[str]:
    """Return what is wrong with a joined list."""
    where = f"joined[{one.name}]"
    problems = []
    if one.name.lower() in {name.lower() for name in spec.metadata}:
        problems.append(f"source.{where} has the name of a column in source.metadata")
    if _find(connection, one.table) is None:
        return [*problems, f"source.{where}: {_no_table(connection, one.table)}"]
    info = connection.execute(f"PRAGMA table_xinfo({quote(one.table)})").fetchall()
    columns = [row[1] for row in info]
    known = {name.lower() for name in columns}
    named = [("key", name) for name in one.key] + [("value", name) for name in one.fields or ()]
    texts = {"value": one.value, "order": one.order}
    rest = {name: text for name, text in texts.items() if isinstance(text, str)}
    named += [(name, text) for name, text in rest.items() if is_name(text)]
    problems += [
        f"{one.table}: {_no_column(name, f'{where}.{setting}', columns)}"
        for setting, name in named
        if name.lower() not in known
    ]
    for setting, text in rest.items():
        if not is_name(text):
            clause = f"SELECT ({text}\n)" if setting == "value" else "SELECT 1"
            # Another term after it: a LIMIT must not pass for a part of the order.
            order = f" ORDER BY {text}\n, j.{quote(columns[0])}" if setting == "order" else ""
            # Beside the row itself, as it is read: there a bare rowid could be either's.
            sql = f"{clause} FROM (SELECT 1) CROSS JOIN {quote(one.table)} AS j{order}"
            bad = _bad_sql(connection, sql, f"source.{where}.{setting}")
            problems += bad or _taken_for_text(connection, one.table, f"{where}.{setting}", text)
    return problems


def _bad_sql(connection: sqlite3.Connection, sql: str, setting: str) -> list[str]:
    try:
        connection.execute(f"EXPLAIN {sql}").close()
    except (sqlite3.Error, sqlite3.Warning) as error:
        return [f"{setting} is no SQL expression over it: {error}"]
    return []


def _taken_for_text(
    connection: sqlite3.Connection, table: str, setting: str, expression: str
) -> list[str]:
    """Return what is wrong with names in double quotes that SQLite takes for texts."""
    if _SUBQUERY.search(expression):
        return []  # it has names of its own
    info = connection.execute(f"PRAGMA table_xinfo({quote(table)})").fetchall()
    columns = [row[1] for row in info]
    known = {name.lower() for name in (*columns, "t", "j", "rowid", "oid", "_rowid_")}
    named = [
        part[1:-1].replace('""', '"') for part in _QUOTED.findall(expression) if part[0] == '"'
    ]
    return [_no_column(name, setting, columns) for name in named if name.lower() not in known]
