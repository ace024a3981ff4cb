"""The daemon's parts by themselves: what is due, waiting after failures, the clock, systemd."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from syncer.daemon import Failure, Loop, Notifier, Schedule, Timer
from syncer.errors import ExitCode, SettingsError
from syncer.worker import Stop


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def never() -> bool:
    """Wake nobody."""
    return False


def stopping(stop: Stop, after: int, done: list[str], name: str = "sync") -> Callable[[], None]:
    """Return a task that notes itself, and asks to stop after so many times."""

    def task() -> None:
        done.append(name)
        if len(done) >= after:
            stop.finishing = True
            stop.ask(ExitCode.TERMINATED)

    return task


def test_what_is_due_is_done_in_the_order_in_which_it_fell_due() -> None:
    stop, done = Stop(), list[str]()
    tasks = {name: stopping(stop, 2, done, name) for name in ("sync", "verify")}
    loop = Loop(tasks, never, stop)
    loop.due("verify")
    loop.due("sync")
    loop.run()
    assert done == ["verify", "sync"]


@pytest.mark.rule("SC-01")
def test_what_is_due_twice_before_it_is_done_is_done_once_and_counted() -> None:
    stop, done, skipped = Stop(), list[str](), list[str]()
    loop = Loop({"sync": stopping(stop, 1, done)}, never, stop, skipped=skipped.append)
    for _ in range(3):
        loop.due("sync")
    loop.run()
    assert (done, skipped) == (["sync"], ["sync", "sync"])


@pytest.mark.rule("SC-01")
def test_what_falls_due_while_it_is_done_is_done_once_more_at_once() -> None:
    stop, done = Stop(), list[str]()
    again = stopping(stop, 2, done)

    def task() -> None:
        if not done:
            loop.due("sync")
        again()

    loop = Loop({"sync": task}, never, stop)
    loop.due("sync")
    loop.run()
    assert done == ["sync", "sync"]


def test_a_commit_wakes_the_first_task() -> None:
    stop, done = Stop(), list[str]()
    tasks = {"sync": stopping(stop, 1, done), "verify": stopping(stop, 1, done, "verify")}
    Loop(tasks, lambda: True, stop).run()
    assert done == ["sync"]


def test_after_a_failure_neither_a_commit_nor_the_clock_calls_until_the_wait_is_over() -> None:
    clock, skipped = Clock(), list[str]()
    tasks = {"sync": lambda: Failure(wait=30.0)}
    loop = Loop(tasks, lambda: True, Stop(), skipped=skipped.append, clock=clock)
    loop._do("sync")  # noqa: SLF001 - one step at a time, by a clock of the test's
    for now, due in ((101.0, None), (129.0, None), (130.5, "sync")):
        clock.now = now
        assert loop._next() == due  # noqa: SLF001
    clock.now = 120.0
    loop.due("sync")
    assert loop._next() is None  # noqa: SLF001
    assert skipped == ["sync"]


def test_what_is_mended_while_a_task_fails_ends_the_wait() -> None:
    clock, state = Clock(), {"column": "gone"}

    def fail() -> Failure:
        state["column"] = "back"  # somebody mends it right after the task has looked
        return Failure(wait=60.0)

    loop = Loop({"sync": fail}, never, Stop(), signs=lambda: state["column"], clock=clock)
    loop._do("sync")  # noqa: SLF001 - one step at a time, by a clock of the test's
    clock.now += 2.0
    assert loop._next() == "sync"  # noqa: SLF001


def test_the_wait_grows_and_is_forgotten_after_a_success() -> None:
    stop, clock = Stop(), Clock()
    outcome: list[Failure | None] = [*([Failure()] * 9), None, Failure()]
    left = iter(outcome)
    loop = Loop({"sync": lambda: next(left)}, never, stop, clock=clock)
    waits = []
    for _ in outcome:
        loop._do("sync")  # noqa: SLF001
        waits.append(loop._not_before.get("sync", clock.now) - clock.now)  # noqa: SLF001
    assert 0.5 <= waits[0] <= 1.0
    assert all(late >= 0.9 * early / 2 for early, late in pairwise(waits[:9]))
    assert 30.0 <= waits[8] <= 60.0
    assert waits[9] == 0.0
    assert waits[10] <= 1.0


@pytest.mark.rule("SC-02")
def test_a_moment_that_was_missed_is_made_good_once_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    due, late = list[str](), list[tuple[str, float]]()
    schedule = Schedule({"sync": Timer(0.2)}, due.append, lambda *how: late.append(how))
    schedule.start()
    try:
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 3600)  # as after an hour's sleep
        deadline = time.monotonic() + 10
        while not late and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        monkeypatch.undo()
        schedule.stop()
    assert late[0][0] == "sync"
    assert late[0][1] == pytest.approx(3600, abs=60)
    assert due


@pytest.mark.rule("SC-03")
def test_a_cron_line_goes_by_the_zone_that_is_given_utc_if_none_is() -> None:
    for zone in ("UTC", "Asia/Tokyo"):
        timers = {"verify": Timer(cron="0 3 * * *")}
        schedule = Schedule(timers, print, print, zone)
        schedule.start()
        (at,) = schedule.next_runs().values()
        schedule.stop()
        hour = (at % 86_400) / 3600
        assert hour == (3 if zone == "UTC" else 18)


@pytest.mark.parametrize("line", ["", "* * * *", "61 * * * *", "every day"])
def test_a_cron_line_that_is_none_is_refused_by_its_setting(line: str) -> None:
    with pytest.raises(SettingsError, match=r"daemon\.cron") as refused:
        Schedule({"sync": Timer(cron=line, setting="daemon.cron")}, print, print)
    assert "five fields" in str(refused.value)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "../etc/passwd", ""])
def test_a_zone_that_is_not_known_is_refused(zone: str) -> None:
    with pytest.raises(SettingsError, match=r"daemon\.timezone"):
        Schedule({}, print, print, zone)


def test_a_timer_of_nothing_is_never_due() -> None:
    schedule = Schedule({"verify": Timer()}, print, print)
    schedule.start()
    assert schedule.next_runs() == {}
    schedule.stop()


@pytest.fixture
def listening(tmp_path: Path) -> tuple[socket.socket, dict[str, str]]:
    """Stand in for systemd: a socket, and the environment that names it."""
    address = str(tmp_path / "notify")
    found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    found.bind(address)
    found.settimeout(5)
    return found, {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "90000"}


def test_systemd_hears_when_the_service_is_ready_what_it_does_and_that_it_ends(
    listening: tuple[socket.socket, dict[str, str]],
) -> None:
    found, environ = listening
    notifier = Notifier({"NOTIFY_SOCKET": environ["NOTIFY_SOCKET"]}, stuck=60)
    notifier.start()
    notifier.progress("in step")
    notifier.stop()
    with found:
        heard = [found.recv(100) for _ in range(3)]
    assert heard == [b"READY=1", b"STATUS=in step", b"STOPPING=1"]


def test_the_watchdog_hears_of_progress_and_nothing_when_there_is_none(
    listening: tuple[socket.socket, dict[str, str]],
) -> None:
    found, environ = listening
    clock = Clock()
    notifier = Notifier(environ, stuck=60, clock=clock)
    notifier.start()
    with found:
        assert found.recv(100) == b"READY=1"
        assert found.recv(100) == b"WATCHDOG=1"
        clock.now += 61
        time.sleep(0.1)  # one may have been on its way
        found.settimeout(0.01)
        with suppress(TimeoutError):
            found.recv(100)
        found.settimeout(0.5)
        with pytest.raises(TimeoutError):
            found.recv(100)
        notifier.progress()
        found.settimeout(5)
        assert found.recv(100) == b"WATCHDOG=1"
        notifier.stop()


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": "/nowhere/at/all"},
        {"WATCHDOG_USEC": "soon", "NOTIFY_SOCKET": "@nobody-listens"},
        {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": str(os.getpid() + 1)},
    ],
)
def test_where_nobody_listens_nothing_is_said_and_nothing_fails(environ: dict[str, str]) -> None:
    notifier = Notifier(environ, stuck=60)
    notifier.start()
    notifier.progress("in step")
    notifier.stop()
