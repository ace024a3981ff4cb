"""Reading tables whose keys are not plain integers: none is lost, none is mixed up with another."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from syncer import changelog
from syncer.keys import RawText, encode_key
from syncer.model import Position, Row
from syncer.source import Limits, LogSource
from syncer.source.order import key_order
from syncer.source.queries import Queries
from syncer.table import TableSpec

TWO_COLLATIONS = """
CREATE TABLE n (a COLLATE NOCASE, b, c);
CREATE UNIQUE INDEX i ON n (a COLLATE BINARY, b);
"""
NOW = "2030-01-01T00:00:00.000Z"


def made(path: Path, sql: str, spec: TableSpec) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)
        changelog.attach(connection, spec)


def execute(path: Path, sql: str, values: Sequence[object] = ()) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


def drain(path: Path, spec: TableSpec, position: Position, rows: int = 2) -> dict[str, Row]:
    """Read to the end, a few rows at a time; return the last look at every key."""
    found: dict[str, Row] = {}
    with closing(LogSource(path, spec, Limits(rows=rows))) as source:
        for _ in range(100):
            window = source.read(position, head=source.head(), now=NOW)
            names = [encode_key(row.key) for row in window.rows]
            assert len(set(names)) == len(names)
            found |= dict(zip(names, window.rows, strict=True))
            position = window.next
            if not window.more:
                assert source.is_idle(position, NOW)
                return found
    raise AssertionError("the feed does not end")


def start(path: Path, spec: TableSpec) -> Position:
    """Return where a generation begins: at the head of the log, the walk before it."""
    with closing(LogSource(path, spec)) as source:
        return Position("g", change_seq=source.head())


def present(rows: dict[str, Row]) -> set[str]:
    return {name for name, row in rows.items() if row.present}


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
def test_a_null_or_real_key_neither_ends_the_walk_nor_hides_what_follows(
    tmp_path: Path, rows: int
) -> None:
    """Rule SR-16."""
    path, spec = tmp_path / "app.db", TableSpec("n", key=("k",), content="c")
    made(path, "CREATE TABLE n (k PRIMARY KEY, c)", spec)
    values = (
        None,
        None,
        None,
        -7,
        0.5,
        1,
        1.5,
        2,
        2**62,
        "",
        "1",
        "a",
        "A",
        b"",
        b"a",
        float("inf"),
    )
    for value in values:
        execute(path, "INSERT INTO n VALUES (?, 'text')", (value,))
    execute(path, "INSERT INTO n VALUES (CAST(x'ff41' AS TEXT), 'text')")
    expected = {encode_key((value,)) for value in (*values, RawText(b"\xffA"))}
    assert present(drain(path, spec, start(path, spec), rows)) == expected
    assert present(drain(path, spec, Position("g", walked=True), rows)) == expected


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
@pytest.mark.parametrize(
    "key", ['"of user", "no"', '"of user" COLLATE NOCASE, "no" DESC', '"no", "of user"']
)
def test_composite_keys_are_walked_whole_whatever_is_null_in_them(
    tmp_path: Path, rows: int, key: str
) -> None:
    path, spec = tmp_path / "app.db", TableSpec("n", key=("of user", "no"), content="c")
    made(path, f'CREATE TABLE n ("of user" TEXT, "no" INT, c, PRIMARY KEY ({key}))', spec)
    keys = [(user, no) for user in (None, "", "a", "b b", "Z") for no in (None, -1, 0, 1.5, 3)]
    for each in keys:
        execute(path, "INSERT INTO n VALUES (?, ?, 'text')", each)
    expected = {encode_key(each) for each in keys}
    assert present(drain(path, spec, start(path, spec), rows)) == expected
    assert present(drain(path, spec, Position("g", walked=True), rows)) == expected


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_keys_that_differ_in_case_only_are_two_keys_where_the_index_says_so(
    tmp_path: Path, rows: int
) -> None:
    path, spec = tmp_path / "app.db", TableSpec("n", key=("k",), content="c")
    sql = "CREATE TABLE n (k TEXT COLLATE NOCASE, c); CREATE UNIQUE INDEX i ON n (k COLLATE BINARY)"
    made(path, sql, spec)
    for key in ("a", "A", "b", "B", "ab"):
        execute(path, "INSERT INTO n VALUES (?, ?)", (key, f"text of {key}"))
    found = drain(path, spec, start(path, spec), rows)
    assert {row.key[0]: row.content for row in found.values()} == {
        key: f"text of {key}" for key in ("a", "A", "b", "B", "ab")
    }
    execute(path, "DELETE FROM n WHERE k = 'a' COLLATE BINARY")
    found = drain(path, spec, Position("g", change_seq=5, walked=True), rows)
    assert present(found) == set()
    assert set(found) == {'"a"'}


def test_a_key_that_changed_its_case_is_found_under_the_new_form_only(tmp_path: Path) -> None:
    path, spec = tmp_path / "app.db", TableSpec("n", key=("k",), content="c")
    made(path, "CREATE TABLE n (k TEXT COLLATE NOCASE PRIMARY KEY, c)", spec)
    execute(path, "INSERT INTO n VALUES ('a', 'text')")
    execute(path, "UPDATE n SET k = 'A'")
    found = drain(path, spec, Position("g", change_seq=1, walked=True))
    assert {name: row.present for name, row in found.items()} == {'"a"': False, '"A"': True}


def test_where_1_became_1_0_the_row_1_is_gone(tmp_path: Path) -> None:
    path, spec = tmp_path / "app.db", TableSpec("n", key=("k",), content="c")
    made(path, "CREATE TABLE n (k PRIMARY KEY, c)", spec)
    execute(path, "INSERT INTO n VALUES (1, 'text')")
    execute(path, "INSERT OR REPLACE INTO n VALUES (1.0, 'text')")
    found = drain(path, spec, Position("g", change_seq=1, walked=True), rows=10)
    assert {name: row.present for name, row in found.items()} == {"1": False, "1.0": True}


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("CREATE TABLE n (id INTEGER PRIMARY KEY, c)", ("id",)),
        ("CREATE TABLE n (k TEXT PRIMARY KEY, c)", ("k",)),
        ("CREATE TABLE n (k TEXT COLLATE NOCASE PRIMARY KEY, c)", ("k",)),
        ("CREATE TABLE n (k TEXT COLLATE RTRIM PRIMARY KEY, c) WITHOUT ROWID", ("k",)),
        ("CREATE TABLE n (a TEXT COLLATE NOCASE, b INT, c, PRIMARY KEY (a, b))", ("a", "b")),
        ("CREATE TABLE n (a TEXT, b INT, c, PRIMARY KEY (a, b)) WITHOUT ROWID", ("a", "b")),
        (TWO_COLLATIONS, ("a", "b")),
    ],
)
def test_walk_and_look_up_go_by_the_index_of_the_key(sql: str, key: tuple[str, ...]) -> None:
    spec = TableSpec("n", key=key, content="c")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(sql)
        queries = Queries(spec, key_order(connection, spec))
        after = ("x", 1)[: len(key)]
        for query, values in (queries.walk(after, NOW, 5), queries.one(after, NOW)):
            steps = connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
            assert [step[3][:14] for step in steps] == ["SEARCH t USING"], query


def test_a_star_stands_for_every_column_but_key_and_content(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    spec = TableSpec("n", content="Content", metadata=("*",))
    made(path, "CREATE TABLE n (id INTEGER PRIMARY KEY, content, a JSON, [b c] TEXT)", spec)
    execute(path, "INSERT INTO n VALUES (1, 'text', '{}', 'x')")
    (row,) = drain(path, spec, start(path, spec)).values()
    assert row.metadata == {"a": "{}", "b c": "x"}
    with closing(LogSource(path, spec)) as source:
        assert source.json_columns == {"a"}


FORMS = {
    "2030-06-01": "2030-06-01T00:00:00.000Z",
    "2030-06-01 10:00": "2030-06-01T10:00:00.000Z",
    "2030-06-01T10:00:00": "2030-06-01T10:00:00.000Z",
    "2030-06-01T10:00:00.250Z": "2030-06-01T10:00:00.250Z",
    "2030-06-01 23:30:00-05:00": "2030-06-02T04:30:00.000Z",
    "2030-06-02T09:00:00+14:00": "2030-06-01T19:00:00.000Z",
}


def test_expiry_is_read_in_every_form_of_iso_text_and_by_index(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    spec = TableSpec("n", key=("k",), content="c", expires_at="until", expiry_is_uniform=False)
    made(path, "CREATE TABLE n (k TEXT PRIMARY KEY, c, until); CREATE INDEX u ON n (until)", spec)
    never = (None, "", "soon", "now", "2030", 1906000000, 1906000000.5, b"2030-06-01")
    for number, value in enumerate((*FORMS, *never)):
        execute(path, "INSERT INTO n VALUES (?, 'text', ?)", (str(number), value))
    times = sorted(FORMS.values())
    with closing(LogSource(path, spec)) as source:
        moment = "2030-05-01T00:00:00.000Z"
        seen = []
        while (following := source.next_expiry(moment)) is not None:
            seen.append(following)
            moment = following
        assert seen == sorted(set(times))
        for moment in times:
            gone = {number for number, each in enumerate(FORMS.values()) if each <= moment}
            head, since = source.head(), "2030-05-01T00:00:00.000Z"
            begin = Position("g", change_seq=head, walked=True, expired_to=since)
            assert not source.is_idle(begin, moment)
            window = source.read(begin, head=source.head(), now=moment)
            assert {int(str(row.key[0])) for row in window.rows} == gone
            position = Position("g", change_seq=0)
            rows = source.read(position, head=source.head(), now=moment).rows
            absent = {int(str(row.key[0])) for row in rows if not row.present}
            assert absent == gone
        with closing(sqlite3.connect(path)) as connection:
            queries = Queries(spec)
            for query, count in ((queries.expiry_edge, 3), (queries.next_expiry, 1)):
                values = ("2030-05-01T00:00:00.000Z", "2030-06-01T00:00:00.000Z", 0)[:count]
                steps = connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
                assert not any(step[3].startswith("SCAN t") for step in steps), steps
