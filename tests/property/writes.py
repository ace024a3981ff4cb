"""What an application may do to the table: values, and strategies that draw them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

FIRST_SECOND = 60  # of the clock when a schedule begins
_MINUTE = 60

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
    """One statement and its values."""

    sql: str
    values: tuple[object, ...] = ()


def stamp(second: int) -> str:
    """Return the moment that is so many seconds into the schedules' day."""
    minutes, seconds = divmod(second, _MINUTE)
    return f"2030-01-01T{minutes // _MINUTE:02}:{minutes % _MINUTE:02}:{seconds:02}.000Z"


def second_of(moment: str) -> int:
    """Return how many seconds into the schedules' day a moment is."""
    hours, minutes, seconds = moment[11:19].split(":")
    return (int(hours) * _MINUTE + int(minutes)) * _MINUTE + int(seconds)


def insert(text: str, scope: str = "in", expires_at: str | None = None) -> Write:
    """Add a row."""
    return Write(
        "INSERT INTO memory_events (agent, scope, source, content, expires_at) "
        "VALUES ('a', ?, 'x', ?, ?)",
        (scope, text, expires_at),
    )


def replace_row(row: int, text: str) -> Write:
    """Put a row under an id, whatever is there."""
    return Write(
        "INSERT OR REPLACE INTO memory_events (id, agent, scope, source, content) "
        "VALUES (?, 'a', 'in', 'x', ?)",
        (row, text),
    )


def edit(row: int, text: str) -> Write:
    """Give a row another text."""
    return Write("UPDATE memory_events SET content = ? WHERE id = ?", (text, row))


def edit_or_replace(row: int, text: str) -> Write:
    """Give a row another text by UPDATE OR REPLACE, the rows after it too."""
    return Write(
        "UPDATE OR REPLACE memory_events SET content = ? WHERE id BETWEEN ? AND ?",
        (text, row, row + 1),
    )


def move(row: int, other: int) -> Write:
    """Give a row the id of another."""
    return Write("UPDATE OR REPLACE memory_events SET id = ? WHERE id = ?", (other, row))


def describe(row: int, agent: str, metadata: str) -> Write:
    """Give a row other metadata."""
    return Write(
        "UPDATE memory_events SET agent = ?, metadata = ? WHERE id = ?", (agent, metadata, row)
    )


def rescope(row: int, scope: str) -> Write:
    """Put a row into another scope."""
    return Write("UPDATE memory_events SET scope = ? WHERE id = ?", (scope, row))


def delete(row: int) -> Write:
    """Delete a row."""
    return Write("DELETE FROM memory_events WHERE id = ?", (row,))


def supersede(row: int, by: int | None) -> Write:
    """Say that another row has taken a row's place, or that it has not."""
    return Write("UPDATE memory_events SET superseded_by = ? WHERE id = ?", (by, row))


def mark_deleted(row: int, by: str | None) -> Write:
    """Delete a row softly, or undelete it."""
    return Write("UPDATE memory_events SET deleted_by = ? WHERE id = ?", (by, row))


def expire(row: int, at: str | None) -> Write:
    """Say when a row expires."""
    return Write("UPDATE memory_events SET expires_at = ? WHERE id = ?", (at, row))


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
