"""The SQL of a change log. It runs inside other people's programs, so it is old SQL throughout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncer.changelog.evictions import Eviction
from syncer.changelog.shape import Shape
from syncer.table import quote

VERSION = 2  # of the triggers; raise it when they change, so that old ones are replaced

_NOW = "julianday('now')"  # a number: to write out a date took a fifth of the trigger's time


@dataclass(frozen=True, slots=True)
class Statement:
    """One object of the change log: kind and name in sqlite_master, and the SQL that makes it."""

    kind: str
    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Owner:
    """The row of the source to which a row of a joined table belongs, or several.

    `table` is the source's, to be looked into for rows with that key; None where what the joined
    table holds is the key itself. `casts` says which of its columns have numbers where the source's
    have not: NEW and OLD have no affinity, so it has to be put on.
    """

    table: str | None
    key: tuple[str, ...]
    casts: tuple[bool, ...]

    def keys_of(self, values: Sequence[str]) -> str:
        """Return the SELECT of the keys that belong to the `values` of one joined row."""
        if self.table is None:
            known = " AND ".join(f"{value} IS NOT NULL" for value in values)
            return f"SELECT {', '.join(values)} WHERE {known}"
        same = " AND ".join(
            f"(t.{quote(name)} = {value} OR t.{quote(name)} = CAST({value} AS NUMERIC))"
            if cast
            else f"t.{quote(name)} = {value}"
            for name, value, cast in zip(self.key, values, self.casts, strict=True)
        )
        return f"SELECT {self._own_key()} FROM {quote(self.table)} AS t WHERE {same}"

    def keys_among(self, select: str, names: Sequence[str]) -> str:
        """Return the SELECT of the keys that belong to the rows which `select` finds."""
        values = [f"found.{name}" for name in names]
        if self.table is None:
            known = " AND ".join(f"{value} IS NOT NULL" for value in values)
            return f"SELECT {', '.join(values)} FROM ({select}) AS found WHERE {known}"
        same = " AND ".join(
            f"t.{quote(name)} = {value}" for name, value in zip(self.key, values, strict=True)
        )
        both = f"({select}) AS found CROSS JOIN {quote(self.table)} AS t"
        return f"SELECT {self._own_key()} FROM {both} WHERE {same}"

    def _own_key(self) -> str:
        return ", ".join(f"t.{quote(name)}" for name in self.key)


@dataclass(frozen=True, slots=True)
class Watched:
    """A table whose changes are logged: the source, or one that is joined to it.

    `log` is the log's name, `log_key` are its columns, `key` those of the table that go into
    them. `columns` are those whose values count; `listed` those that an UPDATE must name to change
    them, None for any UPDATE. A joined table has an `owner`, and its rows also count as changed
    when their `place` is another.
    """

    shape: Shape
    log: str
    log_key: tuple[str, ...]
    key: tuple[str, ...]
    columns: tuple[str, ...]
    listed: tuple[str, ...] | None
    evictions: Sequence[Eviction] = ()
    prefix: str = ""
    place: tuple[str, ...] = ()
    owner: Owner | None = None

    def logging(self, select: str) -> str:
        """Return what logs the rows whose key a SELECT finds in this table."""
        names = [quote(name) for name in self.key]
        found = select if self.owner is None else self.owner.keys_among(select, names)
        return f"INSERT INTO {quote(self.log)} ({_names(self.log_key)}) {found}"


def log_table(watched: Watched) -> Statement:
    """Return the log itself: the key's values without any affinity, and the Julian day."""
    sql = (
        f"CREATE TABLE {quote(watched.log)} "
        f"(seq INTEGER PRIMARY KEY AUTOINCREMENT, {_names(watched.log_key)}, "
        f"changed_at REAL NOT NULL DEFAULT ({_NOW}))"
    )
    return Statement("table", watched.log, sql)


def triggers(watched: Watched) -> list[Statement]:
    """Return the triggers that log every change of a `watched` table.

    A key that goes is logged before it does: while a foreign key of another type refers to it,
    SQLite shows triggers that run afterwards the old key converted to that type.
    """
    counted = [name for name in watched.columns if name not in watched.key]
    return [
        _trigger(watched, "insert", "AFTER INSERT", [_log(watched, "NEW")]),
        _trigger(watched, "delete", "BEFORE DELETE", [_log(watched, "OLD")]),
        *([_update(watched, counted)] if counted else []),
        _rekey_from(watched),
        _rekey(watched),
        *eviction_triggers(watched),
    ]


