"""What a run shows to a person: a progress bar, and sentences."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from syncer.cli import endings, synced, verified
from syncer.errors import ExitCode, SyncerError
from syncer.model import Position
from syncer.redaction import without_secrets
from syncer.result import SyncResult, VerifyResult

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def interactive(stream: TextIO | None = None) -> bool:
    """Say whether a person is looking: stderr is a terminal."""
    return (stream or sys.stderr).isatty()


def colours() -> bool:
    """Say whether to use colours: on a terminal, unless ``NO_COLOR`` is set."""
    return interactive() and not os.environ.get("NO_COLOR")


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
            self.warn(synced.uncounted(generation, points))

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
        endings.show_error(error, as_json=False)

    def done(self, result: SyncResult) -> None:
        """Take the bar away and print what was done."""
        self.close()
        print(synced.in_words(result))  # noqa: T201

    def verified(self, result: VerifyResult) -> None:
        """Print it as a table."""
        print(verified.in_words(result))  # noqa: T201

    def stopped(self, code: ExitCode) -> None:
        """Take the bar away and say it on stderr."""
        self.close()
        print(f"syncer: {endings.stopped(code)}", file=sys.stderr)  # noqa: T201

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
