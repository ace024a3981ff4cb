"""Reading a table that is only added to, by its key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from stamped import SPEC, Notes, at, keys

from syncer.errors import IdentityError
from syncer.source import AppendSource, Limits, TableSpec

LOG = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, at TEXT, due TEXT)"
NOW = "2029-06-01T12:00:00.000Z"


def source_of(notes: Notes, spec: TableSpec = SPEC) -> AppendSource:
    """Return a source with small windows."""
    return AppendSource(notes.path, spec, Limits(rows=3))


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """Seven notes without any index but their key's."""
    made = Notes(tmp_path / "notes.db", LOG)
    made.fill(7, None)
    yield made
    made.close()


@pytest.fixture
def source(notes: Notes) -> Iterator[AppendSource]:
    """A source on them."""
    with closing(source_of(notes)) as opened:
        yield opened


def test_every_row_is_read_once_in_the_order_of_the_key(notes: Notes, source: AppendSource) -> None:
    assert source.pending(notes.position) == 7
    assert [keys(rows) for rows in notes.windows(source, 0)] == [[1, 2, 3], [4, 5, 6], [7]]
    assert source.is_idle(notes.position, at(0))
    assert source.is_caught_up(notes.position, at(0))
    assert source.pending(notes.position) == 0
    assert notes.run(source, 1) == []


def test_new_rows_are_those_behind_the_last_key(notes: Notes, source: AppendSource) -> None:
    notes.run(source, 0)
    for row in range(10, 17):
        notes.put(row, "new", None)
    assert not source.is_idle(notes.position, at(1))
    assert source.pending(notes.position) == 7
    assert [keys(rows) for rows in notes.windows(source, 1)] == [[10, 11, 12], [13, 14, 15], [16]]
    assert (notes.position.last_id, notes.position.walked) == ("16", True)


def test_ct_08_edits_deletes_and_keys_below_the_last_are_left_to_verification(
    notes: Notes, source: AppendSource
) -> None:
    notes.execute("DELETE FROM notes WHERE id = 5")
    notes.run(source, 0)
    notes.put(2, "edited", None)
    notes.put(5, "explicit id", None)
    notes.execute("DELETE FROM notes WHERE id = 3")
    assert source.is_idle(notes.position, at(1))
    assert notes.run(source, 1) == []


def test_keys_of_text_are_followed_in_their_order(tmp_path: Path) -> None:
    ddl = "CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID"
    with closing(Notes(tmp_path / "notes.db", ddl)) as notes:
        for name in ("01A", "01B", "01C", "01D"):
            notes.execute("INSERT INTO notes VALUES (?, 'x')", name)
        with closing(source_of(notes)) as source:
            assert keys(notes.run(source, 0)) == ["01A", "01B", "01C", "01D"]
            notes.execute("INSERT INTO notes VALUES ('01E', 'x')")
            assert keys(notes.run(source, 1)) == ["01E"]
            assert source.is_idle(notes.position, at(2))


def test_sr_16_a_row_without_a_key_is_handed_on_to_be_quarantined(tmp_path: Path) -> None:
    ddl = "CREATE TABLE notes (id INT PRIMARY KEY, body TEXT)"
    with closing(Notes(tmp_path / "notes.db", ddl)) as notes:
        for key in (None, None, None, 1, 2):
            notes.execute("INSERT INTO notes VALUES (?, 'x')", key)
        with closing(source_of(notes)) as source:
            assert set(keys(notes.run(source, 0))) == {None, 1, 2}
            assert source.is_idle(notes.position, at(1))


def test_sr_14_a_view_over_two_tables_works_with_its_key(tmp_path: Path) -> None:
    ddl = """CREATE TABLE a (id INTEGER PRIMARY KEY, body TEXT);
             CREATE TABLE b (a INTEGER REFERENCES a, more TEXT);
             CREATE VIEW notes AS SELECT a.id, body || more AS body FROM a JOIN b ON b.a = a.id"""
    with closing(Notes(tmp_path / "notes.db", ddl)) as notes:
        for row in range(1, 6):
            notes.execute("INSERT INTO a VALUES (?, 'text')", row)
            notes.execute("INSERT INTO b VALUES (?, ' and more')", row)
        with closing(source_of(notes)) as source:
            rows = notes.run(source, 0)
    assert keys(rows) == [1, 2, 3, 4, 5]
    assert rows[0].content == "text and more"


