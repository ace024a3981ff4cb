"""Whatever is done to a table and to one that is joined to it: the log names each row that changed.

Tables and statements are made at random: keys of several types and collations on either side,
unique indexes through which rows of one list or of another stand in each other's way, foreign keys
that cascade.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncer import changelog
from syncer.source import JoinedLists, key_order
from syncer.table import Joined, TableSpec, quote

MAIN, OTHER = 'the "memories"', "memory tags"
OWN_FAULTS = ("no transaction is active", "too many levels of trigger recursion")
KEYS = ("1", "2", "1", "2", "'1'", "'01'", "1.0", "'a'", "'A'", "1.5", "'1.5'")
VALUES = {
    "tag": ("'x'", "'y'", "'X'", "1", "'1'", "NULL"),
    "slot": ("1", "2", "3", "NULL"),
    "weight": ("1", "1.0", "2", "NULL"),
    "id": ("1", "2", "3", "NULL"),
    "rowid": ("1", "2", "3"),
    "content": ("'one'", "'two'"),
}
TYPES = ("", "TEXT", "INTEGER", "NUMERIC", "REAL", "TEXT COLLATE NOCASE", "COLLATE NOCASE")
ALTERNATIVES = ("", "", "OR REPLACE", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ROLLBACK")
LISTED: tuple[str | tuple[str, ...], ...] = ("tag", "upper(tag)", ("tag", "weight"), "made")
INDEXES = (
    "({m}, slot)",
    "(slot)",
    "(tag)",
    "(weight) WHERE slot > 1",
    "({m}, lower(tag))",
    "(coalesce(slot, weight))",
)


@dataclass(frozen=True)
class Made:
    """Two tables, what of them is indexed, and which columns a statement may set."""

    sql: tuple[str, ...]
    spec: TableSpec
    main: tuple[str, ...]
    other: tuple[str, ...]


@st.composite
def tables(draw: st.DrawFn) -> Made:
    count = draw(st.sampled_from([1, 1, 1, 2]))
    key, owner = ("k", "part")[:count], ("of", "of part")[:count]
    types = draw(st.lists(st.sampled_from(TYPES), min_size=count, max_size=count))
    columns = [f"{quote(name)} {kind}" for name, kind in zip(key, types, strict=True)]
    match draw(st.sampled_from(["id", "primary", "without rowid", "index"])):
        case "id":
            key, owner, types = ("k",), ("of",), ["INTEGER"]
            main = f"CREATE TABLE {quote(MAIN)} (k INTEGER PRIMARY KEY, content)"
        case "index":
            main = f"CREATE TABLE {quote(MAIN)} ({', '.join(columns)}, content)"
            main += f"; CREATE UNIQUE INDEX its ON {quote(MAIN)} ({', '.join(key)})"
        case kind:
            tail = "WITHOUT ROWID" if kind == "without rowid" else ""
            columns.append(f"content, PRIMARY KEY ({', '.join(key)})")
            main = f"CREATE TABLE {quote(MAIN)} ({', '.join(columns)}) {tail}"
    other, settable = draw(others(key, owner, types))
    value: str | tuple[str, ...] = draw(st.sampled_from(LISTED))
    order = draw(st.sampled_from([None, None, "weight", "weight DESC, tag"]))
    spec = TableSpec(MAIN, key=key, joined=(Joined("tags", OTHER, owner, value, order),))
    return Made((*main.split("; "), *other), spec, (*key, "content"), settable)


@st.composite
def others(
    draw: st.DrawFn, key: tuple[str, ...], owner: tuple[str, ...], types: list[str]
) -> tuple[list[str], tuple[str, ...]]:
    """The joined table and its indexes, and what may be set in it."""
    marks = ", ".join(map(quote, owner))
    has_foreign_key = draw(st.booleans())
    if (
        not has_foreign_key
    ):  # with one, SQLite shows triggers OLD as it compares with the other type
        types = [draw(st.sampled_from([*TYPES, each])) for each in types]
    columns = [f"{quote(name)} {kind}" for name, kind in zip(owner, types, strict=True)]
    columns += ["tag TEXT NOT NULL DEFAULT 'x'" if draw(st.booleans()) else "tag", "slot", "weight"]
    columns.append("made AS (coalesce(tag, '') || weight)")
    settable, tail = [*owner, "tag", "slot", "weight"], ""
    match draw(st.sampled_from(["none", "id", "primary", "without rowid"])):
        case "none":
            settable.append("rowid")
        case "id":
            columns.append("id INTEGER PRIMARY KEY")
            settable.append("id")
        case "primary":
            columns.append(f"PRIMARY KEY ({marks}, tag)")
        case "without rowid":
            columns.append(f"PRIMARY KEY ({marks}, tag)")
            tail = "WITHOUT ROWID"
    if has_foreign_key:
        action = draw(st.sampled_from(["CASCADE", "SET NULL"]))
        columns.append(
            f"FOREIGN KEY ({marks}) REFERENCES {quote(MAIN)} ({', '.join(key)}) "
            f"ON DELETE {action} ON UPDATE {action}"
        )
    made = [f"CREATE TABLE {quote(OTHER)} ({', '.join(columns)}) {tail}"]
    for number, index in enumerate(draw(st.lists(st.sampled_from(INDEXES), max_size=2))):
        terms = index.format(m=quote(owner[0]))
        made.append(f"CREATE UNIQUE INDEX index_{number} ON {quote(OTHER)} {terms}")
    if draw(st.integers(0, 5)) == 0:
        made.append(
            f"CREATE TRIGGER own BEFORE INSERT ON {quote(OTHER)} BEGIN "
            f"UPDATE {quote(OTHER)} SET slot = NEW.slot WHERE weight IS NEW.weight; END"
        )
    return made, tuple(settable)


def values_for(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from(VALUES.get(name, KEYS))


@st.composite
def inserts(draw: st.DrawFn, table: str, names: tuple[str, ...], how: str) -> str:
    """One row for a table."""
    row = ", ".join(draw(values_for(name)) for name in names)
    return f"INSERT {how} INTO {quote(table)} ({', '.join(map(quote, names))}) VALUES ({row})"


@st.composite
def statements(draw: st.DrawFn, made: Made) -> str:
    """One statement on either table, as any program may write it."""
    table, names = draw(
        st.sampled_from([(MAIN, made.main), (OTHER, made.other), (OTHER, made.other)])
    )
    verb = draw(st.sampled_from(["insert"] * 4 + ["update"] * 5 + ["delete"]))
    how = draw(st.sampled_from(ALTERNATIVES))
    if verb == "insert":
        return draw(inserts(table, names, how))
    name = draw(st.sampled_from(names))
    where = (
        f"WHERE {quote(name)} {draw(st.sampled_from(['=', '>', 'IS']))} {draw(values_for(name))}"
    )
    if verb == "delete":
        return f"DELETE FROM {quote(table)} {where}"
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    setting = ", ".join(f"{quote(each)} = {draw(values_for(each))}" for each in chosen)
    return f"UPDATE {how} {quote(table)} SET {setting} {draw(st.sampled_from(['', where]))}"


@st.composite
def histories(draw: st.DrawFn) -> tuple[Made, list[list[str]]]:
    """Two tables with some rows in them, and what happens to them, by transactions."""
    made = draw(tables())
    alone = statements(made).map(lambda statement: [statement])
    together = st.tuples(
        st.lists(statements(made), min_size=1, max_size=3), st.sampled_from(["ROLLBACK", "COMMIT"])
    ).map(lambda group: ["BEGIN", *group[0], group[1]])
    first = [[draw(inserts(MAIN, made.main, "OR IGNORE"))] for _ in range(3)]
    first += [[draw(inserts(OTHER, made.other, "OR IGNORE"))] for _ in range(5)]
    steps = draw(st.lists(st.one_of(alone, alone, alone, together), min_size=8, max_size=16))
    return made, first + steps


def rows(connection: sqlite3.Connection, spec: TableSpec) -> dict[str, str]:
    """Return by key what each row has: its content, and its list as the source reads it."""
    (one,) = spec.joined
    lists = JoinedLists(connection, spec, key_order(connection, spec))
    keys = ", ".join(map(quote, spec.key))
    found = {}
    for *key, content in connection.execute(
        f"SELECT {keys}, content FROM {quote(MAIN)}"
    ).fetchall():
        if None not in key:
            entries = connection.execute(*lists.query(one, tuple(key))).fetchall()
            found[repr(tuple(key))] = repr((content, entries))
    return found


def entries(connection: sqlite3.Connection, spec: TableSpec) -> tuple[int, int]:
    """Return how many entries a plain join finds, and how many the lists have."""
    (one,) = spec.joined
    same = " AND ".join(
        f"t.{quote(theirs)} = j.{quote(ours)}"
        for theirs, ours in zip(spec.key, one.key, strict=True)
    )
    (joined,) = connection.execute(
        f"SELECT count(*) FROM {quote(MAIN)} AS t, {quote(OTHER)} AS j WHERE {same}"
    ).fetchone()
    lists = JoinedLists(connection, spec, key_order(connection, spec))
    keys = connection.execute(f"SELECT {', '.join(spec.key)} FROM {quote(MAIN)}").fetchall()
    found = Counter(
        key for key in keys for _ in connection.execute(*lists.query(one, key)).fetchall()
    )
    return joined, found.total()


def logged(connection: sqlite3.Connection, spec: TableSpec) -> set[str]:
    keys = ", ".join(map(quote, spec.log_key))
    found = connection.execute(f"SELECT {keys} FROM {quote(spec.changes)}").fetchall()
    connection.execute(f"DELETE FROM {quote(spec.changes)}")
    return {repr(row) for row in found}


def execute(connection: sqlite3.Connection, statement: str) -> bool:
    """Run a statement; say whether it worked, and raise unless a constraint was against it."""
    try:
        connection.execute(statement)
    except sqlite3.IntegrityError:
        return False
    except sqlite3.OperationalError as error:
        if not any(known in str(error) for known in OWN_FAULTS):
            raise
        return False
    return True


def run(made: Made, steps: list[list[str]], recursive: bool) -> None:
    spec = made.spec
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA recursive_triggers = {int(recursive)}")
        for sql in made.sql:
            connection.execute(sql)
        connection.execute("PRAGMA foreign_keys = ON")
        changelog.attach(connection, spec)
        assert changelog.find_faults(connection, spec) == {}
        before = rows(connection, spec)
        for step in steps:
            done = [execute(connection, statement) for statement in step]
            after = rows(connection, spec)
            joined, listed = entries(connection, spec)
            assert joined == listed
            changed = {key for key, _ in before.items() ^ after.items()}
            found = logged(connection, spec)
            assert changed <= found, step
            if step[-1] == "ROLLBACK" and all(done):
                assert not found
            before = after


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(history=histories(), recursive=st.booleans())
def test_every_row_whose_list_changed_is_in_the_log(
    history: tuple[Made, list[list[str]]], recursive: bool
) -> None:
    run(*history, recursive)
