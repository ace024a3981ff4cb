"""Stamps as applications write them: read as one instant, and found by index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncer.source.candidates import Candidates
from syncer.source.order import plain_order
from syncer.source.stamps import format_of, instant_of, moment_of, text_of
from syncer.table import TableSpec

NINE = "2026-07-27T09:00:00.000000Z"


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-07-27T09:00:00Z",
        "2026-07-27 09:00:00",
        "2026-07-27T09:00:00.000",
        "2026-07-27t09:00:00z",
        " 2026-07-27T09:00:00Z ",
        "2026-07-27 09:00:00 UTC",
        "2026-07-27T18:00:00+09:00",
        "2026-07-27 18:00:00 +0900",
        "2026-07-27T04:00:00-05:00",
        "20260727T090000Z",
        1785142800,
        1785142800.0,
        "1785142800",
        1785142800000,
        "1785142800000",
        1785142800000000,
        1785142800000000000,
        "1785142800.000",
    ],
)
def test_ct_04_every_spelling_of_a_moment_is_one_instant(stamp: object) -> None:
    instant = instant_of(stamp)
    assert instant is not None
    assert text_of(instant) == NINE


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2026-07-27T09:00:00.123456Z", "2026-07-27T09:00:00.123456Z"),
        ("2026-07-27T09:00:00.1234569Z", "2026-07-27T09:00:00.123456Z"),
        (1785142800.25, "2026-07-27T09:00:00.250000Z"),
        ("1785142800.25", "2026-07-27T09:00:00.250000Z"),
        ("1785142800123.5", "2026-07-27T09:00:00.123500Z"),
        (1785142800123, "2026-07-27T09:00:00.123000Z"),
    ],
)
def test_no_digit_down_to_a_microsecond_is_lost(stamp: object, expected: str) -> None:
    instant = instant_of(stamp)
    assert instant is not None
    assert text_of(instant) == expected


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2026-07-27T09:00", "2026-07-27T09:00:59.999999Z"),
        ("2026-07-27T09", "2026-07-27T09:59:59.999999Z"),
        ("2026-07-27", "2026-07-27T23:59:59.999999Z"),
        ("20260727", "2026-07-27T23:59:59.999999Z"),
    ],
)
def test_a_coarse_stamp_stands_for_the_last_moment_that_it_names(stamp: str, expected: str) -> None:
    instant = instant_of(stamp)
    assert instant is not None
    assert text_of(instant) == expected


@pytest.mark.parametrize(
    "stamp",
    [
        None,
        b"2026-07-27",
        "",
        "yesterday",
        "27/07/2026",
        "0000-00-00 00:00:00",
        "2026-13-45",
        "2026-07-27 09:00 PM",
        "202607270900",
        "12345",
        2461248.875,  # a Julian day
        2461248,
        float("inf"),
        -1e300,
        1e300,
    ],
)
def test_what_names_no_time_is_told_apart(stamp: object) -> None:
    assert instant_of(stamp) is None


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        (None, "NULL"),
        (1785142800, "epoch seconds (INTEGER)"),
        (1785142800.5, "epoch seconds (REAL)"),
        (1785142800123, "epoch milliseconds (INTEGER)"),
        (1785142800123456, "epoch microseconds (INTEGER)"),
        (1785142800123456789, "epoch nanoseconds (INTEGER)"),
        ("1785142800", "epoch seconds (text)"),
        (2461248.875, "no time (REAL; a Julian day?)"),
        ("2026-07-27 09:00:00", "ISO 8601, blank, without zone"),
        ("2026-07-27T09:00:00Z", "ISO 8601, T, in UTC"),
        ("2026-07-27T09:00:00+09:00", "ISO 8601, T, with an offset"),
        ("2026-07-27T09:00", "ISO 8601, T, without zone, to the minute"),
        ("2026-07-27", "ISO 8601, a date"),
        ("soon", "no time (text)"),
        (b"soon", "no time (BLOB)"),
    ],
)
def test_a_format_has_a_name(stamp: object, words: str) -> None:
    assert format_of(stamp) == words


# by index


def _moments(first: str, last: str) -> st.SearchStrategy[datetime]:
    bounds = [datetime.fromisoformat(day) for day in (first, last)]
    return st.datetimes(*bounds, timezones=st.just(UTC))


MOMENTS = _moments("2025-12-30", "2026-01-03") | _moments("1971-01-01", "2100-01-01")
ORDER = plain_order(TableSpec("t"))
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
ODD = st.sampled_from(
    (None, b"", b"2026", "", "soon", "~", "1", "12.07.2026", "01/02/2026", "2026/01/01", "9 pm",
     2461041.5, 2461042, -1e300, 1e300, "0000-00-00", "\u00e9", "15000000000", "Thu, 1 Jan 2026")
)  # fmt: skip


def _spelled(moment: datetime, zone: timezone, how: int) -> object:
    """Return one of the spellings of a moment."""
    utc = moment.replace(tzinfo=None)
    epoch = moment.timestamp()
    spellings: tuple[object, ...] = (
        utc.isoformat(),
        utc.isoformat(" "),
        utc.isoformat(timespec="seconds") + "Z",
        utc.isoformat(" ", timespec="milliseconds") + "z",
        utc.isoformat(timespec="minutes"),
        utc.isoformat(" ", timespec="minutes") + "+00:00",
        utc.date().isoformat(),
        utc.strftime("%Y%m%dT%H%M%SZ"),
        utc.strftime("%Y%m%d"),
        utc.isoformat(" ", timespec="seconds") + " UTC",
        moment.astimezone(zone).isoformat(),
        moment.astimezone(zone).isoformat(" ", timespec="milliseconds"),
        moment.astimezone(zone).isoformat(timespec="minutes"),
        moment.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %z"),
        int(epoch),
        epoch,
        int(epoch * 1000),
        int(epoch * 1_000_000),
        int(epoch) * 1_000_000_000,
        str(int(epoch)),
        str(int(epoch * 1000)),
        f"{epoch:.3f}",
    )
    return spellings[how % len(spellings)]


STAMPS = ODD | st.builds(_spelled, MOMENTS, OFFSETS, st.integers(0, 21))


@pytest.fixture(scope="module", params=["", "TEXT", "DATETIME", "REAL", "TEXT COLLATE NOCASE"])
def table(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    """An empty table with an index on its change column, which has this type."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, at {request.param})")
        connection.execute("CREATE INDEX t_at ON t (at)")
        yield connection


