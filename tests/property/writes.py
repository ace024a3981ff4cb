"""What an application may do to the table: values, and strategies that draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import strategies as st

FIRST_SECOND = 60  # of the clock when a schedule begins
_MIDNIGHT = datetime.fromisoformat("2030-01-01T00:00:00+00:00")

ROWS = st.integers(1, 5)
LONG_TEXTS = st.sampled_from(("abcdefgh", "abcdefgx", "a longer text now", "zzzzyyyyx"))
TEXTS = LONG_TEXTS | st.sampled_from(("a", "bb", "e\u0301te\u0301", "q"))
BLANKS = st.sampled_from(("", " ", "\n\t "))
AGENTS = st.sampled_from(("a", "b"))
SCOPES = st.sampled_from(("in", "in", "out"))
OBJECTS = st.sampled_from(("{}", '{"a":1}', '{"a":[1,{"b":null}]}', "not json"))
SECONDS = st.integers(1, 3)
SECONDS_AWAY = st.integers(-2, 4)


@dataclass(frozen=True, slots=True)
class Write:
    """One statement and its values, whatever the table; see ``Table.sql``.

    `row` and `other` are the numbers of the rows that it is about; a new row has none.
    """

    sql: str
    row: int | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    other: int | None = None


def moment(second: int) -> datetime:
    """Return the moment that is so many seconds into the schedules' day."""
    return _MIDNIGHT + timedelta(seconds=second)


def stamp(second: int) -> str:
    """Return the same as text."""
    return moment(second).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def second_of(text: str) -> int:
    """Return how many seconds into the schedules' day a moment is."""
    return (datetime.fromisoformat(text) - _MIDNIGHT) // timedelta(seconds=1)


def insert(text: str, scope: str = "in", expires_at: str | None = None) -> Write:
    """Add a row."""
    return Write(
        "INSERT INTO {table} ({columns}agent, scope, source, content, expires_at{stamp_column}) "
        "VALUES ({marks}'a', :scope, 'x', :text, :expires_at{stamp_mark})",
        values={"scope": scope, "text": text, "expires_at": expires_at},
    )


def replace_row(row: int, text: str) -> Write:
    """Put a row under a key, whatever is there."""
    return Write(
        "INSERT OR REPLACE INTO {table} ({columns}agent, scope, source, content{stamp_column}) "
        "VALUES ({marks}'a', 'in', 'x', :text{stamp_mark})",
        row,
        {"text": text},
    )


def edit(row: int, text: str) -> Write:
    """Give a row another text."""
    return Write(
        "UPDATE {table} SET content = :text{touched} WHERE {this}",
        row,
        {"text": text},
    )


def edit_or_replace(row: int, text: str) -> Write:
    """Give a row another text by UPDATE OR REPLACE, the row after it too."""
    return Write(
        "UPDATE OR REPLACE {table} SET content = :text{touched} WHERE ({this}) OR ({that})",
        row,
        {"text": text},
        row + 1,
    )


def edit_all(text: str) -> Write:
    """Give all rows one text."""
    return Write("UPDATE {table} SET content = :text{touched}", values={"text": text})


def move(row: int, other: int) -> Write:
    """Give a row the key of another."""
    return Write("UPDATE OR REPLACE {table} SET {rekeyed}{touched} WHERE {this}", row, {}, other)


def take_spot(row: int, spot: int) -> Write:
    """Put a row in a spot; whichever was there is gone."""
    return Write(
        "UPDATE OR REPLACE {table} SET {spot} = :spot{touched} WHERE {this}", row, {"spot": spot}
    )


def describe(row: int, agent: str, metadata: str) -> Write:
    """Give a row other metadata."""
    return Write(
        "UPDATE {table} SET agent = :agent, metadata = :metadata{touched} WHERE {this}",
        row,
        {"agent": agent, "metadata": metadata},
    )


def rescope(row: int, scope: str) -> Write:
    """Put a row into another scope."""
    return Write(
        "UPDATE {table} SET scope = :scope{touched} WHERE {this}",
        row,
        {"scope": scope},
    )


def rescope_all(scope: str) -> Write:
    """Put all rows into one scope."""
    return Write("UPDATE {table} SET scope = :scope{touched}", values={"scope": scope})


def delete(row: int) -> Write:
    """Delete a row."""
    return Write("DELETE FROM {table} WHERE {this}", row)


def delete_all() -> Write:
    """Delete all rows."""
    return Write("DELETE FROM {table}")


def supersede(row: int, by: int | None) -> Write:
    """Say that another row has taken a row's place, or that it has not."""
    return Write(
        "UPDATE {table} SET superseded_by = :by{touched} WHERE {this}",
        row,
        {"by": by},
    )


def mark_deleted(row: int, by: str | None) -> Write:
    """Delete a row softly, or undelete it."""
    return Write(
        "UPDATE {table} SET deleted_by = :by{touched} WHERE {this}",
        row,
        {"by": by},
    )


def mark_all_deleted(by: str | None) -> Write:
    """Delete all rows softly, or undelete them."""
    return Write("UPDATE {table} SET deleted_by = :by{touched}", values={"by": by})


def expire(row: int, at: str | None) -> Write:
    """Say when a row expires."""
    return Write(
        "UPDATE {table} SET expires_at = :at{touched} WHERE {this}",
        row,
        {"at": at},
    )


MOMENTS = st.none() | st.integers(FIRST_SECOND - 10, FIRST_SECOND + 60).map(stamp)
ANY_TEXTS = TEXTS | BLANKS
WRITES = st.one_of(
    st.builds(insert, ANY_TEXTS, SCOPES),
    st.builds(replace_row, ROWS, ANY_TEXTS),
    st.builds(edit, ROWS, ANY_TEXTS),
    st.builds(describe, ROWS, AGENTS, OBJECTS),
    st.builds(rescope, ROWS, SCOPES),
    st.builds(delete, ROWS),
    st.builds(mark_deleted, ROWS, st.sampled_from((None, "me"))),
    st.builds(expire, ROWS, MOMENTS),
)
SEVERAL = st.lists(WRITES, min_size=1, max_size=4)
