"""What other tables have for a row, read with it and in the same transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from syncer.keys import Key
from syncer.model import Row
from syncer.source.order import KeyOrder
from syncer.table import Joined, TableSpec, quote

_THIS = "syncer_row"  # the row's own key, apart from all names of the joined table


class JoinedLists:
    """The lists of a row, one query for each; see ``syncer.table.Joined``."""

    def __init__(self, connection: sqlite3.Connection, spec: TableSpec, order: KeyOrder) -> None:
        self._connection = connection
        self._spec = spec
        self._order = order
        self.warnings = self._warnings()  # for which a look at one row reads a whole table

    def complete(self, row: Row) -> Row:
        """Return `row` with its lists among the metadata; as it is if it is absent."""
        if not row.present or not self._spec.joined:
            return row
        lists = {one.name: self._entries(one, row.key) for one in self._spec.joined}
        return replace(row, metadata={**row.metadata, **lists})

    def query(self, one: Joined, key: Key) -> tuple[str, Sequence[object]]:
        """Return the query for a row's entries.

        The row itself is looked up too, so that its key compares with what is joined as one column
        with another: by type and collation as in any SQL that the application would write.
        """
        matches, values = self._order.matches(key)
        names = [f"syncer_key_{number}" for number in range(len(self._spec.key))]
        keys = ", ".join(
            f"t.{quote(column)} AS {name}"
            for column, name in zip(self._spec.key, names, strict=True)
        )
        same = " AND ".join(
            f"{_THIS}.{name} = j.{quote(column)}"
            for column, name in zip(one.key, names, strict=True)
        )
        sql = (
            f"SELECT {', '.join(one.values)} "
            f"FROM (SELECT {keys} FROM {quote(self._spec.table)} AS t WHERE {matches}) AS {_THIS} "
            f"CROSS JOIN {quote(one.table)} AS j WHERE {same} ORDER BY {', '.join(one.terms)}"
        )
        return sql, values

    def _entries(self, one: Joined, key: Key) -> list[object]:
        found = self._connection.execute(*self.query(one, key)).fetchall()
        fields = one.fields
        if fields is None:
            return [value for (value,) in found if value is not None]
        return [dict(zip(fields, values, strict=True)) for values in found]

    def _warnings(self) -> list[str]:
        some = (0,) * len(self._spec.key)
        return [
            f"metadata.{one.name}: no index leads from a row of {self._spec.table} to its entries "
            f"in {one.table}, so every row that is read costs a look through that whole table: "
            f"CREATE INDEX … ON {one.table} ({', '.join(one.key)}), with the key's type and "
            "collation."
            for one in self._spec.joined
            if self._reads_all(one, some)
        ]

    def _reads_all(self, one: Joined, key: Key) -> bool:
        sql, values = self.query(one, key)
        steps = self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
        return any("AUTOMATIC" in step or _is_scan(step) for *_, step in steps)


def _is_scan(step: str) -> bool:
    """Say whether a step of a plan goes through a whole table; the row's own look-up apart."""
    words = step.split()
    return words[:1] == ["SCAN"] and not {"t", _THIS} & set(words)
