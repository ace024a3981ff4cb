"""Which rows are still to be looked at, by each way of learning of changes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import memory
import pytest

from syncer.keys import Key, RawText
from syncer.model import Position, Row
from syncer.source import AppendSource, Limits, LogSource, StampedSource, Stamps
from syncer.table import TableSpec

NOW = "2030-01-01T00:00:00.000Z"
PLAIN = TableSpec(table="notes", key=("id",), content="body", metadata=())
KEYS: list[Key] = [(1,), (2,), (3,), (4,)]


def table(folder: Path, key: str = "id INTEGER PRIMARY KEY AUTOINCREMENT") -> Path:
    """Make a table of four rows, stamped a day after the other, the last without a time."""
    path = folder / "app.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE notes ({key}, body TEXT, at TEXT)")
        connection.executemany(
            "INSERT INTO notes VALUES (?, 'x', ?)",
            [(1, "2020-01-01"), (2, "2020-01-02"), (3, "2020-01-03T00:00:00Z"), (4, None)],
        )
    return path


def test_where_changes_are_logged_it_is_what_stands_in_the_log_behind_the_position(
    tmp_path: Path,
) -> None:
    path = memory.make_memory(tmp_path, ["1", "2", "3", "4"])
    spec = TableSpec(
        table="memory_events", key=("id",), content="content", metadata=(), expires_at="expires_at"
    )
    source = LogSource(path, spec)
    position = Position("g", "4", source.head(), walked=True, expired_to=NOW)
    assert source.pending_keys(position, KEYS, NOW) == set()
    memory.execute(path, "UPDATE memory_events SET content = 'y' WHERE id = 2")
    memory.execute(path, "DELETE FROM memory_events WHERE id = 3")
    assert source.pending_keys(position, KEYS, NOW) == {"2", "3"}
    assert source.pending_keys(position, KEYS[:1], NOW) == set()
    walking = replace(position, last_id="1", walked=False, change_seq=source.head())
    assert source.pending_keys(walking, KEYS, NOW) == {"2", "4"}
    source.close()


def test_many_keys_at_once_are_looked_up_all(tmp_path: Path) -> None:
    path = memory.make_memory(tmp_path, ["x"] * 2000)
    spec = TableSpec(table="memory_events", key=("id",), content="content", metadata=())
    source = LogSource(path, spec)
    keys: list[Key] = [(number,) for number in range(1, 3000)]
    start = Position("g", walked=True)
    assert len(source.pending_keys(start, keys, NOW)) == 2000
    source.close()


def test_where_rows_are_only_added_it_is_what_comes_behind_the_last_key(tmp_path: Path) -> None:
    source = AppendSource(table(tmp_path), PLAIN)
    position = Position("g", "2", walked=True, expired_to=NOW)
    assert source.pending_keys(position, [*KEYS, (9,)], NOW) == {"3", "4"}
    assert source.pending_keys(replace(position, last_id=None), KEYS, NOW) == {"1", "2", "3", "4"}
    source.close()


def test_where_rows_are_stamped_it_is_what_is_not_settled_or_has_no_time(tmp_path: Path) -> None:
    source = StampedSource(table(tmp_path), PLAIN, Stamps("at", look_back=0.0))
    position = Position("g", "4", walked=True, expired_to=NOW, settled="2020-01-02T12:00:00Z")
    assert source.pending_keys(position, [*KEYS, (9,)], NOW) == {"2", "3", "4"}  # a day has an end
    settled = replace(position, settled="2020-01-03T12:00:00Z")
    assert source.pending_keys(settled, KEYS, NOW) == {"4"}
    assert source.pending_keys(replace(settled, last_id="3"), KEYS, NOW) == {"4"}
    source.close()


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_the_walk_goes_over_all_rows_once_in_windows(tmp_path: Path, rows: int) -> None:
    source = AppendSource(table(tmp_path), PLAIN, Limits(rows=rows))
    found: list[Row] = []
    after: Key | None = None
    while True:
        window, after = source.walk(after, NOW)
        found += window
        assert len(window) <= rows
        if after is None:
            break
    assert [row.key for row in found] == KEYS
    source.close()


def test_keys_of_any_type_are_told_apart(tmp_path: Path) -> None:
    path = table(tmp_path, "id BLOB PRIMARY KEY NOT NULL")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO notes VALUES ('1', 'x', NULL), (x'31', 'x', NULL)")
    source = StampedSource(path, PLAIN, Stamps("at", look_back=0.0))
    position = Position("g", '{"blob":"MQ=="}', walked=True, settled="2029-01-01T00:00:00Z")
    keys: list[Key] = [(1,), ("1",), (b"1",), (RawText(b"\xff"),)]
    assert source.pending_keys(position, keys, NOW) == {'"1"', '{"blob":"MQ=="}'}
    source.close()
