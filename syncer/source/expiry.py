"""The SQL of the column that says when a row leaves the index."""

from __future__ import annotations

from syncer.table import TableSpec, quote

_STAMP = "'%Y-%m-%dT%H:%M:%fZ'"


class Expiry:
    """What to ask about ``expires_at``; every question goes by an index on it.

    In the table that ``syncer init`` makes its values have one form and compare as text. In any
    other they are brought into that form: dates, and dates with a time after ``T`` or a space,
    in UTC or with an offset. Anything else, numbers too, is no time at which a row expires. As
    all those forms begin with the date, and an offset moves a time by less than a day, the text
    is enough to find the days to look at.
    """

    def __init__(self, spec: TableSpec) -> None:
        column = f"t.{quote(spec.expires_at or '')}"
        uniform = spec.expiry_is_uniform
        dated = f"{column} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
        parsed = (
            f"CASE WHEN typeof({column}) = 'text' AND {dated} THEN strftime({_STAMP}, {column}) END"
        )
        self._column = column
        self._uniform = uniform
        self.stamp = column if uniform else parsed
        self.within = f"{self._days()}{self.stamp} > ?1 AND {self.stamp} <= ?2"

    def is_ahead(self, mark: str) -> str:
        """Return the condition that a row has not expired at the time that is bound to `mark`."""
        if self._uniform:
            return f"({self._column} IS NULL OR {self._column} > {mark})"
        return f"coalesce({self.stamp} > {mark}, 1)"

    def next_after(self, table: str) -> str:
        """Return the query for the first time after that which is bound."""
        if self._uniform:
            return f"SELECT min({self._column}) FROM {table} WHERE {self._column} > ?1"
        since = f"FROM {table} WHERE {self._column} >= date(?1, '-1 day') AND {self.stamp} > ?1"
        first = f"(SELECT {self._column} {since} ORDER BY {self._column} LIMIT 1)"
        until = f"date(substr({first}, 1, 10), '+3 days')"
        return f"SELECT min({self.stamp}) {since} AND {self._column} < {until}"

    def _days(self) -> str:
        if self._uniform:
            return ""
        return f"{self._column} >= date(?1, '-1 day') AND {self._column} < date(?2, '+2 days') AND "
