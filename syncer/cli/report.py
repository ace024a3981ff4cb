"""What a run is heard by, and which report fits: the terminal's, or one that writes JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from syncer.cli.log_report import JsonReport, LogReport
from syncer.cli.terminal_report import TerminalReport, interactive
from syncer.errors import ExitCode, SyncerError
from syncer.model import Position
from syncer.result import SyncResult, VerifyResult

if TYPE_CHECKING:
    from syncer.settings import Settings
    from syncer.telemetry import Flood


class Report(Protocol):
    """Where a run says what it does."""

    def say(self, message: str) -> None:
        """Say what a long run is about to do, or has done."""

    def warn(self, message: str) -> None:
        """Say that something is risky, but stops nothing."""

    def connected(self, place: str, version: str) -> None:
        """Say which server answers, and which version it is."""

    def uncounted(self, generation: str, points: int) -> None:
        """Hear how many points a generation has that syncer has not counted; 0 is well."""

    def begin(self, pending: int) -> None:
        """Say that a run begins that has `pending` rows to look at."""

    def rest(self) -> None:
        """Show no bar for now: what comes next has one of its own."""

    def window(self, result: SyncResult) -> None:
        """Say that one window is done."""

    def retrying(self, error: SyncerError) -> None:
        """Say that something is tried again, and why."""

    def failed(self, error: SyncerError) -> None:
        """Say why the run ends here."""

    def done(self, result: SyncResult) -> None:
        """Say what the whole run did."""

    def verified(self, result: VerifyResult) -> None:
        """Say what a comparison of both stores found."""

    def stopped(self, code: ExitCode) -> None:
        """Say that the run was stopped by a signal while it waited."""

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Say that there was nothing to do."""

    def ended(self, code: ExitCode) -> None:
        """Hear that the run ends with `code`; the last thing unless it fails."""

    def close(self) -> None:
        """Take away what is still shown, however the run ended."""


def choose(settings: Settings, *, as_json: bool, flood: Flood | None = None) -> Report:
    """Return the report that fits the settings and the terminal; `flood` bounds a log's lines."""
    style = settings.log.format
    if not as_json and (style == "console" or (style == "auto" and interactive())):
        return TerminalReport()
    kind = JsonReport if as_json else LogReport
    return kind(settings.log.level, secrets_of(settings), flood)


def with_textfile(report: Report, settings: Settings, *, whole: bool = False) -> Report:
    """Return a report that keeps metrics as well, where the settings name a file for them.

    A `whole` run is one that brings in everything that is committed.
    """
    if settings.metrics.textfile is None:
        return report
    from syncer.cli.textfile import TextfileReport  # and with it prometheus-client

    return TextfileReport(report, settings, settings.metrics.textfile, whole=whole)


def of_run(settings: Settings, *, as_json: bool, whole: bool = False) -> Report:
    """Return the report of a one-shot run; see ``choose`` and ``with_textfile``."""
    return with_textfile(choose(settings, as_json=as_json), settings, whole=whole)


def leave_figures(settings: Settings) -> None:
    """Let the file for metrics, where there is one, say how things stand now."""
    report = of_run(settings, as_json=False)
    report.ended(ExitCode.OK)
    report.close()


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Return the values that nobody may see, wherever they turn up."""
    keys = (settings.target.api_key, settings.embed.api_key)
    return tuple(key.get_secret_value() for key in keys if key is not None)
