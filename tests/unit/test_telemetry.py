"""What is logged, event by event and whole."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
import structlog

from syncer import telemetry
from syncer.errors import ExitCode, TargetUnavailableError
from syncer.model import Position, Quarantined, Reason
from syncer.result import Sample, SyncResult

POSITION = Position("memory--1", last_id="7", change_seq=12, walked=True)
RESULT = SyncResult(
    generation="memory--1",
    position=POSITION,
    read=9,
    embedded=4,
    payload_only=1,
    unchanged=2,
    deleted=1,
    empty=1,
    chunks=6,
    truncated=Sample.of(["3"]),
    quarantined=Sample.of(
        [Quarantined("5", Reason.FOREIGN_POINT, "a foreign point has this row's id")]
    ),
    seconds={"read": 0.00123, "embed": 1.23456},
)
COUNTS = {
    "read": 9,
    "embedded": 4,
    "payload_only": 1,
    "unchanged": 2,
    "deleted": 1,
    "empty": 1,
    "chunks": 6,
    "reused": 0,
    "truncated": 1,
    "quarantined": 1,
    "withheld": 0,
}

Logged = Callable[[], list[dict[str, object]]]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave structlog as it was."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def logged() -> Logged:
    """What was logged as JSON lines; every line has a time in UTC, which is taken off."""
    stream = io.StringIO()
    telemetry.configure(as_json=True, level="debug", stream=stream)

    def events() -> list[dict[str, object]]:
        found = [json.loads(line) for line in stream.getvalue().splitlines()]
        for event in found:
            assert list(event)[:3] == ["timestamp", "level", "event"]
            stamp = datetime.fromisoformat(event.pop("timestamp"))
            assert stamp.utcoffset() == timedelta(0)
        return found

    return events


def test_a_window_is_one_event_and_each_row_that_needs_a_look_one_more(logged: Logged) -> None:
    telemetry.window_done(RESULT)
    assert logged() == [
        {"level": "info", "event": "window", "generation": "memory--1", **COUNTS},
        {"level": "warning", "event": "truncated", "rows": ["3"], "count": 1},
        {
            "level": "warning",
            "event": "quarantined",
            "row": "5",
            "reason": "foreign_point",
            "detail": "a foreign point has this row's id",
        },
    ]


def test_a_window_without_such_rows_is_one_event(logged: Logged) -> None:
    telemetry.window_done(SyncResult("memory--1", POSITION))
    assert [event["event"] for event in logged()] == ["window"]


def test_no_more_than_twenty_rows_are_named(logged: Logged) -> None:
    rows = [str(number) for number in range(30)]
    quarantined = tuple(Quarantined(row, Reason.KEY_TYPE) for row in rows)
    telemetry.window_done(
        SyncResult(
            "memory--1",
            POSITION,
            truncated=Sample.of(rows),
            quarantined=Sample.of(quarantined),
        )
    )
    window, truncated, *named = logged()
    assert window["quarantined"] == window["truncated"] == truncated["count"] == 30
    assert list(truncated["rows"]) == [event["row"] for event in named] == rows[:20]  # type: ignore[call-overload]


def test_a_run_is_one_event(logged: Logged) -> None:
    telemetry.run_done(RESULT)
    assert logged() == [
        {
            "level": "info",
            "event": "run",
            "generation": "memory--1",
            "last_id": "7",
            "change_seq": 12,
            "caught_up": True,
            "seconds": {"read": 0.001, "embed": 1.235},
            **COUNTS,
        }
    ]


def test_all_else_is_one_event_each(logged: Logged) -> None:
    telemetry.warn("a risk")
    telemetry.nothing_to_do("memory--1", looked_at_target=True)
    telemetry.retrying(TargetUnavailableError("no answer"))
    telemetry.stopped("stopped by SIGTERM", ExitCode.TERMINATED)
    telemetry.failed(TargetUnavailableError("no answer", hint="Is it running?"))
    assert logged() == [
        {"level": "warning", "event": "risk", "message": "a risk"},
        {
            "level": "info",
            "event": "nothing to do",
            "generation": "memory--1",
            "looked_at_target": True,
        },
        {
            "level": "warning",
            "event": "trying again",
            "error": "TargetUnavailableError",
            "message": "no answer",
        },
        {
            "level": "warning",
            "event": "stopped",
            "message": "stopped by SIGTERM",
            "exit_code": 143,
        },
        {
            "level": "error",
            "event": "failed",
            "error": "TargetUnavailableError",
            "message": "no answer",
            "hint": "Is it running?",
            "exit_code": 6,
        },
    ]


def test_what_is_less_important_than_the_level_is_not_shown() -> None:
    stream = io.StringIO()
    telemetry.configure(as_json=True, level="warning", stream=stream)
    telemetry.run_done(RESULT)
    telemetry.retrying(TargetUnavailableError("no answer"))
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["event"] == "trying again"


def test_a_log_for_reading_has_no_colours() -> None:
    stream = io.StringIO()
    telemetry.configure(as_json=False, level="info", stream=stream)
    telemetry.nothing_to_do("memory--1", looked_at_target=False)
    (line,) = stream.getvalue().splitlines()
    assert "nothing to do" in line
    assert "generation=memory--1" in line
    assert "\x1b" not in line


def test_text_beyond_ascii_stays_readable(logged: Logged) -> None:
    stream = io.StringIO()
    telemetry.configure(as_json=True, level="info", stream=stream)
    telemetry.warn("the column größe")
    assert "größe" in stream.getvalue()


def test_what_a_run_keeps_of_its_rows_is_bounded() -> None:
    window = SyncResult("memory--1", POSITION, truncated=Sample.of(["1", "2", "3"]))
    total = window
    for _ in range(99):
        total = total.plus(window)
    assert len(total.truncated) == 300
    assert len(total.truncated.first) == 20
