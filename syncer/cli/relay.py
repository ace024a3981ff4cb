"""A report that hands everything on to another: the base of those that count what passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncer.errors import ExitCode, SyncerError
from syncer.model import Position
from syncer.result import SyncResult, VerifyResult

if TYPE_CHECKING:
    from syncer.cli.report import Report


class Relay:
    """Hands everything on to `report`; whoever counts something overrides how that is heard."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def say(self, message: str) -> None:
        """Hand it on."""
        self._report.say(message)

    def warn(self, message: str) -> None:
        """Hand it on."""
        self._report.warn(message)

    def connected(self, place: str, version: str) -> None:
        """Hand it on."""
        self._report.connected(place, version)

    def uncounted(self, generation: str, points: int) -> None:
        """Hand it on."""
        self._report.uncounted(generation, points)

    def begin(self, pending: int) -> None:
        """Hand it on."""
        self._report.begin(pending)

    def rest(self) -> None:
        """Hand it on."""
        self._report.rest()

    def window(self, result: SyncResult) -> None:
        """Hand it on."""
        self._report.window(result)

    def retrying(self, error: SyncerError) -> None:
        """Hand it on."""
        self._report.retrying(error)

    def failed(self, error: SyncerError) -> None:
        """Hand it on."""
        self._report.failed(error)

    def done(self, result: SyncResult) -> None:
        """Hand it on."""
        self._report.done(result)

    def verified(self, result: VerifyResult) -> None:
        """Hand it on."""
        self._report.verified(result)

    def stopped(self, code: ExitCode) -> None:
        """Hand it on."""
        self._report.stopped(code)

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Hand it on."""
        self._report.nothing(position, looked_at_target=looked_at_target)

    def ended(self, code: ExitCode) -> None:
        """Hand it on."""
        self._report.ended(code)

    def close(self) -> None:
        """Hand it on."""
        self._report.close()
