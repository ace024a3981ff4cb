"""Reading a table by the time of each row's last change, from a real database file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stamped import SCHEMA, SPEC, Notes, at, keys

from syncer.errors import IdentityError, SettingsError, SourceError
from syncer.source import StampedSource, Stamps, TableSpec
from syncer.source.stamps import instant_of


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """An empty table of notes."""
    made = Notes(tmp_path / "notes.db")
    yield made
    made.close()


@pytest.fixture
def settled(notes: Notes) -> Iterator[tuple[Notes, StampedSource]]:
    """Five notes that were read long ago."""
    notes.fill(5, at(-5000))
    with closing(notes.source()) as source:
        notes.settle(source, 0)
        yield notes, source


Settled = tuple[Notes, StampedSource]


def test_the_first_run_walks_by_key_whatever_the_stamps_are(notes: Notes) -> None:
    for row, stamp in enumerate((None, "soon", 17, at(0), at(-9999), b"x", at(99_999)), 1):
        notes.put(row, "text", stamp)
    with closing(notes.source()) as source:
        walked = [keys(rows) for rows in notes.windows(source, 10)][:3]
    assert walked[:2] == [[1, 2, 3], [4, 5, 6]]
    assert walked[2][0] == 7
    assert (notes.position.last_id, notes.position.walked) == ("7", True)


def test_an_edit_is_read_once_it_is_stamped(settled: Settled) -> None:
    notes, source = settled
    notes.put(2, "new", at(3000))
    assert not source.is_idle(notes.position, at(3001))
    (row,) = notes.run(source, 3001)
    assert (row.key, row.content) == ((2,), "new")


def test_a_row_is_read_again_until_it_was_read_after_its_look_back_and_then_never(
    settled: Settled,
) -> None:
    notes, source = settled
    notes.put(2, "new", at(3000))
    read = [now for now in range(3001, 4000, 50) if notes.run(source, now)]
    assert read == [3001, 3051, 3101, 3151]
    assert source.is_idle(notes.position, at(4000))
    assert notes.position.cursor is None
    assert instant_of(notes.position.settled) == instant_of(at(3000))


def test_a_run_within_the_look_back_changes_nothing_unless_there_is_something_new(
    settled: Settled,
) -> None:
    notes, source = settled
    notes.put(2, "new", at(3000))
    notes.run(source, 3001)
    position = notes.position
    notes.run(source, 3050)
    assert replace(notes.position, expired_to=None) == replace(position, expired_to=None)


def test_ct_03_rows_with_one_stamp_fill_many_windows_and_none_is_left_out(
    settled: Settled,
) -> None:
    notes, source = settled
    notes.fill(20, at(3000))
    windows = [keys(rows) for rows in notes.windows(source, 3001)]
    assert all(len(rows) <= 3 for rows in windows)
    assert {key for rows in windows for key in rows} == set(range(1, 21))


def test_ct_03_an_edit_in_the_second_of_the_last_read_is_still_seen(settled: Settled) -> None:
    notes, source = settled
    notes.put(2, "new", "2024-07-27 00:50:00")
    notes.run(source, 3000.2)
    notes.put(3, "new", "2024-07-27 00:50:00")
    assert 3 in keys(notes.run(source, 3000.7))


@pytest.mark.parametrize("outlier", [None, "2099-01-01T00:00:00Z"])
@pytest.mark.parametrize("offset", [-5 * 3600, 9 * 3600])
def test_stamps_in_a_local_time_without_zone_lose_no_edit_in_one_second(
    notes: Notes, offset: int, outlier: str | None
) -> None:
    notes.fill(5, at(offset - 5000)[:19])
    if outlier:
        notes.put(5, "future", outlier)
    with closing(notes.source()) as source:
        for now in (0, 1000, 2000):
            notes.run(source, now)
        notes.put(2, "new", at(3000 + offset)[:19])
        assert 2 in keys(notes.run(source, 3000.2))
        notes.put(3, "new", at(3000 + offset)[:19])
        assert 3 in keys(notes.run(source, 3000.7))


def test_a_column_of_dates_is_read_again_until_the_day_is_over(notes: Notes) -> None:
    notes.fill(3, "2024-07-26")
    with closing(notes.source()) as source:
        notes.settle(source, 0)
        notes.put(2, "noon", "2024-07-27")
        notes.run(source, 43_200)
        notes.put(2, "evening", "2024-07-27")
        (row,) = notes.run(source, 80_000)
        assert row.content == "evening"
        for now in (86_401, 87_000, 88_000):
            notes.run(source, now)
        assert source.is_idle(notes.position, at(88_000))


@pytest.mark.parametrize(
    "stamp", ["2024-07-27 00:50:00", "2024-07-27T09:50:00+09:00", "2024-07-26T19:50:00-05:00",
              1722041400, 1722041400.0, 1722041400000],
)  # fmt: skip
def test_ct_04_formats_may_mix(settled: Settled, stamp: object) -> None:
    notes, source = settled
    notes.put(4, "new", stamp)
    assert keys(notes.run(source, 3001)) == [4]
    notes.settle(source, 3500)


@pytest.mark.parametrize("stamp", [None, "soon", b"x", "27/07/2026", 2461248.5, ""])
def test_ct_04_a_row_whose_stamp_names_no_time_is_looked_at_in_every_run(
    settled: Settled, stamp: object
) -> None:
    notes, source = settled
    notes.put(4, "new", stamp)
    for now in (3000, 9000, 900_000):
        assert not source.is_idle(notes.position, at(now))
        assert source.is_caught_up(notes.position, at(now))
        assert keys(notes.run(source, now)) == [4]


def test_a_stamp_in_the_future_is_read_in_every_run_and_hides_no_other(settled: Settled) -> None:
    notes, source = settled
    notes.put(4, "new", "2099-01-01T00:00:00Z")
    for now in (3000, 9000):
        assert keys(notes.run(source, now)) == [4]
    notes.put(2, "new", at(9000))
    assert keys(notes.run(source, 9001)) == [2, 4]


@pytest.mark.parametrize("step", [-60, -3600, -86_400 * 400])
def test_ct_07_a_clock_that_is_set_back_hides_no_later_edit(settled: Settled, step: int) -> None:
    notes, source = settled
    notes.put(2, "new", at(3000))
    notes.settle(source, 3001)
    notes.put(3, "stamped by the new time", at(5001 + step))
    assert not source.is_idle(notes.position, at(5002 + step))
    assert 3 in keys(notes.run(source, 5002 + step))
    for now in range(5200 + step, 6000 + step, 100):
        notes.run(source, now)
    notes.put(4, "stamped by the new time", at(6000 + step))
    assert 4 in keys(notes.run(source, 6001 + step))


def test_ct_07_a_clock_that_is_set_back_does_not_make_the_look_back_longer(
    settled: Settled,
) -> None:
    notes, source = settled
    notes.put(2, "new", at(-4000))
    for now in (3001, 0, 200, 400):
        notes.run(source, now)
    assert source.is_idle(notes.position, at(400))


def test_ct_07_within_the_look_back_a_stamp_below_the_newest_is_found_without_a_run_between(
    settled: Settled,
) -> None:
    notes, source = settled
    notes.put(2, "new", at(3000))
    notes.run(source, 3001)
    notes.put(3, "late", at(2890))
    assert 3 in keys(notes.run(source, 3119))


def test_a_new_row_with_an_old_stamp_is_found_by_its_key(settled: Settled) -> None:
    notes, source = settled
    notes.put(9, "imported", at(-99_999))
    assert not source.is_idle(notes.position, at(2001))
    assert keys(notes.run(source, 2001)) == [9]
    assert notes.position.last_id == "9"
    assert source.is_idle(notes.position, at(2001))


def test_ct_08_a_row_below_both_cursors_is_left_to_verification(settled: Settled) -> None:
    notes, source = settled
    notes.execute("DELETE FROM notes WHERE id = 3")
    notes.settle(source, 2500)
    notes.put(3, "explicit id and an old stamp", at(-99_999))
    assert source.is_idle(notes.position, at(9000))
    assert notes.run(source, 9000) == []


def test_ct_09_a_deleted_row_is_left_to_verification_and_a_soft_delete_is_found(
    notes: Notes,
) -> None:
    notes.fill(5, at(-5000))
    with closing(notes.source(spec=replace(SPEC, deleted="gone = 1"))) as source:
        notes.settle(source, 0)
        notes.execute("DELETE FROM notes WHERE id = 2")
        assert source.is_idle(notes.position, at(2001))
        notes.execute("UPDATE notes SET gone = 1, at = ? WHERE id = 3", at(3000))
        assert list(source.gone(notes.position, head=source.head(), now=at(3001))) == [[(3,)]]
        assert [(row.key, row.present) for row in notes.run(source, 3001)] == [((3,), False)]


def test_an_expired_row_is_reported_without_anybody_touching_it(notes: Notes) -> None:
    notes.fill(5, at(-5000))
    notes.execute("UPDATE notes SET due = ? WHERE id = 4", at(3000))
    with closing(notes.source(spec=replace(SPEC, expires_at="due"))) as source:
        notes.settle(source, 0)
        assert source.next_expiry(at(2500)) == at(3000)
        assert not source.is_idle(notes.position, at(3000))
        assert source.oldest_change(notes.position, at(3001)) == at(3000)
        assert [(row.key, row.expired) for row in notes.run(source, 3000)] == [((4,), True)]


def test_a_run_that_walks_reads_no_row_twice_and_the_next_one_what_changed_meanwhile(
    notes: Notes,
) -> None:
    notes.fill(9, at(0))
    with closing(notes.source()) as source:
        head, found = source.head(), []
        for now in (1, 2, 3, 4):
            window = source.read(notes.position, head=head, now=at(now))
            notes.position = window.next
            found += keys(list(window.rows))
            notes.put(1, "edited behind the walk", at(now))
        assert found == list(range(1, 10))
        assert not window.more
        assert not source.is_idle(notes.position, at(5))
        rows = notes.run(source, 5)
    assert [row.content for row in rows if row.key == (1,)] == ["edited behind the walk"]


@pytest.mark.parametrize("stamp", [at(1), at(-5000)])
def test_a_walk_that_was_interrupted_is_followed_by_a_pass(notes: Notes, stamp: str) -> None:
    """Also for an edit in the very moment of the newest stamp that there was."""
    notes.fill(9, at(-5000))
    with closing(notes.source()) as source:
        window = source.read(notes.position, head=source.head(), now=at(0))
    notes.put(1, "edited behind the walk", stamp)
    notes.position = window.next
    with closing(notes.source()) as restarted:
        rows = notes.run(restarted, 2)
    assert [row.content for row in rows if row.key == (1,)] == ["edited behind the walk"]


def test_a_mapping_that_is_walked_again_misses_no_edit(settled: Settled) -> None:
    notes, source = settled
    notes.position = replace(notes.position, last_id=None, walked=False)
    head = source.head()
    window = source.read(notes.position, head=head, now=at(3000))
    notes.put(1, "edited behind the walk", at(3000))
    notes.position = window.next
    assert [row.content for row in notes.run(source, 3001) if row.key == (1,)] == [
        "edited behind the walk"
    ]


@pytest.mark.parametrize("outlier", [None, "2099-01-01T00:00:00Z"])
@pytest.mark.parametrize("ahead", [0, 3600])
def test_a_run_ends_although_a_writer_never_does(
    settled: Settled, outlier: str | None, ahead: int
) -> None:
    notes, source = settled
    if outlier:
        notes.put(5, "future", outlier)
    notes.fill(4, at(3000))
    head, rows = source.head(), count(100)
    for window_number in range(100):
        window = source.read(notes.position, head=head, now=at(3001 + window_number))
        notes.position = window.next
        if not window.more:
            break
        for _ in range(10):  # more than a window holds, new ones and edits
            notes.put(next(rows), "new", at(3001 + window_number + ahead))
            notes.put(1 + next(rows) % 4, "edit", at(3001 + window_number + ahead))
    else:
        raise AssertionError("the run does not end")
    assert window_number < 10


def test_what_is_settled_moves_on_although_a_writer_never_stops(settled: Settled) -> None:
    notes, source = settled
    before = instant_of(notes.position.settled)
    for run in range(4):
        head, now = source.head(), 3000 + 200 * run
        for second in range(20):
            notes.fill(8, at(now + second))
            window = source.read(notes.position, head=head, now=at(now + second + 0.5))
            notes.position = window.next
            if not window.more:
                break
    after = instant_of(notes.position.settled)
    assert before is not None
    assert after is not None
    assert after > before


def test_a_pass_that_was_interrupted_goes_on_and_another_follows_in_the_same_run(
    settled: Settled,
) -> None:
    notes, source = settled
    notes.fill(8, at(3000))
    first = source.read(notes.position, head=source.head(), now=at(3001))
    assert keys(list(first.rows)) == [1, 2, 3]
    notes.position = first.next
    notes.put(1, "edited since", at(3500))
    with closing(notes.source()) as restarted:
        rows = notes.run(restarted, 3501)
    assert keys(rows)[:3] == [4, 5, 6]
    assert [row.content for row in rows if row.key == (1,)] == ["edited since"]


def test_what_was_read_once_is_not_pending_though_it_is_read_again(settled: Settled) -> None:
    notes, source = settled
    stamp = at(3000)
    notes.put(2, "new", stamp)
    notes.put(9, "new", stamp)
    notes.put(10, "new", at(-99_999))
    assert not source.is_caught_up(notes.position, at(3001))
    assert source.pending(notes.position) == 3
    oldest = source.oldest_change(notes.position, at(3001))
    assert instant_of(oldest) == instant_of(stamp)
    notes.run(source, 3001)
    assert not source.is_idle(notes.position, at(3002))
    assert source.is_caught_up(notes.position, at(3002))
    assert source.pending(notes.position) == 0
    assert source.oldest_change(notes.position, at(3002)) is None
    notes.put(3, "newer", at(3050))
    assert source.pending(notes.position) == 1
    notes.run(source, 3051)
    assert source.pending(notes.position) == 0


def test_before_the_walk_every_row_is_pending(notes: Notes) -> None:
    notes.fill(5, at(-5000))
    with closing(notes.source()) as source:
        assert source.pending(notes.position) == 5
        assert not source.is_idle(notes.position, at(0))
        assert not source.is_caught_up(notes.position, at(0))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("DELETE FROM notes", "is empty, but key 5 was already read"),
        ("DELETE FROM notes WHERE id > 3", "ends at key 3, but key 5 was already read"),
    ],
)
def test_ct_05_a_table_that_ends_before_the_last_key_is_refused_and_nothing_deleted(
    settled: Settled, damage: str, message: str
) -> None:
    notes, source = settled
    notes.execute(damage)
    with pytest.raises(IdentityError, match=message):
        source.is_idle(notes.position, at(3000))
    with pytest.raises(IdentityError, match=message):
        notes.run(source, 3000)


def test_ct_05_where_ids_are_never_given_twice_the_last_row_may_be_deleted(
    tmp_path: Path,
) -> None:
    schema = SCHEMA.replace("PRIMARY KEY", "PRIMARY KEY AUTOINCREMENT")
    with closing(Notes(tmp_path / "notes.db", schema)) as notes:
        notes.fill(5, at(-5000))
        with closing(notes.source()) as source:
            assert source.warnings() == []
            notes.settle(source, 0)
            notes.execute("DELETE FROM notes WHERE id = 5")
            assert source.is_idle(notes.position, at(3000))
            notes.execute("UPDATE sqlite_sequence SET seq = 4")
            with pytest.raises(IdentityError, match="ends at key 4, but key 5"):
                source.is_idle(notes.position, at(3000))


def test_sr_05_a_file_that_was_put_in_the_place_of_the_database_is_not_read_past(
    settled: Settled, tmp_path: Path
) -> None:
    notes, source = settled
    with closing(Notes(tmp_path / "other.db")) as other:
        other.fill(2, at(-5000))
    (tmp_path / "other.db").replace(notes.path)
    with pytest.raises(SourceError, match="was replaced by another file"):
        source.is_idle(notes.position, at(3000))
    with closing(notes.source()) as again, pytest.raises(IdentityError, match="ends at key 2"):
        again.is_idle(notes.position, at(3000))


def test_a_change_column_that_is_not_there_is_refused_with_the_closest_match(
    notes: Notes,
) -> None:
    with pytest.raises(SettingsError, match=r"no column att \(source.updated_at\) .*mean at\?"):
        StampedSource(notes.path, SPEC, Stamps("att"))


def test_a_column_without_index_works_and_is_warned_of(notes: Notes) -> None:
    notes.execute("DROP INDEX notes_at")
    notes.fill(8, at(-5000))
    with closing(notes.source()) as source:
        assert any("notes.at has no index" in warning for warning in source.warnings())
        notes.settle(source, 0)
        notes.fill(8, at(3000))
        assert set(keys(notes.run(source, 3001))) == set(range(1, 9))
        notes.settle(source, 3500)


def test_the_formats_of_a_column_are_counted(notes: Notes) -> None:
    notes.fill(3, "2024-07-27 09:00:00")
    notes.put(4, "text", 1785142800)
    notes.put(5, "text", None)
    with closing(notes.source()) as source:
        assert source.formats() == {
            "ISO 8601, blank, without zone": 3,
            "epoch seconds (INTEGER)": 1,
            "NULL": 1,
        }


@pytest.mark.parametrize(
    "ddl",
    [
        """CREATE TABLE base (name TEXT PRIMARY KEY, body TEXT, at TEXT) WITHOUT ROWID;
           CREATE INDEX base_at ON base (at);
           CREATE VIEW notes AS SELECT name AS id, body, at FROM base WHERE body <> 'hidden'""",
        """CREATE TABLE base (name TEXT PRIMARY KEY, body TEXT, at TEXT);
           CREATE INDEX base_at ON base (at);
           CREATE VIEW notes AS SELECT name AS id, body, at FROM base WHERE body <> 'hidden'""",
    ],
)
def test_sr_14_a_view_is_read_by_the_index_of_the_table_behind_it(tmp_path: Path, ddl: str) -> None:
    with closing(Notes(tmp_path / "notes.db", ddl)) as notes:
        for name in "abcdef":
            notes.execute("INSERT INTO base VALUES (?, ?, ?)", name, f"text {name}", at(-5000))
        with closing(notes.source()) as source:
            assert source.warnings() == []
            notes.settle(source, 0)
            notes.execute("UPDATE base SET body = 'new', at = ? WHERE name = 'c'", at(3000))
            (row,) = notes.run(source, 3001)
            assert (row.key, row.content) == (("c",), "new")


def test_sr_14_a_table_without_rowid_and_a_key_of_two_parts_work(tmp_path: Path) -> None:
    ddl = """CREATE TABLE notes (a TEXT, b INTEGER, body TEXT, at TEXT, PRIMARY KEY (a, b))
             WITHOUT ROWID; CREATE INDEX notes_at ON notes (at)"""
    spec = TableSpec("notes", key=("a", "b"), content="body")
    with closing(Notes(tmp_path / "notes.db", ddl)) as notes:
        for number in range(8):
            notes.execute(
                "INSERT INTO notes VALUES (?, ?, 'x', ?)", "ab"[number % 2], number, at(0)
            )
        with closing(notes.source(spec=spec)) as source:
            notes.settle(source, 10)
            notes.execute("UPDATE notes SET at = ?", at(3000))
            found = {row.key for row in notes.run(source, 3001)}
    assert found == {("ab"[number % 2], number) for number in range(8)}


def test_sr_16_keys_that_differ_in_case_alone_are_two_rows_of_one_stamp(tmp_path: Path) -> None:
    ddl = """CREATE TABLE notes (id TEXT COLLATE NOCASE, body TEXT, at TEXT);
             CREATE UNIQUE INDEX notes_id ON notes (id COLLATE BINARY);
             CREATE INDEX notes_at ON notes (at)"""
    names = {"a", "A", "b", "B", "c", "C", "d", "D"}
    with closing(Notes(tmp_path / "notes.db", ddl)) as notes:
        for name in names:
            notes.execute("INSERT INTO notes VALUES (?, ?, ?)", name, name, at(-5000))
        with closing(notes.source()) as source:
            notes.settle(source, 0)
            notes.execute("UPDATE notes SET at = ?", at(3000))
            assert {row.content for row in notes.run(source, 3001)} == names


def test_an_idle_look_is_by_index_in_key_and_change_column(settled: Settled) -> None:
    notes, source = settled
    statements: list[str] = []
    connection = source._connection  # noqa: SLF001 - what is really asked
    connection.set_trace_callback(statements.append)
    assert source.is_idle(notes.position, at(9000))
    connection.set_trace_callback(None)
    asked = [sql for sql in statements if sql.startswith("SELECT")]
    assert len(asked) > 50
    for sql in asked:
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
        assert all(step.startswith("SEARCH") for step in steps), (sql, steps)


def test_no_transaction_is_open_after_a_window(settled: Settled) -> None:
    notes, source = settled
    notes.execute("PRAGMA journal_mode = WAL")
    notes.fill(9, at(3000))
    source.read(notes.position, head=source.head(), now=at(3001))
    with closing(sqlite3.connect(notes.path)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0


def test_se_07_the_source_cannot_write(settled: Settled) -> None:
    _, source = settled
    connection = source._connection  # noqa: SLF001 - what a bug could do
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM notes")


# every schedule

LOOK_BACK = 60
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 12), st.integers(0, 9)),
        st.tuples(st.just("run"), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("pass"), st.integers(1, 90), st.just(0)),
        st.tuples(st.just("set back"), st.integers(1, LOOK_BACK - 1), st.just(0)),
    ),
    max_size=40,
)
ZONES = st.sampled_from((0, -5 * 3600, 9 * 3600))


def _stamp(clock: float, how: int) -> object:
    text = at(clock)
    epoch = 1722038400 + clock
    return (text, text[:19], text[:19].replace("T", " "), int(epoch), epoch)[how % 5]


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, how=st.integers(0, 4), mixed=st.booleans(), zone=ZONES)
def test_no_schedule_of_edits_ties_restarts_and_clock_steps_loses_a_row(
    steps: list[tuple[str, int, int]], how: int, mixed: bool, zone: int
) -> None:
    """Stamps are cut to seconds, so they tie; the clock goes back by less than a look-back."""
    with TemporaryDirectory() as folder, closing(Notes(Path(folder) / "notes.db")) as notes:
        notes.execute("PRAGMA synchronous = OFF")
        clock, number, newest = 1000.0, count(), 1000.0
        seen: dict[object, object] = {}
        source = notes.source(LOOK_BACK, rows=2)
        head = source.head()
        for step, amount, detail in steps:
            if step == "put":
                style = detail if mixed else how
                notes.put(amount, f"text {next(number)}", _stamp(clock + zone, style))
            elif step == "pass":
                clock += amount
            elif step == "set back":
                clock = max(clock - amount, newest - LOOK_BACK + 1)
            else:
                for _ in range(amount):  # windows; the run may be cut off here
                    window = source.read(notes.position, head=head, now=at(clock))
                    notes.position = window.next
                    seen |= {row.key[0]: row.content for row in window.rows}
                    if not window.more or detail:
                        head = source.head()
            clock += 0.3
            newest = max(newest, clock)
        for now in (clock, clock + 86_400, clock + 86_400 + 2 * LOOK_BACK):
            seen |= {row.key[0]: row.content for row in notes.run(source, now)}
        with closing(sqlite3.connect(notes.path)) as connection:
            rows = connection.execute("SELECT id, body FROM notes").fetchall()
        assert seen == dict(rows)
        last = at(clock + 86_400 + 3 * LOOK_BACK)
        assert source.is_idle(notes.position, last)
        source.close()


@pytest.mark.parametrize(
    ("change", "first", "late", "newest"),
    [("DROP INDEX notes_at", 4, 1, 3), ("CREATE INDEX notes_at ON notes (at)", 1, 3, 1)],
)
def test_a_pass_whose_index_comes_or_goes_begins_anew(
    tmp_path: Path, change: str, first: int, late: int, newest: int
) -> None:
    """How far it had got in one order says nothing of what is left in the other."""
    with closing(Notes(tmp_path / "notes.db")) as notes:
        notes.fill(4, at(-5000))
        if change.startswith("CREATE"):
            notes.execute("DROP INDEX notes_at")
        with closing(notes.source()) as source:
            notes.settle(source, 0)
            notes.put(4, "new", at(990))
            notes.put(newest, "newest", at(1000))
            notes.run(source, 1001)
        notes.put(late, "stamped late", at(995))
        with closing(notes.source(rows=1)) as source:  # the pass after which all that is settled
            window = source.read(notes.position, head=source.head(), now=at(1130))
            notes.position = window.next
            assert [row.key for row in window.rows] == [(first,)]
        notes.execute(change)
        with closing(notes.source(rows=1)) as source:
            assert (late,) in [row.key for row in notes.run(source, 1131)]


def test_deletes_are_counted_as_the_pass_will_find_them_after_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    with closing(Notes(tmp_path / "notes.db")) as notes:
        notes.fill(4, at(-5000))
        spec = replace(SPEC, deleted="gone = 1")
        with closing(notes.source(look_back=10, spec=spec)) as source:
            notes.put(9, "newer", at(900))
            notes.settle(source, 1000)
            notes.settle(source, 2000)
            notes.execute("UPDATE notes SET gone = 1, at = ? WHERE id < 5", at(495))
            gone = source.gone(notes.position, head=source.head(), now=at(500))
            assert sorted(key for page in gone for key in page) == [(1,), (2,), (3,), (4,)]
