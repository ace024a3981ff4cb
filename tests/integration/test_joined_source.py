"""Reading what other tables have for a row, with the row and in the same transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from syncer import changelog
from syncer.errors import SettingsError, SourceError
from syncer.keys import RawText
from syncer.model import Position, Row
from syncer.source import AppendSource, JoinedLists, Limits, LogSource, StampedSource, Stamps
from syncer.source.order import key_order
from syncer.table import Joined, TableSpec

NOW = "2030-01-01T00:00:00.000Z"
SCHEMA = """
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT, tag TEXT, at DATETIME);
CREATE TABLE memory_tags (memory_id INTEGER, tag TEXT COLLATE NOCASE, weight);
CREATE INDEX memory_tags_of ON memory_tags (memory_id);
INSERT INTO memories (content, at) VALUES ('one', '2029-01-01'), ('two', '2029-01-01'),
    ('three', '2029-01-01');
INSERT INTO memory_tags VALUES (1, 'b', 1), (1, 'a', 3), (2, NULL, 5), (1, NULL, 2), (9, 'x', 0);
"""
TAGS = Joined("tags", "memory_tags", ("memory_id",), "tag")


class Database:
    """An attached database with lists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = sqlite3.connect(path, isolation_level=None)
        self.writer.executescript(SCHEMA)
        changelog.attach(self.writer, TableSpec("memories"))

    def open(self, joined: Joined = TAGS, limits: Limits | None = None) -> LogSource:
        """Return a source on it."""
        return LogSource(self.path, TableSpec("memories", joined=(joined,)), limits)

    def lists(self, joined: Joined = TAGS) -> list[object]:
        """Return the lists of the walk's rows, which those of single rows must equal."""
        with closing(self.open(joined)) as source:
            walked = rows(source)
            assert list(source.rows([row.key for row in walked], NOW)) == walked
        return [row.metadata[joined.name] for row in walked]

    def put(self, *entry: object) -> None:
        """Add an entry."""
        self.writer.execute("INSERT INTO memory_tags VALUES (?, ?, ?)", entry)


def rows(source: LogSource) -> list[Row]:
    """Read window after window."""
    found: list[Row] = []
    position, more = Position("g", change_seq=0, expired_to=NOW), True
    head = source.head()
    while more:
        window = source.read(position, head=head, now=NOW)
        found += window.rows
        position, more = window.next, window.more
    return found


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "memory.db")
    with closing(made.writer):
        yield made


def test_a_list_has_the_values_in_order_without_nulls_and_is_empty_if_there_are_none(
    db: Database,
) -> None:
    assert db.lists() == [["a", "b"], [], []]


def test_several_columns_make_a_list_of_objects(db: Database) -> None:
    assert db.lists(replace(TAGS, value=("tag", "weight")))[:2] == [
        [{"tag": None, "weight": 2}, {"tag": "a", "weight": 3}, {"tag": "b", "weight": 1}],
        [{"tag": None, "weight": 5}],
    ]


def test_an_expression_sees_the_joined_table_alone(db: Database) -> None:
    """The source's table has a column of the same name, and both have a rowid."""
    assert db.lists(replace(TAGS, value="upper(tag)"))[0] == ["A", "B"]
    assert db.lists(replace(TAGS, value="j.rowid", order="j.rowid DESC"))[0] == [4, 2, 1]


def test_the_order_may_be_another_and_never_depends_on_how_rows_lie(db: Database) -> None:
    assert db.lists(replace(TAGS, order="weight"))[0] == ["b", "a"]
    assert db.lists(replace(TAGS, order="weight DESC, tag"))[0] == ["a", "b"]
    entries = [(3, "x", 1), (3, "X", 1), (3, "x", 1.0)]
    both = replace(TAGS, value=("tag", "weight"), order="weight")
    found = []
    for order in (entries, entries[::-1]):
        db.writer.execute("DELETE FROM memory_tags WHERE memory_id = 3")
        for entry in order:
            db.put(*entry)
        found.append(repr(db.lists(both)[2]))
    assert found[0] == found[1]


def test_values_stay_as_sqlite_has_them(db: Database) -> None:
    db.writer.execute("INSERT INTO memory_tags VALUES (3, CAST(x'ff' AS TEXT), 1), (3, x'ff', 1)")
    db.put(3, 7, 1)
    assert db.lists()[2] == ["7", RawText(b"\xff"), b"\xff"]