def eviction_triggers(watched: Watched) -> list[Statement]:
    """Return the triggers that log the rows which a REPLACE is about to take away.

    SQLite fires no DELETE trigger for those unless ``recursive_triggers`` is on.
    """
    if not watched.evictions:
        return []
    key = [quote(name) for name in watched.key]
    by_index = [one for one in watched.evictions if one.index is not None]
    by_rowid = [one for one in watched.evictions if one.index is None]
    rowid = quote(str(watched.shape.rowid))
    moved = f"NEW.{rowid} IS NOT OLD.{rowid}"
    update = _update_event(by_index)
    fallen = dict.fromkeys(name for one in by_index for name in one.open_columns)
    is_open = " OR ".join(f"NEW.{quote(name)} IS NULL" for name in fallen)
    selects = {
        ("evict_insert", "BEFORE INSERT", ""): [one.on_insert(key) for one in watched.evictions],
        ("evict_update", update, ""): [one.on_update(key) for one in by_index],
        ("evict_rowid", "BEFORE UPDATE", moved): [one.on_update(key) for one in by_rowid],
        ("evict_open_insert", "BEFORE INSERT", is_open): [
            one.on_open_insert(key) for one in by_index
        ],
        ("evict_open_update", update, is_open): [one.on_open_update(key) for one in by_index],
    }
    bodies = {
        where: [watched.logging(select) for each in found for select in each]
        for where, found in selects.items()
    }
    return [
        _trigger(watched, what, event, body, when)
        for (what, event, when), body in bodies.items()
        if body
    ]


def _update_event(by_index: Sequence[Eviction]) -> str:
    """Return when a row may come into conflict; any UPDATE if the columns for it are unknown."""
    reads = [one.index.reads for one in by_index if one.index is not None]
    if None in reads:
        return "BEFORE UPDATE"
    columns = dict.fromkeys(name for names in reads if names is not None for name in names)
    return f"BEFORE UPDATE OF {_names(tuple(columns))}"


def _trigger(
    watched: Watched, what: str, event: str, body: Sequence[str], when: str = ""
) -> Statement:
    name = f"{watched.log}_{watched.prefix}{what}"
    statements = " ".join(f"{statement};" for statement in body)
    condition = f" WHEN {when}" if when else ""
    sql = (
        f"CREATE TRIGGER {quote(name)} /* syncer {VERSION} */ {event} "
        f"ON {quote(watched.shape.table)}{condition} BEGIN {statements} END"
    )
    return Statement("trigger", name, sql)


def _update(watched: Watched, counted: Sequence[str]) -> Statement:
    """Log an UPDATE that changes a value that counts; one that names no such column is free."""
    event = "AFTER UPDATE"
    if watched.listed is not None:
        event += f" OF {_names(watched.listed)}"
    changed = " OR ".join(_differs(name) for name in counted)
    return _trigger(watched, "update", event, [_log(watched, "NEW")], changed)


def _rekey_from(watched: Watched) -> Statement:
    """Log the old key of a row whose key changes; no column list, as SET rowid counts as none."""
    moved = _moved(watched)
    bases = [name for name in watched.shape.deciding(watched.key) if name not in watched.key]
    loaded = "".join(f" AND typeof(NEW.{quote(name)}) <> ''" for name in bases)
    condition = f"({moved}){loaded}" if loaded else moved
    return _trigger(watched, "rekey_from", "BEFORE UPDATE", [_log(watched, "OLD")], condition)


def _rekey(watched: Watched) -> Statement:
    """Log the new key of a row whose key changes."""
    return _trigger(watched, "rekey", "AFTER UPDATE", [_log(watched, "NEW")], _moved(watched))


def _moved(watched: Watched) -> str:
    return " OR ".join(_differs(name) for name in (*watched.key, *watched.place))


def _log(watched: Watched, row: str) -> str:
    into = f"INSERT INTO {quote(watched.log)} ({_names(watched.log_key)})"
    values = [f"{row}.{quote(name)}" for name in watched.key]
    if watched.owner is not None:
        return f"{into} {watched.owner.keys_of(values)}"
    return f"{into} VALUES ({', '.join(values)})"


def _names(names: Sequence[str]) -> str:
    return ", ".join(quote(name) for name in names)


def _differs(name: str) -> str:
    """Return a condition that tells apart what SQLite's own comparison may call equal."""
    new, old = f"NEW.{quote(name)}", f"OLD.{quote(name)}"
    return f"{new} IS NOT {old} COLLATE BINARY OR typeof({new}) <> typeof({old})"
