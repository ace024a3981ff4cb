"""What a run shows: a progress bar and a sentence on a terminal, JSON lines otherwise."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from syncer.errors import ExitCode, SyncerError
from syncer.model import Position
from syncer.redaction import without_secrets
from syncer.result import Sample, SyncResult, VerifyResult

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

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


def interactive(stream: TextIO | None = None) -> bool:
    """Say whether a person is looking: stderr is a terminal."""
    return (stream or sys.stderr).isatty()


def choose(settings: Settings, *, as_json: bool, flood: Flood | None = None) -> Report:
    """Return the report that fits the settings and the terminal; `flood` bounds a log's lines."""
    style = settings.log.format
    if not as_json and (style == "console" or (style == "auto" and interactive())):
        return TerminalReport()
    kind = JsonReport if as_json else LogReport
    return kind(settings.log.level, secrets_of(settings), flood)


def with_textfile(report: Report, settings: Settings) -> Report:
    """Return a report that keeps metrics as well, where the settings name a file for them."""
    if settings.metrics.textfile is None:
        return report
    from syncer.cli.textfile import TextfileReport  # and with it prometheus-client

    return TextfileReport(report, settings, settings.metrics.textfile)


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Return the values that nobody may see, wherever they turn up."""
    keys = (settings.target.api_key, settings.embed.api_key)
    return tuple(key.get_secret_value() for key in keys if key is not None)


class TerminalReport:
    """A progress bar with rate and time left on stderr, the result in words on stdout."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def say(self, message: str) -> None:
        """Say it on stderr, above the bar."""
        if self._progress is not None:
            self._progress.console.print(message, highlight=False)
        else:
            print(message, file=sys.stderr)  # noqa: T201

    def warn(self, message: str) -> None:
        """Say it on stderr."""
        print(f"syncer: warning: {without_secrets(message)}", file=sys.stderr)  # noqa: T201

    def connected(self, place: str, version: str) -> None:
        """Say nothing; ``doctor`` does."""

    def uncounted(self, generation: str, points: int) -> None:
        """Warn of them."""
        if points:
            self.warn(uncounted(generation, points))

    def begin(self, pending: int) -> None:
        """Show the bar, if somebody is looking."""
        if not interactive():
            return
        from syncer.cli.progress import progress_bar

        self._progress = progress_bar(no_colour=not colours())
        self._task = self._progress.add_task("syncing", total=pending or None)
        self._progress.start()

    def rest(self) -> None:
        """Take the bar away."""
        self.close()

    def window(self, result: SyncResult) -> None:
        """Move the bar on."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, result.read)

    def retrying(self, error: SyncerError) -> None:
        """Say it on stderr."""
        print(f"syncer: trying again: {without_secrets(error.message)}", file=sys.stderr)  # noqa: T201

    def failed(self, error: SyncerError) -> None:
        """Take the bar away and say it on stderr."""
        self.close()
        show_error(error, as_json=False)

    def done(self, result: SyncResult) -> None:
        """Take the bar away and print what was done."""
        self.close()
        print(in_words(result))  # noqa: T201

    def verified(self, result: VerifyResult) -> None:
        """Print it as a table."""
        from syncer.cli.verified import in_words as table

        print(table(result))  # noqa: T201

    def stopped(self, code: ExitCode) -> None:
        """Take the bar away and say it on stderr."""
        self.close()
        print(f"syncer: {_stopped(code)}", file=sys.stderr)  # noqa: T201

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Print that there was nothing to do."""
        seen = "the target was looked at" if looked_at_target else "the target was not asked"
        print(f"nothing to do: {position.generation} is up to date ({seen})")  # noqa: T201

    def ended(self, code: ExitCode) -> None:
        """Say nothing; the process will."""

    def close(self) -> None:
        """Take the bar away; the terminal gets its cursor back."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class LogReport:
    """JSON lines on stderr."""

    def __init__(self, level: str, secrets: Sequence[str] = (), flood: Flood | None = None) -> None:
        from syncer import telemetry

        telemetry.configure(as_json=True, level=level, secrets=secrets, flood=flood)
        self._telemetry = telemetry

    def say(self, message: str) -> None:
        """Log it."""
        self._telemetry.said(message)

    def warn(self, message: str) -> None:
        """Log the warning."""
        self._telemetry.warn(message)

    def connected(self, place: str, version: str) -> None:
        """Log it."""
        self._telemetry.connected(place, version)

    def uncounted(self, generation: str, points: int) -> None:
        """Warn of them."""
        if points:
            self.warn(uncounted(generation, points))

    def begin(self, pending: int) -> None:
        """Say nothing; the windows will."""

    def rest(self) -> None:
        """Do nothing; there is no bar."""

    def window(self, result: SyncResult) -> None:
        """Log the window."""
        self._telemetry.window_done(result)

    def retrying(self, error: SyncerError) -> None:
        """Log it."""
        self._telemetry.retrying(error)

    def failed(self, error: SyncerError) -> None:
        """Log it."""
        self._telemetry.failed(error)

    def done(self, result: SyncResult) -> None:
        """Log the sum."""
        self._telemetry.run_done(result)

    def verified(self, result: VerifyResult) -> None:
        """Log it."""
        self._telemetry.verified(result)

    def stopped(self, code: ExitCode) -> None:
        """Log it."""
        self._telemetry.stopped(_stopped(code), code)

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Log that there was nothing to do."""
        self._telemetry.nothing_to_do(position.generation, looked_at_target=looked_at_target)

    def ended(self, code: ExitCode) -> None:
        """Say nothing; the process will."""

    def close(self) -> None:
        """Do nothing; every line is out."""


