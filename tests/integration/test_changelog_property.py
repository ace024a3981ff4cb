"""Whatever is done to whatever table: every key whose row came, went or changed is in the log.

Tables and statements are made at random: keys of any kind, collations, defaults that a REPLACE
puts for NULL, generated columns, unique indexes over expressions and over a part of the rows.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncer import changelog
from syncer.table import TableSpec, quote

TABLE = 'an "order"'
COLUMNS = ("söme thing", "seq", 'x"y', "group")
POOLS = (  # values that collide with each other where a column lets them
    ("NULL", "1", "1.0", "'1'", "2"),
    ("NULL", "'a'", "'A'", "'b'"),
    ("NULL", "'a'", "'a '", "'A'", "x'61'"),
    ("NULL", "-1", "1", "'-1'", "0"),
    ("1", "'1'", "'a'", "'A'", "x'31'"),
)
OWN_FAULTS = (
    "no transaction is active",  # OR ROLLBACK has ended it
    "too many levels of trigger recursion",  # the application's trigger goes on and on
)
IDS = ("1", "2", "3", "NULL", "-1")
TYPES = (
    "",
    "INTEGER",
    "INT",
    "TEXT",
    "REAL",
    "BLOB",
    "NUMERIC",
    "TEXT COLLATE NOCASE",
    "TEXT COLLATE RTRIM",
    "COLLATE NOCASE",
)
COLLATIONS = ("", "COLLATE BINARY", "COLLATE NOCASE", "COLLATE RTRIM")
EXPRESSIONS = (
    "{0}",
    "lower({0})",
    "{0} || {1}",
    "CASE WHEN {0} = '1' THEN {1} END",
    "{0} > '1'",
    "{0} = 1",
    "coalesce({0}, {1})",
    "({0} IN ('a', 1)) + 2 * ({1} = 'A')",
    "nullif({0}, {1}) /* a comment, (here */",
    "typeof({0})",
    "{0} || {1} COLLATE NOCASE",
)
CONDITIONS = ("{0} IS NOT NULL", "{0} > '1'", "{0} = 1", "{0} = {1}", "{0} <> 'a'")
ALTERNATIVES = ("", "", "OR REPLACE", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ROLLBACK")

names = st.sampled_from(COLUMNS).map(quote)


@st.composite
def filled(draw: st.DrawFn, patterns: tuple[str, ...]) -> str:
    """One of `patterns` over random columns."""
    return draw(st.sampled_from(patterns)).format(draw(names), draw(names))


@dataclass(frozen=True)
class Made:
    """A table, what else belongs to it, what of it is indexed, and what is written to it."""

    sql: tuple[str, ...]
    spec: TableSpec
    settable: tuple[str, ...]
    values: tuple[str, ...]


@st.composite
def columns(draw: st.DrawFn, values: tuple[str, ...]) -> list[str]:
    kept = [value for value in values if value != "NULL"]
    found = []
    for name in COLUMNS:
        parts = [quote(name), draw(st.sampled_from(TYPES))]
        if draw(st.integers(0, 4)) == 0:
            parts.append(f"NOT NULL DEFAULT {draw(st.sampled_from(kept))}")
        elif draw(st.integers(0, 9)) == 0:
            parts.append("NOT NULL DEFAULT (lower('A'))")
        found.append(" ".join(parts))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["VIRTUAL", "STORED"]))
        found.append(f"made AS ({draw(filled(EXPRESSIONS))}\n) {kind}")
    return found


@st.composite
def indexes(draw: st.DrawFn, has_made: bool) -> list[str]:
    found = []
    for number in range(draw(st.integers(0, 3))):
        terms = []
        for _ in range(draw(st.integers(1, 2))):
            if has_made and draw(st.integers(0, 4)) == 0:
                term = "made"
            elif draw(st.booleans()):
                term = draw(filled(EXPRESSIONS))
            else:
                term = draw(names)
            terms.append(
                f"{term} {draw(st.sampled_from(COLLATIONS))} "
                f"{draw(st.sampled_from(['', 'ASC', 'DESC']))}"
            )
        where = f" WHERE {draw(filled(CONDITIONS))}" if draw(st.integers(0, 2)) == 0 else ""
        found.append(
            f'CREATE UNIQUE INDEX "index ({number}" ON {quote(TABLE)} ({", ".join(terms)}){where}'
        )
    return found


@st.composite
def tables(draw: st.DrawFn) -> Made:
    """A table with a random key."""
    values = draw(st.sampled_from(POOLS))
    body = draw(columns(values))
    has_made = len(body) > len(COLUMNS)
    key = tuple(draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=2, unique=True)))
    listed = ", ".join(f"{quote(name)} {draw(st.sampled_from(COLLATIONS))}" for name in key)
    tail, more, settable = "", [], list(COLUMNS)
    match draw(st.sampled_from(["id", "id and key", "primary", "without rowid", "index"])):
        case "id":
            body.insert(0, "id INTEGER PRIMARY KEY")
            key = ("id",)
            settable.append("id")
        case "id and key":
            body.insert(0, "id INTEGER PRIMARY KEY")
            body.append(f"UNIQUE ({listed})")
            settable.append("id")
        case "primary":
            conflict = draw(st.sampled_from(["", "ON CONFLICT REPLACE"]))
            body.append(f"PRIMARY KEY ({listed}) {conflict}")
            settable.append("rowid")
        case "without rowid":
            body.append(f"PRIMARY KEY ({listed})")
            tail = "WITHOUT ROWID"
        case "index":
            more.append(f"CREATE UNIQUE INDEX its_key ON {quote(TABLE)} ({listed})")
            settable.append("rowid")
    made = [f"CREATE TABLE {quote(TABLE)} ({', '.join(body)}) {tail}"]
    made += more + draw(indexes(has_made))
    if draw(st.integers(0, 3)) == 0:
        made.append(draw(own_triggers(values)))
    contents = (*COLUMNS, *(["made"] if has_made else []))
    content = draw(st.one_of(st.sampled_from(contents).map(quote), filled(EXPRESSIONS)))
    metadata = draw(st.lists(st.sampled_from(contents), max_size=2, unique=True))
    where = draw(st.one_of(st.none(), filled(CONDITIONS)))
    spec = TableSpec(TABLE, key=key, content=content, metadata=tuple(metadata), where=where)
    return Made(tuple(made), spec, tuple(settable), values)


@st.composite
def own_triggers(draw: st.DrawFn, values: tuple[str, ...]) -> str:
    """A trigger of the application's that updates the row that was written."""
    when, verb = (
        draw(st.sampled_from(["AFTER", "BEFORE"])),
        draw(st.sampled_from(["INSERT", "UPDATE"])),
    )
    setting = f"{draw(names)} = {draw(st.sampled_from(values))}"
    same = f"{quote('seq')} IS NEW.{quote('seq')}"
    return (
        f"CREATE TRIGGER own {when} {verb} ON {quote(TABLE)} BEGIN "
        f"UPDATE {quote(TABLE)} SET {setting} WHERE {same}; END"
    )


