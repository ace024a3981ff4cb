"""A report that keeps metrics beside, and writes them to a file when the run has ended."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable
from pathlib import Path

import syncer
from syncer.cli import facts
from syncer.cli.relay import Relay
from syncer.cli.report import Report
from syncer.errors import ExitCode, SyncerError
from syncer.result import SyncResult
from syncer.settings import Settings
from syncer.telemetry import textfile
from syncer.telemetry.metrics import Metrics
from syncer.telemetry.runs import Runs

_ENDED_WELL = frozenset({ExitCode.OK, ExitCode.QUARANTINED, ExitCode.WITHHELD})


class TextfileReport(Relay):
    """Hands everything on to `report`; a run that ends, however, leaves its metrics behind.

    A run that is `whole` brings in everything that is committed. One that is not, a comparison for
    example, says where things stand; whether all is well it tells only by failing.
    """

    def __init__(self, report: Report, settings: Settings, path: Path, *, whole: bool) -> None:
        super().__init__(report)
        self._path, self._whole = path, whole
        self._caught_up = True
        self._end: Callable[[], None] = lambda: self._metrics.failed(SyncerError())
        self._metrics = Metrics(lambda: facts.gather(settings), info(settings), of_process=False)

    def uncounted(self, generation: str, points: int) -> None:
        """Count them."""
        self._metrics.uncounted = points
        self._report.uncounted(generation, points)

    def window(self, result: SyncResult) -> None:
        """Count the window."""
        self._metrics.window(result)
        self._report.window(result)

    def retrying(self, error: SyncerError) -> None:
        """Count it."""
        self._metrics.retried(error)
        self._report.retrying(error)

    def failed(self, error: SyncerError) -> None:
        """Note that the run failed."""
        self._end = lambda: self._metrics.failed(error)
        self._report.failed(error)

    def done(self, result: SyncResult) -> None:
        """Note whether the run got to the end."""
        self._caught_up = not result.more
        self._report.done(result)

    def ended(self, code: ExitCode) -> None:
        """Note how the run ended."""
        if not self._whole:
            self._end = lambda: None
        elif code in _ENDED_WELL:
            self._end = lambda: self._metrics.succeeded(caught_up=self._caught_up)
        else:
            self._end = self._metrics.stopped
        self._report.ended(code)

    def close(self) -> None:
        """Write the file; that it cannot be written is said, but does not make the run fail."""
        self._report.close()
        try:
            with textfile.alone(self._path):
                self._write()
        except OSError as error:
            self._report.warn(
                f"metrics.textfile {self._path} cannot be written: {error.strerror}. The run "
                "itself is not affected; give syncer write access to the folder"
            )

    def _write(self) -> None:
        """Write what the file said before, and this run: other runs may have ended meanwhile."""
        before = textfile.read(self._path)
        self._metrics.runs = Runs(0.0, before.last_run, before.last_success, before.failures)
        if self._metrics.uncounted is None:
            self._metrics.uncounted = before.uncounted
        self._end()
        textfile.write(self._path, self._metrics, before)


def info(settings: Settings) -> dict[str, str]:
    """Return the labels of ``syncer_info``: kinds and versions, no names that somebody chose."""
    return {
        "version": syncer.__version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "changes": settings.source.changes,
        "provider": settings.embed.provider,
        "target": "local" if settings.target.url is None else "server",
    }
