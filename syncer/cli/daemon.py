"""``syncer run``: everything that the daemon needs put together."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import facts, opening
from syncer.cli.observed import ObservedReport
from syncer.cli.report import choose
from syncer.cli.serving import Answers
from syncer.cli.tasks import Load, Tasks
from syncer.cli.textfile import info
from syncer.daemon import Failure, Loop, Notifier, Schedule, Timer
from syncer.errors import (
    EmbedderError,
    ExitCode,
    RefusedError,
    SettingsError,
    SourceError,
    SyncerError,
)
from syncer.settings import Settings
from syncer.telemetry import Flood, capture_logging, capture_threads, summarise
from syncer.telemetry.history import History
from syncer.telemetry.metrics import Metrics
from syncer.worker import Stop, Stopped, stopping_on_signals

if TYPE_CHECKING:
    from syncer.cli.report import Report

SYNC, VERIFY, PRUNE, SAMPLE = "sync", "verify", "prune", "sample"
_SAMPLE_EVERY = 15.0  # seconds between two points of the charts
_OPERATOR = 60.0  # seconds until what an operator has to mend is looked at again
_FORBIDDEN = 300.0  # seconds until an endpoint that refuses the key or the model is asked again
_MARGIN = 60.0  # seconds beyond a task's own deadlines until the watchdog gives up
_LAST_RESORT = 5.0  # seconds after the deadline of a shutdown


def run(load: Load, config: Path | None) -> ExitCode:
    """Run until a signal ends it; return the exit code.

    `load` reads the settings, again whenever the file `config` has changed. Raises SettingsError
    for settings that cannot be used when it starts, and LockedError if a daemon runs already.
    """
    stop = Stop()
    with stopping_on_signals(stop):
        try:
            settings = load()
            flood = Flood()
            report = choose(settings, as_json=False, flood=flood)
            capture_logging()
            capture_threads()
            with _one_daemon(settings, report, stop):
                return _Daemon(load, settings, report, flood, config, stop).run()
        except Stopped:  # before there was anything to do
            return stop.exit_code or ExitCode.TERMINATED


@contextmanager
def _one_daemon(settings: Settings, report: Report, stop: Stop) -> Iterator[None]:
    """Hold the daemon's lock; a folder that is not there yet, as at boot, is waited for."""
    path = opening.lock_path(settings, f"{settings.target.collection}--daemon")
    what, wait = f"the daemon's lock on {settings.target.collection}", 1.0
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(lock.held(path, what))
                break
            except SourceError as error:
                report.failed(error)
                stop.sleep(wait)
                wait = min(2 * wait, _OPERATOR)
        yield