@st.composite
def settings_of(draw: st.DrawFn, made: Made) -> str:
    """What an UPDATE sets."""
    chosen = draw(st.lists(st.sampled_from(made.settable), min_size=1, max_size=2, unique=True))
    return ", ".join(f"{quote(name)} = {draw(values_for(made, name))}" for name in chosen)


def values_for(made: Made, name: str) -> st.SearchStrategy[str]:
    return st.sampled_from(IDS if name in ("id", "rowid") else made.values)


@st.composite
def inserts(draw: st.DrawFn, made: Made, alternatives: tuple[str, ...]) -> str:
    named = draw(st.permutations(made.settable))[: draw(st.integers(3, len(made.settable)))]
    rows = [
        "(" + ", ".join(draw(values_for(made, name)) for name in named) + ")"
        for _ in range(draw(st.integers(1, 2)))
    ]
    into = f"INTO {quote(TABLE)} ({', '.join(map(quote, named))}) VALUES {', '.join(rows)}"
    tail = draw(st.sampled_from(["", "", "", "DO NOTHING", "DO UPDATE"]))
    if not tail or "OR IGNORE" in alternatives[:1]:
        return f"INSERT {draw(st.sampled_from(alternatives))} {into}"
    if tail == "DO UPDATE":
        tail += f" SET {draw(settings_of(made))}"
    return f"INSERT {into} ON CONFLICT {tail}"


