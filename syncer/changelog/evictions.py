"""Which rows a REPLACE is about to take away, as SELECTs in a BEFORE trigger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncer.changelog.indexes import Term, UniqueIndex, alias, is_key
from syncer.changelog.shape import Shape
from syncer.table import quote

_TO_COME = -1  # what a BEFORE INSERT trigger sees of a rowid that SQLite has yet to choose


@dataclass(frozen=True, slots=True)
class Eviction:
    """One way in which a new or changed row takes others away: a unique index, or the rowid.

    Its SELECTs return the key of every row that the index says is in the way. They may return
    more where SQLite does not let a trigger know the new row's final values, never less.
    """

    shape: Shape
    index: UniqueIndex | None

    def on_insert(self, key: Sequence[str]) -> list[str]:
        """Return the SELECTs for a row that is inserted, but not the row that it renews."""
        return self._each(self._conditions(), key, self._not_renewed(key))

    def on_update(self, key: Sequence[str]) -> list[str]:
        """Return the SELECTs for a row that is updated, but not that row itself."""
        return self._each(self._conditions(), key, self._not_updated(key))

    def on_open_insert(self, key: Sequence[str]) -> list[str]:
        """Return what more there is to select where one of the ``open_columns`` is NULL."""
        return self._each(self._open_conditions(), key, self._not_renewed(key))

    def on_open_update(self, key: Sequence[str]) -> list[str]:
        """Return the same for a row that is updated."""
        return self._each(self._open_conditions(), key, self._not_updated(key))

    @property
    def open_columns(self) -> tuple[str, ...]:
        """The columns for whose NULL a REPLACE puts the default, after BEFORE triggers ran."""
        if self.index is None:
            return ()
        names = {name for term in self.index.terms for name in self.shape.deciding(term.reads)}
        return tuple(
            one.name for one in self.shape.columns if one.has_fallback and one.name in names
        )

    def _each(
        self, alternatives: Sequence[Sequence[str]], key: Sequence[str], other: str
    ) -> list[str]:
        row = alias(self.shape.table)
        keys = ", ".join(f"{row}.{name}" for name in key)
        select = f"SELECT {keys} FROM {quote(self.shape.table)} AS {row} WHERE"
        return [f"{select} {' AND '.join([*found, other])}" for found in alternatives]

    def _not_renewed(self, key: Sequence[str]) -> str:
        """Return the condition that a row has another key than the new one.

        A key that SQLite has yet to choose is no row's; nor is it the one that it looks like.
        """
        same = self._is_same(key, "NEW")
        alias_name = None if self.shape.alias is None else quote(self.shape.alias)
        if list(key) == [alias_name]:
            same = f"{same} AND NEW.{alias_name} <> {_TO_COME}"
        return f"NOT ({same})"

    def _not_updated(self, key: Sequence[str]) -> str:
        """Return the condition that a row is not the one that is updated.

        SQLite loads only the columns that a BEFORE UPDATE trigger names, and makes NEW's generated
        ones of those: so it names all that they are made of, in conditions that always hold.
        """
        reads = [] if self.index is None else [n for t in self.index.terms for n in t.reads]
        bases = [name for name in self.shape.deciding(reads) if name not in reads]
        loaded = "".join(f" AND typeof(NEW.{quote(name)}) <> ''" for name in bases)
        return f"NOT ({self._is_same(key, 'OLD')}){loaded}"

    def _is_same(self, key: Sequence[str], which: str) -> str:
        row = alias(self.shape.table)
        return " AND ".join(
            f"{row}.{name} IS {which}.{name} COLLATE BINARY "
            f"AND typeof({row}.{name}) = typeof({which}.{name})"
            for name in key
        )

    def _conditions(self) -> list[list[str]]:
        """Return what the rows in the way look like: alternatives, each of conditions.

        So each goes by the index, which an OR over all of them would not.
        """
        if self.index is None:
            rowid = quote(str(self.shape.rowid))
            return [[f"{alias(self.shape.table)}.{rowid} = NEW.{rowid}"]]
        terms, within = self.index.terms, self._within()
        found = [[_equals(self.shape, term) for term in terms] + within]
        if any(term.compares for term in terms):
            found.append([_equals(self.shape, term, cast=True) for term in terms] + within)
        return found

    def _open_conditions(self) -> list[list[str]]:
        if self.index is None or not self.open_columns:
            return []
        fallen = set(self.open_columns)
        known = [
            _equals(self.shape, term)
            for term in self.index.terms
            if fallen.isdisjoint(self.shape.deciding(term.reads))
        ]
        unknown = " OR ".join(f"NEW.{quote(name)} IS NULL" for name in self.open_columns)
        return [[*known, *self._within(), f"({unknown})"]]

    def _within(self) -> list[str]:
        where = None if self.index is None else self.index.where
        return [] if where is None else [f"({where}\n)"]


def evictions_of(
    shape: Shape, indexes: Sequence[UniqueIndex], key: Sequence[str]
) -> tuple[Eviction, ...]:
    """Return how a row with another key may be taken away from a table."""
    found = [Eviction(shape, index) for index in indexes if not is_key(index, shape, key)]
    if shape.rowid is not None and not shape.is_rowid_key(key):
        found.append(Eviction(shape, None))
    return tuple(found)


def _equals(shape: Shape, term: Term, *, cast: bool = False) -> str:
    collation = f"COLLATE {quote(term.collation)}"
    if term.is_expression:  # a collation somewhere inside it must not decide
        return f"({term.text}) {collation} = {_of_new(shape, term, cast=cast)}"
    return f"{alias(shape.table)}.{quote(term.text)} = NEW.{quote(term.text)} {collation}"


def _of_new(shape: Shape, term: Term, *, cast: bool) -> str:
    """Return the value of an expression for the new row.

    Inside the FROM the columns have no affinity, which decides how they compare. With `cast` they
    have one, but their values may be other ones: both together cover what SQLite will find.
    """
    values = ", ".join(_value(shape, name, cast=cast) for name in term.reads) or "1"
    source = f"(SELECT {values}) AS {alias(shape.table)}"
    return f"(SELECT ({term.text}) FROM {source})"


def _value(shape: Shape, name: str, *, cast: bool) -> str:
    column = shape.column(name)
    value = f"NEW.{quote(name)}"
    if cast and column is not None and column.affinity:
        value = f"CAST({value} AS {column.affinity})"
    return f"{value} AS {quote(name)}"