def test_a_window_is_bounded_by_the_bytes_of_lists_too(db: Database) -> None:
    for key in (1, 2, 3):
        db.put(key, "x" * 1000, 0)
    for value in ("tag", ("tag", "weight")):
        source = db.open(replace(TAGS, value=value), Limits(size=1500))
        with closing(source):
            window = source.read(Position("g", expired_to=NOW), head=source.head(), now=NOW)
        assert len(window.rows) == 2


@pytest.mark.parametrize("mode", ["append_only", "updated_at"])
def test_the_read_only_modes_read_lists_too_and_views_may_be_joined(
    db: Database, mode: str
) -> None:
    db.writer.execute("CREATE VIEW shown AS SELECT memory_id, upper(tag) AS tag FROM memory_tags")
    spec = TableSpec("memories", joined=(replace(TAGS, table="shown"),))
    source: AppendSource
    if mode == "append_only":
        source = AppendSource(db.path, spec)
    else:
        source = StampedSource(db.path, spec, Stamps("at"))
    with closing(source):
        assert [row.metadata["tags"] for row in rows(source)] == [["A", "B"], [], []]
        db.writer.execute("UPDATE memory_tags SET tag = 'c' WHERE tag = 'b'")
        (row,) = source.rows([(1,)], NOW)
        assert row.metadata["tags"] == ["A", "C"]


def test_a_list_is_read_by_index_whatever_the_key_is(db: Database) -> None:
    db.writer.executescript(
        "CREATE TABLE m (a TEXT COLLATE NOCASE, b INTEGER, content, PRIMARY KEY (a, b));"
        "CREATE TABLE tags (x TEXT COLLATE NOCASE, y INTEGER, tag, PRIMARY KEY (x, y, tag));"
    )
    pair = TableSpec("m", key=("a", "b"), joined=(Joined("tags", "tags", ("x", "y"), "tag"),))
    for spec, key in ((TableSpec("memories", joined=(TAGS,)), (1,)), (pair, ("A", 1))):
        lists = JoinedLists(db.writer, spec, key_order(db.writer, spec))
        assert lists.warnings == []
        sql, values = lists.query(spec.joined[0], key)
        steps = [row[3] for row in db.writer.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        assert any(step.startswith("SEARCH j USING") for step in steps), steps
        assert not any(step.startswith("SCAN") or "AUTOMATIC" in step for step in steps), steps


@pytest.mark.parametrize(
    "sql",
    [
        "DROP INDEX memory_tags_of",
        "DROP INDEX memory_tags_of; CREATE INDEX i ON memory_tags (tag, memory_id)",
    ],
)
def test_without_an_index_it_works_and_is_warned_of(db: Database, sql: str) -> None:
    db.writer.executescript(sql)
    with closing(db.open()) as source:
        (warning,) = [found for found in source.warnings() if "metadata.tags" in found]
        assert "CREATE INDEX … ON memory_tags (memory_id)" in warning
        assert len(rows(source)) == 3
    with closing(AppendSource(db.path, TableSpec("memories", joined=(TAGS,)))) as source:
        assert any("metadata.tags" in found for found in source.warnings())


@pytest.mark.rule("SR-17")
@pytest.mark.parametrize(
    ("away", "back"),
    [
        (
            "ALTER TABLE memory_tags RENAME TO aside",
            "ALTER TABLE aside RENAME TO memory_tags",
        ),
        (
            "ALTER TABLE memory_tags RENAME COLUMN tag TO label",
            "ALTER TABLE memory_tags RENAME COLUMN label TO tag",
        ),
    ],
)
def test_a_joined_table_or_column_that_goes_away_stops_the_reading_until_it_is_back(
    db: Database, away: str, back: str
) -> None:
    with closing(db.open()) as source:
        before = rows(source)
        db.writer.execute(away)
        with pytest.raises(SourceError, match="cannot be read: no such"):
            rows(source)
        with pytest.raises(SettingsError, match=r"source\.joined"):
            db.open()
        db.writer.execute(back)
        assert rows(source) == before


def test_no_transaction_is_open_after_a_window(db: Database) -> None:
    db.writer.execute("PRAGMA journal_mode = WAL")
    with closing(db.open(limits=Limits(rows=1))) as source:
        source.read(Position("g", expired_to=NOW), head=source.head(), now=NOW)
        busy, _, _ = db.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0