@st.composite
def statements(draw: st.DrawFn, made: Made) -> str:
    """One statement, as any program may write it."""
    verb = draw(st.sampled_from(["insert"] * 4 + ["update"] * 5 + ["delete"]))
    if verb == "insert":
        return draw(inserts(made, ALTERNATIVES))
    name = draw(st.sampled_from(made.settable))
    comparison = draw(st.sampled_from(["=", ">", "IS", "IS NOT"]))
    where = f"WHERE {quote(name)} {comparison} {draw(values_for(made, name))}"
    if verb == "delete":
        return f"DELETE FROM {quote(TABLE)} {where}"
    scope = draw(st.sampled_from(["", where]))
    alternative = draw(st.sampled_from(ALTERNATIVES))
    return f"UPDATE {alternative} {quote(TABLE)} SET {draw(settings_of(made))} {scope}"


@st.composite
def histories(draw: st.DrawFn) -> tuple[Made, list[list[str]]]:
    """A table with some rows in it, and what happens to it, by transactions."""
    made = draw(tables())
    alone = statements(made).map(lambda statement: [statement])
    together = st.tuples(
        st.lists(statements(made), min_size=1, max_size=3), st.sampled_from(["ROLLBACK", "COMMIT"])
    ).map(lambda group: ["BEGIN", *group[0], group[1]])
    first = draw(st.lists(inserts(made, ("OR IGNORE",)), min_size=3, max_size=5))
    steps = draw(st.lists(st.one_of(alone, alone, alone, together), min_size=6, max_size=12))
    return made, [[statement] for statement in first] + steps


def rows(connection: sqlite3.Connection, spec: TableSpec) -> Counter[tuple[str, str]]:
    """Return key and whatever the mapping makes of each row, types told apart.

    Rows with a NULL in their key have no point, and may have one key: they count as one.
    """
    content = spec.content
    where = f"coalesce(({spec.where}), 0)" if spec.where else "1"
    selected = [*map(quote, spec.key), f"({content}\n)", where, *map(quote, spec.metadata)]
    found = connection.execute(f"SELECT {', '.join(selected)} FROM {quote(spec.table)}").fetchall()
    count = len(spec.key)
    return Counter(
        {(repr(row[:count]), "" if None in row[:count] else repr(row[count:])): 1 for row in found}
    )


def logged(connection: sqlite3.Connection, spec: TableSpec) -> set[str]:
    keys = ", ".join(map(quote, spec.log_key))
    return {repr(row) for row in connection.execute(f"SELECT {keys} FROM {quote(spec.changes)}")}


def run(made: Made, steps: list[list[str]], recursive: bool) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA recursive_triggers = {int(recursive)}")
        for sql in made.sql:
            try:
                connection.execute(sql)
            except sqlite3.OperationalError:
                return  # an expression that SQLite does not take for an index
        changelog.attach(connection, made.spec)
        assert changelog.find_faults(connection, made.spec) == {}
        before = rows(connection, made.spec)
        for step in steps:
            done = [execute(connection, statement) for statement in step]
            after = rows(connection, made.spec)
            changed = {key for key, _ in (before - after) + (after - before)}
            assert changed <= logged(connection, made.spec), step
            if step[-1] == "ROLLBACK" and all(done):
                assert not logged(connection, made.spec)
            connection.execute(f"DELETE FROM {quote(made.spec.changes)}")
            before = after


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


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(history=histories(), recursive=st.booleans())
def test_every_key_whose_row_came_went_or_changed_is_in_the_log(
    history: tuple[Made, list[list[str]]], recursive: bool
) -> None:
    """Rules CT-10, CT-12, CT-14."""
    run(*history, recursive)
