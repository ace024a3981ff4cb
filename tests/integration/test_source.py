"""Reading the change feed of a real database file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import memory
import pytest

from syncer.cli import specs
from syncer.errors import IdentityError, SchemaError, SettingsError, SourceBusyError, SourceError
from syncer.keys import RawText
from syncer.model import Position, Row, Window
from syncer.source import Limits, LogSource, TableSpec

NOW = "2030-01-01T00:00:00.000Z"
LATER = "2031-01-01T00:00:00.000Z"


class Feed:
    """A database and a source on it with small windows."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self.path = path
        spec = specs.table_spec(memory.settings_for(path.parent))
        self.source = LogSource(path, spec, limits or Limits(rows=3))

    def execute(self, sql: str, *values: object) -> None:
        """Run and commit a statement."""
        memory.execute(self.path, sql, values)

    def read(self, position: Position, now: str = NOW, head: int | None = None) -> Window:
        """Read one window, up to the head that there is."""
        return self.source.read(
            position, head=self.source.head() if head is None else head, now=now
        )

    @property
    def start(self) -> Position:
        """Where a generation begins that is noted now."""
        return Position("g", change_seq=self.source.head(), expired_to=NOW)

    def drain(self, position: Position, now: str = NOW) -> tuple[list[list[Row]], Position]:
        """Read windows until there is nothing more; return their rows and the last position."""
        windows = []
        for _ in range(100):
            window = self.read(position, now)
            windows.append(list(window.rows))
            position = window.next
            if not window.more:
                return windows, position
        raise AssertionError("the feed does not end")


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[Feed]:
    """Seven memories, read three at a time."""
    made = Feed(memory.make_memory(tmp_path, [f"text {n}" for n in range(1, 8)]))
    yield made
    made.source.close()


def keys(rows: list[Row]) -> list[object]:
    """Return the keys of rows that have one part."""
    return [row.key[0] for row in rows]


def test_the_walk_reads_every_row_once_in_the_order_of_the_key(feed: Feed) -> None:
    windows, position = feed.drain(feed.start)
    assert [keys(rows) for rows in windows] == [[1, 2, 3], [4, 5, 6], [7]]
    assert position == Position("g", "7", feed.source.head(), walked=True, expired_to=NOW)
    assert windows[0][0].content == "text 1"
    assert windows[0][0].metadata["agent"] == "a"


def test_a_table_that_fills_its_windows_exactly_is_walked_to_its_end(feed: Feed) -> None:
    feed.execute("DELETE FROM memory_events WHERE id = 7")
    windows, position = feed.drain(feed.start)
    assert [keys(rows) for rows in windows] == [[1, 2, 3], [4, 5, 6], []]
    assert position.walked


def test_an_empty_table_is_walked_at_once(feed: Feed) -> None:
    feed.execute("DELETE FROM memory_events")
    window = feed.read(feed.start)
    assert window.rows == ()
    assert window.next.walked
    assert not window.more
    assert feed.source.is_idle(window.next, NOW)


def test_changes_come_before_the_walk_goes_on(feed: Feed) -> None:
    first = feed.read(feed.start)
    feed.execute("UPDATE memory_events SET content = 'new' WHERE id = 7")
    second = feed.read(first.next)
    assert keys(list(second.rows)) == [7, 4, 5]
    assert second.rows[0].content == "new"
    assert keys(list(feed.read(second.next).rows)) == [6, 7]


@pytest.mark.rule("CT-18")
def test_a_changed_row_is_read_as_it_is_now_and_once(feed: Feed) -> None:
    _, position = feed.drain(feed.start)
    feed.execute("UPDATE memory_events SET content = 'b' WHERE id = 2")
    feed.execute("DELETE FROM memory_events WHERE id = 2")
    feed.execute("INSERT INTO memory_events (id, scope, source, content) VALUES (2, 's', 'x', 'c')")
    feed.execute("DELETE FROM memory_events WHERE id = 3")
    windows, _ = feed.drain(position)
    rows = [row for window in windows for row in window]
    assert [(row.key, row.present, row.content) for row in rows] == [
        ((2,), True, "c"),
        ((3,), False, None),
    ]


def test_more_changes_than_a_window_holds_are_served_in_order_without_a_gap(feed: Feed) -> None:
    _, position = feed.drain(feed.start)
    for number in (5, 1, 4, 2, 6, 3, 7):
        feed.execute("UPDATE memory_events SET content = 'new' WHERE id = ?", number)
    windows, position = feed.drain(position)
    assert [keys(rows) for rows in windows] == [[5, 1, 4], [2, 6, 3], [7]]
    assert feed.source.is_idle(position, NOW)


