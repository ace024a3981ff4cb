"""When to call ``sync_once``: again and again until a run has caught up, or is asked to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import FrameType

from syncer.errors import ExitCode
from syncer.model import Position, SyncResult
from syncer.ports import Pipeline
from syncer.sync import preview_once, sync_once

_EXIT_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}


class Stopped(KeyboardInterrupt):
    """Somebody asked to stop, and no window is in flight that should be finished first.

    Like its parent it is no Exception, so that no library takes it for an error of its own.
    """


@dataclass(slots=True)
class Stop:
    """A wish to stop after the window in flight; also a sleep that such a wish ends."""

    exit_code: ExitCode | None = None
    finishing: bool = False  # whether a window is in flight that should be finished first

    @property
    def asked(self) -> bool:
        """Whether somebody asked to stop."""
        return self.exit_code is not None

    def ask(self, exit_code: ExitCode) -> None:
        """Ask to stop; the first wish decides the exit code.

        Raises Stopped where the program is, be it in a wait for a lock or while a model loads,
        unless it is finishing a window.
        """
        self.exit_code = self.exit_code or exit_code
        if not self.finishing:
            raise Stopped

    def sleep(self, seconds: float) -> None:
        """Sleep before another try; raise Stopped, instead of trying, if somebody asks to stop.

        A window that waits for an answer is not finished, but left to the next run.
        """
        with self._finishing(now=False):
            if self.asked:
                raise Stopped
            time.sleep(seconds)

    def finishing_windows(self) -> AbstractContextManager[None]:
        """While the block runs, a wish to stop raises nothing: the block looks at ``asked``."""
        return self._finishing(now=True)

    @contextmanager
    def _finishing(self, *, now: bool) -> Iterator[None]:
        before, self.finishing = self.finishing, now
        try:
            yield
        finally:
            self.finishing = before


@contextmanager
def stopping_on_signals(stop: Stop) -> Iterator[None]:
    """Turn SIGINT and SIGTERM into a wish to stop; a second one ends the process at once."""

    def ask(number: int, _frame: FrameType | None) -> None:
        for each in _EXIT_CODES:
            signal.signal(each, signal.SIG_DFL)
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
    Raises Stopped when it is asked for while a window waits to be tried again.
    """
    with stop.finishing_windows():
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