@given(stamps=st.lists(STAMPS, max_size=12), since=MOMENTS)
@example(["2025-12-31T23:30:00-05:00"], datetime(2026, 1, 1, tzinfo=UTC))
@example(["2026-01-01 09:00:30"], datetime(2026, 1, 1, 9, tzinfo=UTC))
@example(["2026-01-01T09:00:00.5"], datetime(2026, 1, 1, 9, microsecond=499999, tzinfo=UTC))
def test_ct_04_the_ranges_of_an_index_leave_no_later_stamp_out(
    table: sqlite3.Connection, stamps: list[object], since: datetime
) -> None:
    table.execute("DELETE FROM t")
    table.executemany("INSERT INTO t (at) VALUES (?)", [(stamp,) for stamp in stamps])
    candidates = Candidates(table, "t", ORDER, "at")
    assert candidates.by_index
    instant = instant_of(since.isoformat())
    assert instant is not None
    found = [candidate.key[0] for candidate in candidates.since(instant)]
    expected = [
        key
        for key, stamp in table.execute("SELECT id, at FROM t")
        if (known := instant_of(stamp)) is None or known > instant
    ]
    assert sorted(found) == expected  # type: ignore[type-var]


@given(stamps=st.lists(STAMPS, max_size=12), since=MOMENTS | st.none())
def test_a_pass_goes_on_behind_any_row_where_it_left_off(
    table: sqlite3.Connection, stamps: list[object], since: datetime | None
) -> None:
    table.execute("DELETE FROM t")
    table.executemany("INSERT INTO t (at) VALUES (?)", [(stamp,) for stamp in stamps * 2])
    candidates = Candidates(table, "t", ORDER, "at")
    instant = None if since is None else instant_of(since.isoformat())
    everything = list(candidates.since(instant))
    for number, candidate in enumerate(everything):
        assert list(candidates.since(instant, candidate.place)) == everything[number + 1 :]


def test_every_statement_of_a_pass_is_a_search_in_the_index(table: sqlite3.Connection) -> None:
    candidates = Candidates(table, "t", ORDER, "at")
    instant = instant_of(NINE)
    statements = list(candidates.statements(instant))
    assert len(statements) > 50
    for _, sql, values in statements:
        (step,) = [row[3] for row in table.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        assert step.startswith("SEARCH t USING COVERING INDEX t_at (at"), (sql, step)


def test_without_an_index_the_table_is_scanned_once() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT)")
        candidates = Candidates(connection, "t", ORDER, "at")
        assert not candidates.by_index
        assert len(list(candidates.statements(instant_of(NINE)))) == 1


def test_an_instant_is_a_moment_in_utc() -> None:
    assert moment_of(0) == datetime(1970, 1, 1, tzinfo=UTC)