def test_a_run_ends_at_the_last_key_that_there_was_when_it_began(
    notes: Notes, source: AppendSource
) -> None:
    head, found, fresh = source.head(), [], count(8)
    for _ in range(10):
        window = source.read(notes.position, head=head, now=at(0))
        notes.position = window.next
        found += keys(list(window.rows))
        for _ in range(5):
            notes.put(next(fresh), "new", None)
        if not window.more:
            break
    assert found == [1, 2, 3, 4, 5, 6, 7]
    assert not source.is_idle(notes.position, at(0))


def test_a_table_that_was_empty_when_the_run_began_is_left_to_the_next(tmp_path: Path) -> None:
    with closing(Notes(tmp_path / "notes.db", LOG)) as notes, closing(source_of(notes)) as source:
        head = source.head()
        notes.fill(2, None)
        window = source.read(notes.position, head=head, now=at(0))
        assert (window.rows, window.more, window.next.walked) == ((), False, True)
        notes.position = window.next
        assert keys(notes.run(source, 1)) == [1, 2]


def test_expired_rows_and_those_out_of_scope_are_reported(tmp_path: Path, notes: Notes) -> None:
    notes.execute("UPDATE notes SET due = ? WHERE id = 2", at(100))
    spec = replace(SPEC, where="id <> 4", expires_at="due")
    with closing(source_of(notes, spec)) as source:
        rows = notes.run(source, 0)
        assert [row.key[0] for row in rows if not row.present] == [4]
        assert source.count() == 6
        assert source.is_idle(notes.position, at(99))
        assert not source.is_idle(notes.position, at(100))
        assert source.oldest_change(notes.position, at(101)) == at(100)
        assert [(row.key, row.expired) for row in notes.run(source, 101)] == [((2,), True)]


def test_rows_out_of_scope_are_counted_before_a_walk(notes: Notes) -> None:
    with closing(source_of(notes, replace(SPEC, where="id <> 4"))) as source:
        head = source.head()
        assert list(source.gone(notes.position, head=head, now="2029-06-01T12:00:00.000Z")) == [
            [(4,)]
        ]
        notes.run(source, 0)
        assert list(source.gone(notes.position, head=head, now=NOW)) == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("DELETE FROM notes", "is empty, but key 7 was already read"),
        ("DELETE FROM notes WHERE id > 4", "ends at key 4, but key 7 was already read"),
    ],
)
def test_ct_05_a_table_that_ends_before_the_last_key_is_refused(
    notes: Notes, source: AppendSource, damage: str, message: str
) -> None:
    notes.run(source, 0)
    notes.execute(damage)
    with pytest.raises(IdentityError, match=message):
        source.is_idle(notes.position, at(1))
    with pytest.raises(IdentityError, match=message):
        notes.run(source, 1)


def test_an_id_that_may_be_given_twice_is_warned_of_as_what_it_is_here(
    source: AppendSource,
) -> None:
    (warning,) = source.warnings()
    assert "notes.id is INTEGER PRIMARY KEY without AUTOINCREMENT" in warning
    assert "until the next verification" in warning


def test_new_rows_are_looked_for_by_index(notes: Notes, source: AppendSource) -> None:
    notes.run(source, 0)
    statements: list[str] = []
    connection = source._connection  # noqa: SLF001 - what is really asked
    connection.set_trace_callback(statements.append)
    assert source.is_idle(notes.position, at(1))
    connection.set_trace_callback(None)
    asked = [sql for sql in statements if sql.startswith("SELECT")]
    assert len(asked) == 2
    for sql in asked:
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
        assert all(step.startswith("SEARCH") for step in steps), (sql, steps)