def test_a_row_that_changes_all_the_time_fills_no_window(feed: Feed) -> None:
    _, position = feed.drain(feed.start)
    for number in range(10):
        feed.execute("UPDATE memory_events SET content = ? WHERE id = 1", str(number))
    windows, position = feed.drain(position)
    assert {key for rows in windows for key in keys(rows)} == {1}
    assert feed.source.is_idle(position, NOW)


def test_a_run_ends_at_the_head_that_it_saw_when_it_began(feed: Feed) -> None:
    _, position = feed.drain(feed.start)
    feed.execute("UPDATE memory_events SET content = 'new' WHERE id = 1")
    head = feed.source.head()
    feed.execute("UPDATE memory_events SET content = 'new' WHERE id = 2")
    window = feed.read(position, head=head)
    assert keys(list(window.rows)) == [1]
    assert not window.more
    assert keys(list(feed.read(window.next).rows)) == [2]


def test_a_window_is_bounded_by_bytes_too(tmp_path: Path) -> None:
    feed = Feed(memory.make_memory(tmp_path, ["x" * 1000 for _ in range(5)]), Limits(100, 2000))
    with closing(feed.source):
        windows, _ = feed.drain(feed.start)
        assert [keys(rows) for rows in windows] == [[1, 2], [3, 4], [5]]


def test_one_row_larger_than_the_bound_is_a_window_of_its_own(tmp_path: Path) -> None:
    feed = Feed(memory.make_memory(tmp_path, ["x" * 9000, "y" * 9000]), Limits(100, 2000))
    with closing(feed.source):
        windows, _ = feed.drain(feed.start)
        assert [keys(rows) for rows in windows] == [[1], [2]]


@pytest.mark.rule("CT-15")
def test_superseded_and_deleted_rows_are_out_of_scope(feed: Feed) -> None:
    _, position = feed.drain(feed.start)
    feed.execute("UPDATE memory_events SET superseded_by = 7 WHERE id = 1")
    feed.execute("UPDATE memory_events SET deleted_by = 'me' WHERE id = 2")
    (rows,), position = feed.drain(position)
    assert [(row.key[0], row.present) for row in rows] == [(1, False), (2, False)]
    feed.execute("UPDATE memory_events SET superseded_by = NULL WHERE id = 1")
    (rows,), _ = feed.drain(position)
    assert [(row.key[0], row.present) for row in rows] == [(1, True)]


def test_an_expired_row_is_reported_without_anybody_touching_it(feed: Feed) -> None:
    feed.execute("UPDATE memory_events SET expires_at = '2030-06-01' WHERE id IN (2, 5)")
    _, position = feed.drain(feed.start)
    assert feed.source.is_idle(position, NOW)
    assert feed.source.next_expiry(NOW) == "2030-06-01T00:00:00.000Z"
    assert not feed.source.is_idle(position, LATER)
    (rows,), position = feed.drain(position, LATER)
    assert [(row.key[0], row.present) for row in rows] == [(2, False), (5, False)]
    assert feed.source.is_idle(position, LATER)


def test_many_rows_that_expire_at_one_moment_all_go(feed: Feed) -> None:
    feed.execute("UPDATE memory_events SET expires_at = '2030-06-01'")
    feed.execute("UPDATE memory_events SET expires_at = '2030-07-01' WHERE id = 1")
    _, position = feed.drain(feed.start)
    windows, position = feed.drain(position, LATER)
    assert sorted(str(key) for rows in windows for key in keys(rows)) == list("1234567")
    assert feed.source.is_idle(position, LATER)


def test_a_clock_that_steps_back_brings_expired_rows_out_again_later(feed: Feed) -> None:
    feed.execute("UPDATE memory_events SET expires_at = '2030-06-01' WHERE id = 2")
    _, position = feed.drain(feed.start)
    _, position = feed.drain(position, LATER)
    feed.execute("UPDATE memory_events SET content = 'new' WHERE id = 2")
    windows, position = feed.drain(position, NOW)
    assert (2, True) in [(row.key[0], row.present) for rows in windows for row in rows]
    (rows,), _ = feed.drain(position, LATER)
    assert [(row.key[0], row.present) for row in rows] == [(2, False)]