class JsonReport(LogReport):
    """JSON lines on stderr, and in the end one object on stdout."""

    def __init__(self, level: str, secrets: Sequence[str] = (), flood: Flood | None = None) -> None:
        super().__init__(level, secrets, flood)
        self._sum: dict[str, object] = {}
        self._verified: dict[str, object] = {}

    def done(self, result: SyncResult) -> None:
        """Log the sum and keep it."""
        super().done(result)
        self._sum = as_dict(result)

    def verified(self, result: VerifyResult) -> None:
        """Log it and keep it; of several comparisons the last one counts."""
        from syncer.cli.verified import as_dict as in_full

        super().verified(result)
        self._verified = in_full(result)

    def stopped(self, code: ExitCode) -> None:
        """Log it, and keep it as an error is printed."""
        super().stopped(code)
        self._sum = {"error": "Stopped", "message": _stopped(code), "hint": None}

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Log that there was nothing to do, and keep a sum of nothing."""
        super().nothing(position, looked_at_target=looked_at_target)
        self._sum = as_dict(SyncResult(position.generation, position))

    def failed(self, error: SyncerError) -> None:
        """Log it, and print it as an object."""
        super().failed(error)
        show_error(error, as_json=True)

    def ended(self, code: ExitCode) -> None:
        """Print what was kept, and the exit code."""
        print(json.dumps({**self._sum, **self._verified, "exit_code": int(code)}))  # noqa: T201


def uncounted(generation: str, points: int) -> str:
    """Return what is to be said of points that syncer has not counted."""
    return f"{generation} has {points} points that syncer has not counted"


def in_words(result: SyncResult) -> str:
    """Return what a run did, as one or more lines for people."""
    parts = [
        f"{number} {word}"
        for number, word in (
            (result.embedded, "embedded"),
            (result.payload_only, "with new metadata only"),
            (result.unchanged, "unchanged"),
            (result.deleted, "taken out"),
            (result.empty, "without text"),
        )
        if number
    ]
    seconds = sum(result.seconds.values())
    lines = [f"{result.read} rows read: {', '.join(parts) or 'nothing to do'} ({seconds:.1f} s)"]
    if result.reused:
        lines.append(f"{result.reused} of {result.chunks} vectors were there already")
    if result.truncated:
        lines.append(
            f"{len(result.truncated)} texts were longer than the model's limit and were cut: "
            f"{_some(result.truncated)}"
        )
    lines += [f"row {item.row} is quarantined: {item.detail}" for item in result.quarantined]
    if len(result.quarantined) > len(result.quarantined.first):
        lines.append(f"... {len(result.quarantined)} rows are quarantined in all")
    if result.withheld:
        lines.append(
            f"{result.withheld} deletes are withheld, since so many at once may be a mistake; "
            "see `syncer confirm-deletes`"
        )
    if result.more:
        lines.append("stopped before the end; the next run goes on from here")
    return "\n".join(lines)


def as_dict(result: SyncResult) -> dict[str, object]:
    """Return what a run did, for JSON."""
    from syncer import telemetry

    position = {"last_id": result.position.last_id, "change_seq": result.position.change_seq}
    return {**telemetry.counts(result), **position, "caught_up": not result.more}


def as_json(result: SyncResult) -> str:
    """Return what a dry run would do, as one JSON object."""
    return json.dumps({**as_dict(result), "exit_code": int(ExitCode.OK)})


def show_error(error: SyncerError, *, as_json: bool) -> None:
    """Print an error: one message with its cause and the next action, on stderr."""
    message, hint = without_secrets(error.message), without_secrets(error.hint or "")
    if as_json:
        record = {"error": type(error).__name__, "message": message, "hint": hint or None}
        print(json.dumps({**record, "exit_code": int(error.exit_code)}))  # noqa: T201
        return
    print(f"syncer: {message}", file=sys.stderr)  # noqa: T201
    if hint:
        print(f"        {hint}", file=sys.stderr)  # noqa: T201


def colours() -> bool:
    """Say whether to use colours: on a terminal, unless ``NO_COLOR`` is set."""
    return interactive() and not os.environ.get("NO_COLOR")


def _stopped(code: ExitCode) -> str:
    name = signal.Signals(code - 128).name  # as shells count: 128 and the signal's number
    return f"stopped by {name} while waiting; nothing is lost, the next run goes on from here"


def _some(rows: Sample[str], most: int = 5) -> str:
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return "rows " + ", ".join(rows.first[:most]) + more
