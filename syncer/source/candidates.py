"""The rows of a table that may have changed since an instant, by their change column."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from syncer.keys import Key, KeyPart
from syncer.source.order import KeyOrder, bound, mark
from syncer.source.ranges import Range, ranges_since
from syncer.source.stamps import instant_of
from syncer.table import quote

Value = KeyPart  # SQLite's types are the same for a stamp as for a part of a key


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pass is: the number of the range, the value there, and the row's key."""

    range: int
    value: Value
    key: Key


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may have changed; `instant` is None if its stamp names no time."""

    place: Place
    instant: int | None

    @property
    def key(self) -> Key:
        """The row's key."""
        return self.place.key


class Candidates:
    """The statements for one table and its change column.

    With an index on the column they go through its ranges; without one they read the whole table,
    once, in the order of the key.
    """

    def __init__(
        self, connection: sqlite3.Connection, table: str, order: KeyOrder, column: str
    ) -> None:
        self._connection = connection
        self._value = f"t.{quote(column)}"
        self._order = order
        self._by_key = ", ".join(order.terms)
        self._from = (
            f"SELECT {self._value}, {', '.join(order.names)} FROM {quote(table)} AS t WHERE "
        )
        self._holds_numbers = not self._is_text(table, column)
        self.by_index = self._has_index()

    def stamps_of(self, key: Key) -> list[int | None]:
        """Return the instant of the row with this key, None if it names none; [] without a row."""
        matches, values = self._order.matches(key)
        found = self._connection.execute(f"{self._from}{matches}", values)
        return [instant_of(value) for value, *_ in found]

    def since(self, instant: int | None, after: Place | None = None) -> Iterator[Candidate]:
        """Yield the rows whose stamp is later than `instant` or names no time, behind `after`.

        The order is that of the index; it is the same for the same `instant`.
        """
        for number, sql, values in self.statements(instant, after):
            cursor = self._connection.execute(sql, values)
            try:
                for value, *key in cursor:
                    found = instant_of(value)
                    if found is None or instant is None or found > instant:
                        yield Candidate(Place(number, value, tuple(key)), found)
            finally:
                cursor.close()

    def values(self, after: Key | None = None) -> Iterator[object]:
        """Yield the stamps of all rows behind the key `after`."""
        condition, bindings = self._order.behind(after)
        for value, *_ in self._connection.execute(f"{self._from}{condition}", bindings):
            yield value

    def statements(
        self, instant: int | None, after: Place | None = None
    ) -> Iterator[tuple[int, str, Sequence[object]]]:
        """Yield the statements of ``since`` with their values and the number of their range."""
        if not self.by_index:
            condition, values = self._order.behind(after.key if after else None)
            yield 0, f"{self._from}{condition} ORDER BY {self._by_key}", values
            return
        ranges = ranges_since(instant, holds_numbers=self._holds_numbers)
        for number, each in enumerate(ranges):
            if after is None or number > after.range:
                yield number, *self._statement(each)
            elif number == after.range:
                behind, keys = self._order.behind(after.key)
                same = f"{self._value} IS {mark(after.value)} AND {behind}"
                tied = (*bound((after.value,)), *keys)
                yield number, f"{self._from}{same} ORDER BY {self._by_key}", tied
                if not each.nulls:
                    yield number, *self._statement(replace(each, low=after.value, is_open=True))

    def _statement(self, each: Range) -> tuple[str, Sequence[object]]:
        if each.nulls:
            return f"{self._from}{self._value} IS NULL ORDER BY {self._by_key}", ()
        conditions: list[str] = []
        values: list[object] = []
        if each.low is not None:
            conditions.append(f"{self._value} {'>' if each.is_open else '>='} {mark(each.low)}")
            values += bound((each.low,))
        if each.high is not None:
            conditions.append(f"{self._value} < ?")
            values.append(each.high)
        if each.condition:
            conditions.append(each.condition.format(self._value))
            values += each.values
        where = " AND ".join(conditions) or f"{self._value} IS NOT NULL"
        return f"{self._from}{where} ORDER BY {self._value}, {self._by_key}", values

    def _is_text(self, table: str, column: str) -> bool:
        """Say whether the column has TEXT affinity, by SQLite's rules, and so no numbers."""
        rows = self._connection.execute(f"PRAGMA table_xinfo({quote(table)})")
        declared = next(row[2].upper() for row in rows if row[1].lower() == column.lower())
        is_text = any(word in declared for word in ("CHAR", "CLOB", "TEXT"))
        return is_text and "INT" not in declared

    def _has_index(self) -> bool:
        sql, values = self._statement(Range("2", "3"))
        steps = [row[3] for row in self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        searches = any(step.startswith("SEARCH") and ">?" in step for step in steps)
        return searches and not any(step.startswith("SCAN") for step in steps)