def test_a_log_that_went_backwards_is_refused(feed: Feed) -> None:
    _, position = feed.drain(feed.start)
    feed.execute("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'syncer_changes_memory_events'")
    with pytest.raises(IdentityError, match=r"ends at 3, but \d+ was already served"):
        feed.read(position)


def test_a_window_is_read_by_index(feed: Feed) -> None:
    queries = feed.source._queries  # noqa: SLF001 - the plan of the real statements
    statements = [
        queries.one((1,), NOW),
        queries.walk((1,), NOW, 10),
        (queries.changes, (1, 2, 10)),
        (queries.expired, (NOW, LATER)),
        (queries.expiry_edge, (NOW, LATER, 0)),
        (queries.next_expiry, (NOW,)),
    ]
    with closing(memory.write(feed.path)) as connection:
        for sql, values in statements:
            steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            assert steps
            assert all(step.startswith("SEARCH") for step in steps), (sql, steps)


def test_a_text_that_is_not_utf8_does_not_stop_the_window(feed: Feed) -> None:
    feed.execute("UPDATE memory_events SET content = CAST(x'636166e9' AS TEXT) WHERE id = 1")
    assert feed.read(feed.start).rows[0].content == RawText(b"caf\xe9")


@pytest.mark.rule("SR-04")
def test_no_transaction_is_open_after_a_window(feed: Feed) -> None:
    feed.read(feed.start)
    with closing(memory.write(feed.path)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0


def test_the_source_cannot_write(feed: Feed) -> None:
    connection = feed.source._connection  # noqa: SLF001 - what a bug could do
    with pytest.raises(memory.sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM memory_events")


@pytest.mark.rule("SR-01")
def test_a_locked_database_is_busy_and_never_empty(feed: Feed) -> None:
    path = feed.path.with_name("rollback.db")
    with (
        closing(memory.sqlite3.connect(path)) as copy,
        closing(memory.write(feed.path)) as original,
    ):
        original.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    spec = specs.table_spec(memory.settings_for(feed.path.parent))
    source = LogSource(path, spec, busy=0.05)
    with closing(source), closing(memory.write(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SourceBusyError, match=r"rollback\.db is locked"):
            source.read(feed.start, head=0, now=NOW)


@pytest.mark.rule("SR-06")
@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "there is no database at"), (b"", "is empty"), (b"not a database" * 100, "is not a")],
)
def test_a_file_that_is_no_database_is_refused_and_none_is_made(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "memory.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError, match=message):
        LogSource(path, TableSpec("memory_events"))
    assert path.exists() == (content is not None)


@pytest.mark.rule("SE-03")
@pytest.mark.rule("SR-19")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (TableSpec("memory_event"), r"no table memory_event \(did you mean memory_events\?\)"),
        (TableSpec("memory_events", content="contents"), r"no column contents .*mean content\?"),
        (TableSpec("memory_events", key=("idd",)), "no column idd"),
        (TableSpec("memory_events", metadata=("agnet",)), r"agnet .*mean agent\?"),
        (TableSpec("memory_events", expires_at="expires"), "no column expires"),
        (TableSpec("memory_events", where="nothing > 1"), "source.where is no SQL expression"),
        (TableSpec("memory_events", content="content || nope"), "source.content is no SQL"),
        (TableSpec("memory_events", deleted="1; DROP TABLE x"), "source.deleted is no SQL"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_the_closest_match(
    feed: Feed, spec: TableSpec, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        LogSource(feed.path, spec)


def test_all_wrong_names_are_reported_at_once(feed: Feed) -> None:
    spec = TableSpec("memory_events", content="contents", metadata=("agnet", "scoop"))
    with pytest.raises(SettingsError, match=r"(?s)agnet.*scoop.*contents"):
        LogSource(feed.path, spec)


def test_a_table_without_a_change_log_is_refused(feed: Feed) -> None:
    feed.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, content TEXT)")
    with pytest.raises(SchemaError, match="has no change log"):
        LogSource(feed.path, TableSpec("notes"))


def test_a_key_that_sqlite_may_give_twice_is_a_risk_with_a_reason(feed: Feed) -> None:
    assert feed.source.warnings() == []
    feed.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, content TEXT)")
    feed.execute(
        "CREATE TABLE syncer_changes_notes (seq INTEGER PRIMARY KEY AUTOINCREMENT, id, changed_at)"
    )
    with closing(LogSource(feed.path, TableSpec("notes"))) as source:
        (warning,) = source.warnings()
    assert "notes.id" in warning
    assert "AUTOINCREMENT" in warning
    assert "deleted last row" in warning
