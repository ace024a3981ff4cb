"""The SQL that reads one table. Names are quoted, values are bound."""

from __future__ import annotations

from collections.abc import Sequence

from syncer.keys import Key, KeyPart, RawText
from syncer.model import Row
from syncer.table import TableSpec, quote


class Queries:
    """The statements for one table."""

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
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
        self.oldest_change = f"SELECT changed_at FROM {log} WHERE seq > ? ORDER BY seq LIMIT 1"
        self.count_in_scope = f"SELECT count(*) FROM {self._table} WHERE {self._members()}"
        expiry = f"t.{quote(spec.expires_at or '')}"
        within = f"FROM {self._table} WHERE {expiry} > ? AND {expiry} <= ?"
        self.expired = f"SELECT {', '.join(self._key)} {within} ORDER BY {expiry}"
        self.expiry_edge = f"SELECT {expiry} {within} ORDER BY {expiry} LIMIT 1 OFFSET ?"
        self.next_expiry = f"SELECT min({expiry}) FROM {self._table} WHERE {expiry} > ?"

    def one(self, key: Key, now: str) -> tuple[str, Sequence[object]]:
        """Return the query for one row by its key, byte for byte."""
        matches = " AND ".join(
            f"{name} = {_mark(part)} COLLATE BINARY"
            for name, part in zip(self._key, key, strict=True)
        )
        return f"{self._select} WHERE {matches}", (*self._scope_values(now), *_bound(key))

    def walk(self, after: Key | None, now: str, limit: int) -> tuple[str, Sequence[object]]:
        """Return the query for the rows behind `after` in the order of the key."""
        behind, values = self._behind(after)
        order = ", ".join(self._key)
        sql = f"{self._select} WHERE {behind} ORDER BY {order} LIMIT ?"
        return sql, (*self._scope_values(now), *values, limit)

    def count_after(self, after: Key | None) -> tuple[str, Sequence[object]]:
        """Return the query for the number of rows behind `after`."""
        behind, values = self._behind(after)
        return f"SELECT count(*) FROM {self._table} WHERE {behind}", values

    def row(self, record: Sequence[object]) -> Row:
        """Return the row that a record of ``one`` or ``walk`` describes."""
        in_scope, content, *rest = record
        keys = len(self._key)
        key: Key = tuple(rest[:keys])  # type: ignore[arg-type]
        metadata = dict(zip(self._spec.metadata, rest[keys:], strict=True))
        return Row(key, present=True, content=content, metadata=metadata) if in_scope else Row(key)

    def _behind(self, after: Key | None) -> tuple[str, Sequence[object]]:
        if after is None:
            return "1", ()
        names = ", ".join(self._key)
        marks = ", ".join(_mark(part) for part in after)
        return f"({names}) > ({marks})", _bound(after)

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
        expiry = f"t.{quote(self._spec.expires_at)}"
        return f"{self._members()} AND ({expiry} IS NULL OR {expiry} > ?)"

    def _scope_values(self, now: str) -> tuple[str, ...]:
        return () if self._spec.expires_at is None else (now,)


def _mark(part: KeyPart) -> str:
    # Bytes bind as a BLOB, which never equals a TEXT of the same bytes.
    return "CAST(? AS TEXT)" if isinstance(part, RawText) else "?"


def _bound(key: Key) -> tuple[object, ...]:
    return tuple(part.data if isinstance(part, RawText) else part for part in key)
