"""Which rows and texts of which table, and what of other tables goes along."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"\w+")
_LOG_OWN = frozenset({"seq", "changed_at"})


def quote(name: str) -> str:
    """Return `name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def is_name(text: str) -> bool:
    """Say whether a setting is just a column's name, and no expression."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Joined:
    """A list that goes along as metadata: what another table has for a row.

    `key` are that table's columns that hold the row's key, in its order. `value` is a column or an
    SQL expression over that table, alias ``j``; or several columns, of which each entry becomes an
    object. `order` is what the entries are sorted by before their values.
    """

    name: str
    table: str
    key: tuple[str, ...]
    value: str | tuple[str, ...]
    order: str | None = None

    @property
    def fields(self) -> tuple[str, ...] | None:
        """Names of the columns that make an object; None where an entry is a bare value."""
        return self.value if isinstance(self.value, tuple) else None

    @property
    def values(self) -> tuple[str, ...]:
        """What is selected of an entry, as SQL over the alias ``j``."""
        if isinstance(self.value, tuple):
            return tuple(f"j.{quote(name)}" for name in self.value)
        return (_over("j", self.value),)

    @property
    def terms(self) -> tuple[str, ...]:
        """What entries are sorted by, as SQL: the same entries always make the same list."""
        first = () if self.order is None else (_over("j", self.order, whole=False),)
        exact = [f"{value} COLLATE BINARY, typeof({value})" for value in self.values]
        return (*first, *exact)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table and what of it is indexed.

    `content` and `where`, `deleted` are SQL expressions over the table's columns, `content`
    usually just a column. `json` names metadata columns that hold JSON although they are not
    declared as such. `expires_at` is a column that holds UTC times as ISO 8601 text with
    milliseconds and Z. `joined` are lists of metadata out of other tables.
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
    joined: tuple[Joined, ...] = ()

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


def _over(alias: str, text: str, *, whole: bool = True) -> str:
    """Return a column or an expression as SQL; not `whole` may have commas and directions."""
    if is_name(text):
        return f"{alias}.{quote(text)}"
    return f"({text}\n)" if whole else f"{text}\n"
