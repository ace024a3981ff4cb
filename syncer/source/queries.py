"""The SQL that reads one table. Names are quoted, values are bound."""

from __future__ import annotations

from collections.abc import Sequence

from syncer.keys import Key
from syncer.model import Row
from syncer.source.expiry import Expiry
from syncer.source.order import KeyOrder, bound, mark, plain_order
from syncer.table import TableSpec, quote

__all__ = ["Queries", "bound", "mark"]


class Queries:
    """The statements for one table."""

    def __init__(self, spec: TableSpec, order: KeyOrder | None = None) -> None:
        self._spec = spec
        self._order = order or plain_order(spec)
        self._terms = self._order.terms
        self._expiry = Expiry(spec)
        self._table = f"{quote(spec.table)} AS t"
        self._key = [f"t.{quote(name)}" for name in spec.key]
        self._select = (
            f"SELECT {self._in_scope()}, {self._content()}, "
            + ", ".join(self._key + [f"t.{quote(name)}" for name in spec.metadata])
            + f" FROM {self._table}"
        )
        log = quote(spec.changes)
        names = ", ".join(quote(name) for name in spec.log_key)
        self.changes = (
            f"SELECT seq, {names} FROM {log} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        )
        self.oldest_change = (
            f"SELECT strftime('%Y-%m-%dT%H:%M:%fZ', changed_at) FROM {log} WHERE seq > ? "
            "ORDER BY seq LIMIT 1"
        )
        self.count_in_scope = f"SELECT count(*) FROM {self._table} WHERE {self._members()}"
        descending = ", ".join(f"{term} DESC" for term in self._terms)
        self.last_key = (
            f"SELECT {', '.join(self._key)} FROM {self._table} ORDER BY {descending} LIMIT 1"
        )
        stamp, within = self._expiry.stamp, f"FROM {self._table} WHERE {self._expiry.within}"
        self.expired = f"SELECT {', '.join(self._key)} {within} ORDER BY {stamp}"
        self.expiry_edge = f"SELECT {stamp} {within} ORDER BY {stamp} LIMIT 1 OFFSET ?3"
        self.next_expiry = self._expiry.next_after(self._table)

    def one(self, key: Key, now: str) -> tuple[str, Sequence[object]]:
        """Return the query for one row by its key, byte for byte."""
        matches, values = self._order.matches(key)
        return f"{self._select} WHERE {matches}", (*self._scope_values(now), *values)

    def is_member(self, key: Key) -> tuple[str, Sequence[object]]:
        """Return the query that finds a row by its key if it is in scope, expired or not."""
        matches, values = self._order.matches(key)
        return f"SELECT 1 FROM {self._table} WHERE {matches} AND {self._members()}", values

    def is_behind(self, key: Key, after: Key | None) -> tuple[str, Sequence[object]]:
        """Return the query that finds a row by its key if it comes after `after`."""
        matches, values = self._order.matches(key)
        behind, more = self._behind(after)
        return f"SELECT 1 FROM {self._table} WHERE {matches} AND {behind}", (*values, *more)

    def changed(self, marks: str) -> str:
        """Return the query for those of some keys that stand in the log; `marks` is a list of rows.

        The number is bound first behind which they are looked for.
        """
        log = f"FROM {quote(self._spec.changes)} WHERE seq > ?"
        names = ", ".join(quote(name) for name in self._spec.log_key)
        return f"SELECT DISTINCT {names} {log} AND ({names}) IN (VALUES {marks})"

    def outsiders(self, after: Key | None, limit: int) -> tuple[str, Sequence[object]]:
        """Return the query for the keys behind `after` whose rows are out of scope."""
        behind, values = self._behind(after)
        keys = ", ".join(self._key)
        sql = (
            f"SELECT {keys} FROM {self._table} WHERE {behind} AND NOT ({self._members()}) "
            f"ORDER BY {', '.join(self._terms)} LIMIT ?"
        )
        return sql, (*values, limit)

    def walk(
        self, after: Key | None, now: str, limit: int, until: Key | None = None
    ) -> tuple[str, Sequence[object]]:
        """Return the query for the rows behind `after`, up to `until`, in the order of the key."""
        behind, values = self._behind(after)
        order = ", ".join(self._terms)
        if until is not None:
            marks = ", ".join(mark(part) for part in until)
            behind = f"{behind} AND coalesce(({order}) <= ({marks}), 1)"  # NULL comes first
            values = (*values, *bound(until))
        sql = f"{self._select} WHERE {behind} ORDER BY {order} LIMIT ?"
        return sql, (*self._scope_values(now), *values, limit)

    def count_after(self, after: Key | None) -> tuple[str, Sequence[object]]:
        """Return the query for the number of rows behind `after`."""
        behind, values = self._behind(after)
        return f"SELECT count(*) FROM {self._table} WHERE {behind}", values

    def reaches(self, key: Key) -> tuple[str, Sequence[object]]:
        """Return the query that finds a row if there is one with this key or behind it."""
        keys, marks = ", ".join(self._terms), ", ".join(mark(part) for part in key)
        sql = f"SELECT 1 FROM {self._table} WHERE ({keys}) >= ({marks}) LIMIT 1"
        return sql, bound(key)

    def row(self, record: Sequence[object]) -> Row:
        """Return the row that a record of ``one`` or ``walk`` describes."""
        in_scope, content, *rest = record
        keys = len(self._key)
        key: Key = tuple(rest[:keys])  # type: ignore[arg-type]
        metadata = dict(zip(self._spec.metadata, rest[keys:], strict=True))
        return Row(key, present=True, content=content, metadata=metadata) if in_scope else Row(key)

    def _behind(self, after: Key | None) -> tuple[str, Sequence[object]]:
        return self._order.behind(after)

    def _content(self) -> str:
        if self._spec.content.isidentifier():
            return f"t.{quote(self._spec.content)}"
        return f"({self._spec.content}\n)"

    def _members(self) -> str:
        conditions = ["1"]
        if self._spec.where is not None:
            conditions.append(f"coalesce(({self._spec.where}\n), 0)")
        if self._spec.deleted is not None:
            conditions.append(f"NOT coalesce(({self._spec.deleted}\n), 0)")
        return " AND ".join(conditions)

    def _in_scope(self) -> str:
        if self._spec.expires_at is None:
            return self._members()
        return f"{self._members()} AND {self._expiry.is_ahead('?')}"

    def _scope_values(self, now: str) -> tuple[str, ...]:
        return () if self._spec.expires_at is None else (now,)
