"""Health comes from the present state alone, and the last hour is a ring of minutes."""

from __future__ import annotations

import pytest

from syncer.telemetry import Health, History, Limits, Minute, Runs, health

LIMITS = Limits(failures=3, seconds=100)
BEGIN = Runs(started=1000.0)


@pytest.mark.rule("OP-03")
def test_health_goes_after_some_failures_in_a_row_and_comes_back_with_the_next_success() -> None:
    runs = BEGIN
    for now in (1001, 1002):
        runs = runs.failed(now, "target")
    assert health(runs, LIMITS, 1003).well
    runs = runs.failed(1003, "target")
    assert health(runs, LIMITS, 1004) == Health(well=False, why="the last 3 runs failed: target")
    assert health(runs.succeeded(1005, caught_up=True), LIMITS, 1006) == Health(well=True)


@pytest.mark.rule("OP-03")
def test_health_goes_when_the_last_success_is_too_long_ago_and_comes_back() -> None:
    runs = BEGIN.succeeded(1050, caught_up=True)
    assert health(runs, LIMITS, 1150).well
    assert health(runs, LIMITS, 1151).why == "no run has succeeded for 101 s"
    assert health(runs.succeeded(1152, caught_up=False), LIMITS, 1153).well


def test_before_the_first_success_time_counts_from_the_start() -> None:
    assert health(BEGIN, LIMITS, 1100).well
    assert not health(BEGIN, LIMITS, 1101).well
    assert health(BEGIN, Limits(failures=3, seconds=0), 10**9).well


def test_ready_is_what_has_caught_up_once() -> None:
    assert not BEGIN.succeeded(1, caught_up=False).caught_up
    assert BEGIN.succeeded(1, caught_up=True).failed(2, "source").caught_up


def test_a_stopped_run_is_neither_a_success_nor_a_failure() -> None:
    runs = BEGIN.failed(1001, "target").stopped(1002)
    assert (runs.failures, runs.last_run, runs.last_success) == (1, 1002, None)


def test_a_minute_has_the_last_lag_and_the_sum_of_its_rows() -> None:
    history = History()
    history.sample(600, 1.0, 10)
    history.sample(659, 2.0, 15)
    history.sample(660, None, 16)
    assert history.minutes(660)[-3:] == (None, Minute(10, 2.0, 15), Minute(11, None, 1))


def test_the_history_is_an_hour_with_gaps_where_nobody_looked() -> None:
    history = History()
    history.sample(0, 1.0, 0)
    for minute in range(1, 200, 2):
        history.sample(minute * 60, 0.0, minute)
    minutes = history.minutes(199 * 60)
    assert len(minutes) == 60
    assert [one.number if one else None for one in minutes[-4:]] == [None, 197, None, 199]


def test_a_clock_that_is_put_back_does_not_stop_the_history() -> None:
    history = History()
    history.sample(6000, 1.0, 5)
    history.sample(600, 2.0, 7)
    assert history.minutes(600)[-1] == Minute(10, 2.0, 7)
