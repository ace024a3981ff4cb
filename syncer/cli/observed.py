"""The daemon's report: everything goes to the log, is counted, and tells that the work goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from syncer.cli.relay import Relay
from syncer.errors import SyncerError
from syncer.model import Position
from syncer.result import SyncResult

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.telemetry.metrics import Metrics


class ObservedReport(Relay):
    """Hands everything on to `report`, counts it, and calls `alive` for every sign of progress."""

    def __init__(self, report: Report, metrics: Metrics, alive: Callable[[], None]) -> None:
        super().__init__(report)
        self._metrics, self._alive = metrics, alive
        self.doing = ""
        """What is under way, in words."""

    def say(self, message: str) -> None:
        """Hand it on; it is what is under way."""
        self.doing = message
        self._report.say(message)

    def uncounted(self, generation: str, points: int) -> None:
        """Count them."""
        self._metrics.uncounted = points
        self._report.uncounted(generation, points)

    def begin(self, pending: int) -> None:
        """Note how much there is to do; a daemon shows no bar."""
        self.doing = f"syncing {pending} rows" if pending > 1 else ""
        self._alive()

    def rest(self) -> None:
        """Do nothing; a daemon shows no bar."""

    def window(self, result: SyncResult) -> None:
        """Count the window."""
        self._alive()
        self._metrics.window(result)
        if result.read:
            self._report.window(result)

    def retrying(self, error: SyncerError) -> None:
        """Count it."""
        self._alive()
        self._metrics.retried(error)
        self._report.retrying(error)

    def failed(self, error: SyncerError) -> None:
        """Count it."""
        self.doing = ""
        self._metrics.failed(error)
        self._report.failed(error)

    def done(self, result: SyncResult) -> None:
        """Hand it on if anything was done."""
        self.doing = ""
        if result.read:
            self._report.done(result)

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Say nothing: most ticks find nothing to do."""
