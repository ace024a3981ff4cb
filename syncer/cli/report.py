"""What a run shows: a progress bar and a sentence on a terminal, JSON lines otherwise."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Protocol, TextIO

from syncer.errors import SyncerError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from syncer.model import SyncResult
    from syncer.settings import Settings


class Report(Protocol):
    """Where a run says what it does."""

    def warn(self, message: str) -> None:
        """Say that something is risky, but stops nothing."""

    def begin(self, pending: int) -> None:
        """Say that a run begins that has `pending` rows to look at."""

    def window(self, result: SyncResult) -> None:
        """Say that one window is done."""

    def retrying(self) -> None:
        """Say that something is tried again."""

    def done(self, result: SyncResult) -> None:
        """Say what the whole run did."""

    def nothing(self, generation: str, *, looked_at_target: bool) -> None:
        """Say that there was nothing to do."""


def interactive(stream: TextIO | None = None) -> bool:
    """Say whether a person is looking: stderr is a terminal."""
    return (stream or sys.stderr).isatty()


def choose(settings: Settings, *, as_json: bool) -> Report:
    """Return the report that fits the settings and the terminal."""
    style = settings.log.format
    if not as_json and (style == "console" or (style == "auto" and interactive())):
        return TerminalReport()
    return LogReport(settings.log.level)


class TerminalReport:
    """A progress bar with rate and time left on stderr, the result in words on stdout."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def warn(self, message: str) -> None:
        """Say it on stderr."""
        print(f"syncer: warning: {message}", file=sys.stderr)  # noqa: T201

    def begin(self, pending: int) -> None:
        """Show the bar, if somebody is looking."""
        if not interactive():
            return
        self._progress = _progress_bar()
        self._task = self._progress.add_task("syncing", total=pending or None)
        self._progress.start()

    def window(self, result: SyncResult) -> None:
        """Move the bar on."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, result.read)

    def retrying(self) -> None:
        """Say it on stderr."""
        print("syncer: no answer, trying again", file=sys.stderr)  # noqa: T201

    def done(self, result: SyncResult) -> None:
        """Take the bar away and print what was done."""
        if self._progress is not None:
            self._progress.stop()
        print(in_words(result))  # noqa: T201

    def nothing(self, generation: str, *, looked_at_target: bool) -> None:
        """Print that there was nothing to do."""
        seen = "the target was looked at" if looked_at_target else "the target was not asked"
        print(f"nothing to do: {generation} is up to date ({seen})")  # noqa: T201


class LogReport:
    """JSON lines on stderr."""

    def __init__(self, level: str) -> None:
        from syncer import telemetry

        telemetry.configure(as_json=True, level=level)
        self._telemetry = telemetry

    def warn(self, message: str) -> None:
        """Log the warning."""
        self._telemetry.warn(message)

    def begin(self, pending: int) -> None:
        """Say nothing; the windows will."""

    def window(self, result: SyncResult) -> None:
        """Log the window."""
        self._telemetry.window_done(result)

    def retrying(self) -> None:
        """Log that something is tried again."""
        self._telemetry.retrying()

    def done(self, result: SyncResult) -> None:
        """Log the sum."""
        self._telemetry.run_done(result)

    def nothing(self, generation: str, *, looked_at_target: bool) -> None:
        """Log that there was nothing to do."""
        self._telemetry.nothing_to_do(generation, looked_at_target=looked_at_target)


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
    if result.truncated:
        lines.append(
            f"{len(result.truncated)} texts were longer than the model's limit and were cut: "
            f"{_some(list(result.truncated))}"
        )
    lines += [f"row {item.row} is quarantined: {item.detail}" for item in result.quarantined]
    if result.more:
        lines.append("stopped before the end; the next run goes on from here")
    return "\n".join(lines)


def as_json(result: SyncResult) -> str:
    """Return what a run did, as one JSON object."""
    from syncer import telemetry

    position = {"last_id": result.position.last_id, "change_seq": result.position.change_seq}
    return json.dumps({**telemetry.counts(result), **position, "caught_up": not result.more})


def show_error(error: SyncerError, *, as_json: bool) -> None:
    """Print an error: one message with its cause and the next action, on stderr."""
    if as_json:
        record = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
        print(json.dumps({**record, "exit_code": int(error.exit_code)}))  # noqa: T201
        return
    print(f"syncer: {error.message}", file=sys.stderr)  # noqa: T201
    if error.hint:
        print(f"        {error.hint}", file=sys.stderr)  # noqa: T201


def colours() -> bool:
    """Say whether to use colours: on a terminal, unless ``NO_COLOR`` is set."""
    return interactive() and not os.environ.get("NO_COLOR")


def _some(rows: list[str], most: int = 5) -> str:
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return "rows " + ", ".join(rows[:most]) + more


def _progress_bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Rows a second."""

        def render(self, task: Task) -> Text:
            """Return the rate, or nothing before there is one."""
            return Text(f"{task.speed:.0f} rows/s" if task.speed else "")

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, no_color=not colours()),
        transient=True,
    )
