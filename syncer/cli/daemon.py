"""``syncer run``: everything that the daemon needs put together, and its tasks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import facts, opening
from syncer.cli.kept import Kept
from syncer.cli.observed import ObservedReport
from syncer.cli.once import is_idle, look_at_target, target_is_due
from syncer.cli.opening import Sides
from syncer.cli.report import choose
from syncer.cli.run import everything, work_on_serving
from syncer.cli.textfile import info
from syncer.cli.wake import Watcher
from syncer.daemon import Failure, Loop, Notifier, Schedule, Timer
from syncer.errors import (
    EmbedderError,
    ExitCode,
    RecipeError,
    RefusedError,
    SettingsError,
    SyncerError,
)
from syncer.settings import Settings
from syncer.state import utc_now
from syncer.telemetry import Flood, capture_logging, capture_threads, summarise
from syncer.telemetry.history import History
from syncer.telemetry.metrics import CONTENT_TYPE, Metrics
from syncer.telemetry.runs import Health, Limits, health
from syncer.worker import Stop, Stopped, stopping_on_signals

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.web import StatusPage

SYNC, VERIFY, PRUNE, SAMPLE = "sync", "verify", "prune", "sample"
_SAMPLE_EVERY = 15.0  # seconds between two points of the charts
_OPERATOR = 60.0  # seconds until what an operator has to mend is looked at again
_FORBIDDEN = 300.0  # seconds until an endpoint that refuses the key or the model is asked again
_MARGIN = 60.0  # seconds beyond a task's own deadlines until the watchdog gives up
_LAST_RESORT = 5.0  # seconds after the deadline of a shutdown

Load = Callable[[], Settings]


def run(load: Load, config: Path | None) -> ExitCode:
    """Run until a signal ends it; return the exit code.

    `load` reads the settings, again whenever the file `config` has changed. Raises SettingsError
    for settings that cannot be used when it starts, and LockedError if a daemon runs already.
    """
    settings = load()
    flood = Flood()
    report = choose(settings, as_json=False, flood=flood)
    capture_logging()
    capture_threads()
    with _one_daemon(settings):
        return _Daemon(load, settings, report, flood, config).run()


@contextmanager
def _one_daemon(settings: Settings) -> Iterator[None]:
    path = opening.lock_path(settings, f"{settings.target.collection}--daemon")
    with lock.held(path, f"the daemon's lock on {settings.target.collection}"):
        yield


class _Daemon:
    """The tasks of the daemon, and what they share; all of it belongs to the main thread."""

    def __init__(
        self, load: Load, settings: Settings, report: Report, flood: Flood, config: Path | None
    ) -> None:
        self._load, self._config, self._flood = load, config, flood
        self._settings = settings
        self._stamp = _stamp(config)
        self._kept, self._watcher = Kept(settings), Watcher(settings)
        self._stop = Stop(on_ask=self._hurry)
        self.metrics = Metrics(lambda: facts.gather(self._settings), info(settings))
        self.history = History()
        stuck = settings.embed.batch_timeout + settings.target.retry_budget + _MARGIN
        self._notifier = Notifier(os.environ, stuck)
        self._report = ObservedReport(report, self.metrics, self._notifier.progress)
        tasks = {SYNC: self._task(self._sync), VERIFY: self._task(self._verify)}
        tasks[PRUNE] = self._task(self._prune)
        self._loop = Loop(tasks, self._watcher, self._stop, skipped=self._skipped)
        self._schedule = _schedule(settings, self._due, self._late)
        self._warned: set[str] = set()

    def run(self) -> ExitCode:
        """Work until somebody asks to stop."""
        with ExitStack() as stack:
            stack.enter_context(stopping_on_signals(self._stop))
            stack.enter_context(self._served())
            stack.callback(self._kept.close)
            stack.callback(self._watcher.close)
            stack.callback(self._schedule.stop)
            stack.callback(self._notifier.stop)
            self._schedule.start()
            self._notifier.start()
            self._report.say(f"syncer runs for {self._settings.target.collection}")
            self._loop.due(SYNC)
            try:
                self._loop.run()
            except Stopped:
                self._report.say("stopped while waiting; nothing was in flight")
            code = self._stop.exit_code or ExitCode.OK
            self._report.ended(code)
            summarise(self._flood, whole=True)
            return code

    def _due(self, name: str) -> None:
        if name == SAMPLE:
            self._sample()
        else:
            self._loop.due(name)

    def _late(self, name: str, seconds: float) -> None:
        self.metrics.skipped("late")
        self._report.warn(f"{name} is {seconds:.0f} s late: the machine slept or was very busy")

    def _skipped(self, _name: str) -> None:
        self.metrics.skipped("busy")

    def _sample(self) -> None:
        """Note the lag for the charts; in the scheduler's thread, so that a long run is seen."""
        try:
            lag = facts.gather(self._settings).lag_seconds
        except SyncerError:
            lag = None
        self.history.sample(time.time(), lag, self.metrics.rows)
        summarise(self._flood)

    def _task(self, work: Callable[[], bool | None]) -> Callable[[], Failure | None]:
        """Return `work` as a task: what fails is told, counted, and tried again later.

        `work` returns whether all is in the target now, None if it says nothing of that.
        """

        def task() -> Failure | None:
            self._notifier.progress()
            try:
                self._reload()
                caught_up = work()
            except SyncerError as error:
                self._report.failed(error)
                self._notifier.progress(f"failed: {type(error).__name__}")
                return Failure(_wait(error))
            if caught_up is not None:
                self.metrics.succeeded(caught_up=caught_up)
                self._notifier.progress("in step" if caught_up else "stopping")
            self._watcher.forget()
            return None

        return task

    def _sync(self) -> bool:
        """Bring in everything that is committed; say whether that is all."""
        with opening.opened(self._settings, to_write=True) as sides:
            self._warn(sides)
            known = opening.patiently(sides.settings, lambda: sides.store.serving(sides.alias))
            if known is not None and is_idle(sides, known):
                if target_is_due(sides, known):
                    look_at_target(sides, known, self._kept.connection())
                return True
            with self._kept.ready(sides, self._report, self._stop) as found:
                try:
                    result = work_on_serving(found, self._report, everything)
                except RecipeError as error:
                    if self._settings.daemon.on_recipe_change != "rebuild":
                        raise
                    self._report.warn(f"{error.message}; the collection is rebuilt")
                    from syncer.cli.rebuild import rebuild_on

                    result = rebuild_on(found, self._report)
        self._report.done(result)
        return not result.more

    def _verify(self) -> None:
        """Compare both stores, and mend what differs if that is asked for."""
        from syncer.cli.verify import look

        with (
            opening.opened(self._settings, to_write=True) as sides,
            self._kept.ready(sides, self._report, self._stop) as found,
        ):
            look(found, self._report, repair=self._settings.daemon.repair)

    def _prune(self) -> None:
        """Drop what nobody needs of the logs any more."""
        with opening.opened(self._settings, to_write=True) as sides:
            sides.store.prune(utc_now())

    def _warn(self, sides: Sides) -> None:
        """Say once in a daemon's life what is risky about the table."""
        for warning in sides.source.warnings():
            if warning not in self._warned:
                self._warned.add(warning)
                self._report.warn(warning)
        if sides.mended:
            self._report.warn(
                f"the change log was not whole; put back: {', '.join(sides.mended)}. Both stores "
                "are compared row by row, since changes may have gone unseen"
            )

    def _reload(self) -> None:
        """Read the settings again if their file has changed; raise SettingsError, and keep the old.

        What decides threads, addresses and times of the daemon itself is read at its start only.
        """
        stamp = _stamp(self._config)
        if stamp == self._stamp:
            return
        settings = self._load()
        self._stamp = stamp
        if settings != self._settings:
            self._report.say("the settings have changed and are used from here on")
            self._kept.close()
            self._settings, self._kept = settings, Kept(settings)
            self._watcher.use(settings)

    def _hurry(self) -> None:
        """See to it that the process ends in time, whatever it is doing."""
        main = threading.main_thread().ident
        code = self._stop.exit_code or ExitCode.TERMINATED

        def interrupt() -> None:
            if main is not None:
                self._stop.finishing = False
                signal.pthread_kill(main, signal.SIGALRM)

        signal.signal(signal.SIGALRM, _give_up)
        for seconds, act in (
            (self._settings.daemon.shutdown_timeout, interrupt),
            (self._settings.daemon.shutdown_timeout + _LAST_RESORT, lambda: os._exit(code)),
        ):
            timer = threading.Timer(seconds, act)
            timer.daemon = True
            timer.start()

    @contextmanager
    def _served(self) -> Iterator[None]:
        """Answer over HTTP while the block runs."""
        from syncer.web import Pages, listen

        settings = self._settings.metrics
        if not settings.listen:
            yield
            return
        pages = Pages(
            metrics=self.metrics.exposition,
            metrics_type=CONTENT_TYPE,
            health=self._health,
            ready=lambda: self.metrics.runs.caught_up,
            status=self._page,
        )
        server = listen(
            settings.listen,
            pages,
            port_in_use=settings.port_in_use,
            warn=self._report.warn,
        )
        try:
            if server is not None:
                self._report.say(f"metrics, health and the status page are at {server.address}")
            yield
        finally:
            if server is not None:
                server.stop()

    def _health(self) -> Health:
        metrics = self._settings.metrics
        limits = Limits(metrics.unhealthy_failures, metrics.unhealthy_seconds)
        return health(self.metrics.runs, limits, time.time())

    def _page(self) -> StatusPage:
        import syncer
        from syncer.telemetry.facts import UNKNOWN
        from syncer.web import NextRun, StatusPage

        now = time.time()
        try:
            found = facts.gather(self._settings)
        except SyncerError:
            found = UNKNOWN
        return StatusPage(
            name=self._settings.target.collection,
            version=syncer.__version__,
            now=now,
            runs=self.metrics.runs,
            health=self._health(),
            facts=found,
            minutes=self.history.minutes(now),
            next_runs=tuple(
                NextRun(name, at)
                for name, at in sorted(self._schedule.next_runs().items())
                if name != SAMPLE
            ),
            doing=self._report.doing,
        )


def _give_up(_number: int, _frame: object) -> None:
    raise Stopped


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


def _stamp(config: Path | None) -> tuple[int, int, int] | None:
    """Return what changes when a file is written anew, None if there is none."""
    try:
        found = config.stat() if config else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None
