"""When to call ``sync_once``: again and again until a run has caught up, or is asked to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from syncer.errors import ExitCode
from syncer.model import Position, SyncResult
from syncer.ports import Pipeline
from syncer.sync import preview_once, sync_once

_EXIT_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}


@dataclass(slots=True)
class Stop:
    """A wish to stop after the window in flight; also a sleep that such a wish cuts short."""

    exit_code: ExitCode | None = None
    _asked: threading.Event = field(default_factory=threading.Event)

    @property
    def asked(self) -> bool:
        """Whether somebody asked to stop."""
        return self._asked.is_set()

    def ask(self, exit_code: ExitCode) -> None:
        """Ask to stop; the first wish decides the exit code."""
        self.exit_code = self.exit_code or exit_code
        self._asked.set()

    def sleep(self, seconds: float) -> None:
        """Sleep, but not longer than until somebody asks to stop."""
        self._asked.wait(seconds)


@contextmanager
def stopping_on_signals(stop: Stop) -> Iterator[None]:
    """Turn SIGINT and SIGTERM into a wish to stop; a second one ends the process at once."""

    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.asked:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.ask(_EXIT_CODES[signal.Signals(number)])

    before = {number: signal.signal(number, ask) for number in _EXIT_CODES}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def catch_up(
    pipeline: Pipeline,
    *,
    head: int,
    now: Callable[[], str],
    stop: Stop,
    report: Callable[[SyncResult], None],
) -> SyncResult:
    """Sync window after window up to `head` of the change log; return the sum of the results.

    Ends early, between two windows, when a stop is asked for; `more` is then true.
    """
    total = sync_once(pipeline, head=head, now=now())
    report(total)
    while total.more and not stop.asked:
        result = sync_once(pipeline, head=head, now=now())
        report(result)
        total = total.plus(result)
    return total


def preview(
    pipeline: Pipeline, position: Position, *, head: int, now: Callable[[], str]
) -> SyncResult:
    """Return what ``catch_up`` would do from `position`; nothing is embedded or written."""
    total = preview_once(pipeline, position, head=head, now=now())
    while total.more:
        total = total.plus(preview_once(pipeline, total.position, head=head, now=now()))
    return total
