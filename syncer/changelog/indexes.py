"""The unique indexes of a table: through each of them a REPLACE may take another row away."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from syncer.changelog.shape import Shape, columns_read
from syncer.table import quote

_EXPRESSION = -2  # index_xinfo's number for an expression
_PIECE = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\]
    | --[^\n]* | /\*.*?(?:\*/|\Z) | \w+ | .""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"--|/\*")
_DIRECTION = re.compile(r"\s+(?:ASC|DESC)\s*$", re.IGNORECASE)
_COMPARISON = re.compile(r"[<>=]|\b(?:IN|IS|BETWEEN|CASE)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Term:
    """A column of an index, or the text of an expression, with its collation.

    `reads` are the columns that decide its value.
    """

    text: str
    collation: str
    reads: tuple[str, ...]
    is_expression: bool = False

    @property
    def compares(self) -> bool:
        """Whether the affinity of its columns may decide its value."""
        return self.is_expression and _COMPARISON.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """A unique index: its terms, and the condition of a partial one.

    `columns` are those that decide where a row stands in it, `reads` those that an UPDATE must
    name to bring a row into conflict; None for any.
    """

    name: str
    terms: tuple[Term, ...]
    where: str | None
    columns: tuple[str, ...]
    reads: tuple[str, ...] | None


def unique_indexes(connection: sqlite3.Connection, shape: Shape) -> tuple[UniqueIndex, ...]:
    """Return the unique indexes of a table, those of its constraints too, in a fixed order."""
    rows = connection.execute(f"PRAGMA index_list({quote(shape.table)})").fetchall()
    names = sorted(row[1] for row in rows if row[2])
    return tuple(_read(connection, shape, name) for name in names)


def is_key(index: UniqueIndex, shape: Shape, key: Sequence[str]) -> bool:
    """Say whether two rows that collide in `index` must have the same key, byte for byte.

    What REPLACE takes away through such an index is logged with the row that comes. In a column
    without affinity 1 and 1.0 collide, and yet are two keys.
    """
    exact = {
        term.text.lower()
        for term in index.terms
        if not term.is_expression
        and term.collation.upper() == "BINARY"
        and (column := shape.column(term.text)) is not None
        and column.affinity not in ("", "NUMERIC")
    }
    return exact >= {name.lower() for name in key}


def is_unique(indexes: Sequence[UniqueIndex], shape: Shape, key: Sequence[str]) -> bool:
    """Say whether no two rows can have the same key."""
    names = {name.lower() for name in key}
    if shape.alias is not None and shape.alias.lower() in names:
        return True
    return any(
        index.where is None
        and all(not term.is_expression and term.text.lower() in names for term in index.terms)
        for index in indexes
    )


def split(sql: str) -> tuple[list[str], str | None]:
    """Return the terms of a CREATE INDEX, without ASC and DESC, and its condition."""
    terms, depth, rest = [""], 0, ""
    for piece in _PIECE.findall(sql):
        text = " " if _COMMENT.match(piece) else piece
        depth += (text == "(") - (text == ")")
        if rest or (depth == 0 and text == ")"):
            rest += text
        elif depth == 1 and text == ",":
            terms.append("")
        elif depth > 1 or (depth == 1 and not (text == "(" and terms == [""])):
            terms[-1] += text
    condition = re.fullmatch(r"\)\s*WHERE\b(.*)", rest.strip(), re.IGNORECASE | re.DOTALL)
    where = condition[1].strip() if condition else None
    return [_DIRECTION.sub("", term.strip()).strip() for term in terms], where


def _read(connection: sqlite3.Connection, shape: Shape, name: str) -> UniqueIndex:
    found = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?", (name,)
    ).fetchone()
    texts, where = split(found[0]) if found and found[0] else ([], None)
    rows = connection.execute(f"PRAGMA index_xinfo({quote(name)})").fetchall()
    keys = [row for row in rows if row[5]]  # not the columns that the index carries along
    terms = []
    for place, (_, number, column, _, collation, _) in enumerate(keys):
        if number == _EXPRESSION:
            reads = _columns(connection, shape, texts[place])
            everything = tuple(one.name for one in shape.columns)
            terms.append(Term(texts[place], collation, reads or everything, is_expression=True))
        else:
            terms.append(Term(column or str(shape.rowid), collation, (column,) if column else ()))
    in_where = () if where is None else _columns(connection, shape, where)
    if where is not None and in_where is None and not _is_known(connection, shape, where):
        where = None  # rather look at more rows than let the application's statements fail
    names = [name for term in terms for name in term.reads or (term.text,)] + list(in_where or ())
    listed = None if in_where is None else shape.listable(dict.fromkeys(names))
    columns = tuple(one for one in shape.deciding(names) if shape.column(one) is not None)
    return UniqueIndex(name, tuple(terms), where, columns, listed)


def _columns(connection: sqlite3.Connection, shape: Shape, text: str) -> tuple[str, ...] | None:
    """Return the columns that an expression reads; None if SQLite here cannot tell."""
    table = quote(shape.table)
    try:
        found = columns_read(connection, f"SELECT ({text}\n) FROM {table} AS {alias(shape.table)}")
    except sqlite3.Error:
        return None  # a function or collation that only the application has
    return found.get(shape.table, ())


def _is_known(connection: sqlite3.Connection, shape: Shape, text: str) -> bool:
    """Say whether a condition can be put into a trigger: nothing is wrong but its functions."""
    table = quote(shape.table)
    try:
        connection.execute(
            f"EXPLAIN SELECT ({text}\n) FROM {table} AS {alias(shape.table)}"
        ).close()
    except sqlite3.Error as error:
        return "no such function" in str(error) or "no such collation" in str(error)
    return True


def alias(table: str) -> str:
    """Return the name under which triggers read the table, quoted.

    It is the table's own, since the condition of an index may say ``table.column``; but not where
    that would hide NEW or OLD.
    """
    return quote("t" if table.lower() in ("new", "old") else table)
