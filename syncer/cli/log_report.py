"""What a run tells programs: a log of JSON lines, and in the end one object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncer.cli import endings, synced, verified
from syncer.errors import ExitCode, SyncerError
from syncer.model import Position
from syncer.result import SyncResult, VerifyResult

if TYPE_CHECKING:
    from syncer.telemetry import Flood


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
            self.warn(synced.uncounted(generation, points))

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
        self._telemetry.stopped(endings.stopped(code), code)

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
        self._sum = synced.as_dict(result)

    def verified(self, result: VerifyResult) -> None:
        """Log it and keep it; of several comparisons the last one counts."""
        super().verified(result)
        self._verified = verified.as_dict(result)

    def stopped(self, code: ExitCode) -> None:
        """Log it, and keep it as an error is printed."""
        super().stopped(code)
        self._sum = {"error": "Stopped", "message": endings.stopped(code), "hint": None}

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Log that there was nothing to do, and keep a sum of nothing."""
        super().nothing(position, looked_at_target=looked_at_target)
        self._sum = synced.as_dict(SyncResult(position.generation, position))

    def failed(self, error: SyncerError) -> None:
        """Log it, and print it as an object."""
        super().failed(error)
        endings.show_error(error, as_json=True)

    def ended(self, code: ExitCode) -> None:
        """Print what was kept, and the exit code."""
        print(json.dumps({**self._sum, **self._verified, "exit_code": int(code)}))  # noqa: T201
