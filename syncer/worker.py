"""When to call ``sync_once``: again and again until a run has caught up, or is asked to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from types import FrameType

from syncer.errors import ExitCode
from syncer.guard import Limit, too_many_gone, too_many_missing
from syncer.keys import Key, decode_key
from syncer.model import Position
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.sync import look_again, preview_once, sync_once
from syncer.write import seal

_EXIT_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}


class Stopped(KeyboardInterrupt):
    """Somebody asked to stop, and no window is in flight that should be finished first.

    Like its parent it is no Exception, so that no library takes it for an error of its own.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else "nothing was in flight"


@dataclass(slots=True)
class Stop:
    """A wish to stop after the window in flight; also a sleep that such a wish ends."""

    exit_code: ExitCode | None = None
    finishing: bool = False  # whether a window is in flight that should be finished first
    on_ask: Callable[[], None] = lambda: None  # called once, when somebody asks

    @property
    def asked(self) -> bool:
        """Whether somebody asked to stop."""
        return self.exit_code is not None

    def ask(self, exit_code: ExitCode) -> None:
        """Ask to stop; the first wish decides the exit code.

        Raises Stopped where the program is, be it in a wait for a lock or while a model loads,
        unless it is finishing a window.
        """
        if self.exit_code is None:
            self.exit_code = exit_code
            self.on_ask()
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


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a run works: how to tell the time, when to stop, and what it may delete."""

    now: Callable[[], str]
    stop: Stop
    limit: Limit | None = field(default_factory=Limit)  # None: whoever calls judges the deletes
    page: int = 500  # rows that are looked at again at a time


def catch_up(
    pipeline: Pipeline, terms: Terms, *, head: int, report: Callable[[SyncResult], None]
) -> SyncResult:
    """Sync window after window up to `head` of the change log; return the sum of the results.

    Quarantined rows whose time has come are tried again, and where both stores are to be compared
    that follows. Deletes are withheld if there are too many. Ends early, between two windows, when
    a stop is asked for; `more` is then true. Raises Stopped when it is asked for while a window
    waits to be tried again.
    """
    now, stop = terms.now, terms.stop
    with stop.finishing_windows():
        position = pipeline.retry(pipeline.state.position)
        withhold = too_many_gone(pipeline, position, terms.limit, head=head, now=now())
        guarded = replace(pipeline, withhold=withhold)
        total = sync_once(guarded, head=head, now=now())
        report(total)
        steps = chain(
            _windows(guarded, head, now, lambda: total.more),
            look_at(guarded, pipeline.retry(pipeline.state.due, now()), terms),
            _comparison(pipeline, terms),
        )
        while not stop.asked and (result := next(steps, None)) is not None:
            report(result)
            total = total.plus(result)
        if total.wrote:
            seal(pipeline)
    return replace(total, more=total.more or stop.asked)


def look_at(pipeline: Pipeline, keys: Sequence[Key], terms: Terms) -> Iterator[SyncResult]:
    """Bring the rows with these keys into the target as they are now, page by page."""
    for start in range(0, len(keys), terms.page):
        yield look_again(pipeline, keys[start : start + terms.page], terms.now())


def _windows(
    pipeline: Pipeline, head: int, now: Callable[[], str], more: Callable[[], bool]
) -> Iterator[SyncResult]:
    while more():
        yield sync_once(pipeline, head=head, now=now())


def _comparison(pipeline: Pipeline, terms: Terms) -> Iterator[SyncResult]:
    """Look at every row that the target holds, if the state says that it has to be.

    The walk has brought in what the source has; this takes out what it has not.
    """
    if not pipeline.retry(pipeline.state.reconciling):
        return
    withhold = too_many_missing(pipeline, terms.limit, now=terms.now())
    guarded = replace(pipeline, withhold=withhold)
    for rows in pipeline.row_pages():
        yield from look_at(guarded, [decode_key(row) for row in rows], terms)
    pipeline.retry(pipeline.state.reconciled)


def preview(
    pipeline: Pipeline, position: Position, *, head: int, now: Callable[[], str]
) -> SyncResult:
    """Return what ``catch_up`` would do from `position`; nothing is embedded or written."""
    total = preview_once(pipeline, position, head=head, now=now())
    while total.more:
        total = total.plus(preview_once(pipeline, total.position, head=head, now=now()))
    return total