class _Daemon:
    """The tasks of the daemon, when they are due, and who hears of it."""

    def __init__(
        self,
        load: Load,
        settings: Settings,
        report: Report,
        flood: Flood,
        config: Path | None,
        stop: Stop,
    ) -> None:
        self._flood, self._stop = flood, stop
        self._facts = facts.Sparing(lambda: self._settings)
        self._metrics = Metrics(self._facts, info(settings))
        self._history = History()
        stuck = settings.embed.batch_timeout + settings.target.retry_budget + _MARGIN
        self._notifier = Notifier(os.environ, stuck)
        self._report = ObservedReport(report, self._metrics, self._notifier.progress)
        self._tasks = tasks = Tasks(load, settings, config, self._report, stop)
        self._loop = Loop(
            {
                SYNC: self._task(tasks.sync),
                VERIFY: self._task(tasks.verify),
                PRUNE: self._task(tasks.prune),
            },
            tasks.is_woken,
            stop,
            signs=tasks.signs,
            skipped=lambda _: self._metrics.skipped("busy"),
        )
        self._schedule = _schedule(settings, self._due, self._late)
        stop.on_ask = lambda: _hurry(stop, self._settings.daemon.shutdown_timeout)

    @property
    def _settings(self) -> Settings:
        return self._tasks.settings

    def run(self) -> ExitCode:
        """Work until somebody asks to stop."""
        with ExitStack() as stack:
            stack.callback(self._tasks.close)
            try:
                stack.enter_context(self._served())
                stack.callback(self._schedule.stop)
                stack.callback(self._notifier.stop)
                self._schedule.start()
                self._notifier.start()
                self._report.say(f"syncer runs for {self._settings.target.collection}")
                self._loop.due(SYNC)
                self._catch_up_on_verify()
                self._loop.run()
            except Stopped as stopped:
                self._report.say(f"stopped while waiting; {stopped}")
            code = self._stop.exit_code or ExitCode.OK
            self._report.ended(code)
            summarise(self._flood, whole=True)
            return code

    def _served(self) -> AbstractContextManager[None]:
        return Answers(
            lambda: self._settings,
            self._metrics,
            self._facts,
            self._history,
            self._report,
            self._next_runs,
        ).served()

    def _next_runs(self) -> dict[str, float]:
        return {name: at for name, at in self._schedule.next_runs().items() if name != SAMPLE}

    def _due(self, name: str) -> None:
        if name == SAMPLE:
            self._sample()
        else:
            self._loop.due(name)

    def _late(self, name: str, seconds: float) -> None:
        if name != SAMPLE:
            self._metrics.skipped("late")
            self._report.warn(f"{name} is {seconds:.0f} s late: the machine slept or was very busy")

    def _sample(self) -> None:
        """Note the lag for the charts; in the scheduler's thread, so that a long run is seen."""
        try:
            lag = self._facts().lag_seconds
        except SyncerError:
            lag = None
        self._history.sample(time.time(), lag, self._metrics.rows)
        summarise(self._flood)

    def _task(self, work: Callable[[], bool | None]) -> Callable[[], Failure | None]:
        """Return `work` as a task: what fails is told, counted, and tried again later.

        `work` returns whether all is in the target now, None if it says nothing of that.
        """

        def task() -> Failure | None:
            self._notifier.progress()
            try:
                self._tasks.reload()
                caught_up = work()
            except SyncerError as error:
                self._report.failed(error)
                self._notifier.progress(f"failed: {type(error).__name__}")
                return Failure(_wait(error))
            if caught_up is not None:
                self._metrics.succeeded(caught_up=caught_up)
                self._notifier.progress("in step" if caught_up else "stopping")
            self._tasks.watcher.forget()
            return None

        return task

    def _catch_up_on_verify(self) -> None:
        """Let both stores be compared soon if that should have happened while nothing ran.

        Not where nothing was ever written: there is nothing to compare yet.
        """
        every = self._settings.daemon.verify_interval
        if self._settings.daemon.verify_cron is not None or not every:
            return
        try:
            known = self._facts()
        except SyncerError:  # the first sync will say so
            return
        if known.last_success and time.time() - (known.last_verify or 0.0) > every:
            self._loop.due(VERIFY)


def _hurry(stop: Stop, seconds: float) -> None:
    """See to it that the process ends in so many seconds, whatever it is doing."""
    main = threading.main_thread().ident
    code = stop.exit_code or ExitCode.TERMINATED

    def interrupt() -> None:
        if main is not None:
            stop.finishing = False
            signal.pthread_kill(main, signal.SIGALRM)

    signal.signal(signal.SIGALRM, _give_up)
    for wait, act in ((seconds, interrupt), (seconds + _LAST_RESORT, lambda: os._exit(code))):
        timer = threading.Timer(wait, act)
        timer.daemon = True
        timer.start()


def _give_up(_number: int, _frame: object) -> None:
    raise Stopped("what was in flight is left to the next start")


def _wait(error: SyncerError) -> float:
    """Return how long what failed is left alone at least: nobody mends it within seconds."""
    if isinstance(error, EmbedderError) and not error.may_retry:
        return _FORBIDDEN
    return _OPERATOR if isinstance(error, (RefusedError, SettingsError)) else 0.0


def _schedule(
    settings: Settings, due: Callable[[str], None], late: Callable[[str, float], None]
) -> Schedule:
    daemon = settings.daemon
    timers = {
        SYNC: Timer(daemon.interval, daemon.cron, "daemon.cron"),
        VERIFY: Timer(daemon.verify_interval, daemon.verify_cron, "daemon.verify_cron"),
        PRUNE: Timer(daemon.prune_interval),
        SAMPLE: Timer(_SAMPLE_EVERY),
    }
    return Schedule(timers, due, late, daemon.timezone)
