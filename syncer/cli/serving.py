"""What the daemon answers over HTTP: metrics, health, readiness and the status page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncer.errors import SyncerError
from syncer.settings import Settings
from syncer.telemetry.metrics import CONTENT_TYPE, Metrics
from syncer.telemetry.runs import Health, Limits, health

if TYPE_CHECKING:
    from syncer.cli.observed import ObservedReport
    from syncer.telemetry.facts import Facts
    from syncer.telemetry.history import History
    from syncer.web import StatusPage


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the answers come from; they are asked for in threads of the server's."""

    settings: Callable[[], Settings]
    metrics: Metrics
    facts: Callable[[], Facts]
    history: History
    report: ObservedReport
    next_runs: Callable[[], Mapping[str, float]]

    @contextmanager
    def served(self) -> Iterator[None]:
        """Answer over HTTP while the block runs."""
        from syncer.web import Pages, listen

        settings = self.settings().metrics
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
            settings.listen, pages, port_in_use=settings.port_in_use, warn=self.report.warn
        )
        try:
            if server is not None:
                self.report.say(f"metrics, health and the status page are at {server.address}")
            yield
        finally:
            if server is not None:
                server.stop()

    def _health(self) -> Health:
        metrics = self.settings().metrics
        limits = Limits(metrics.unhealthy_failures, metrics.unhealthy_seconds)
        return health(self.metrics.runs, limits, time.time())

    def _page(self) -> StatusPage:
        import syncer
        from syncer.telemetry.facts import UNKNOWN
        from syncer.web import NextRun, StatusPage

        now = time.time()
        try:
            found = self.facts()
        except SyncerError:
            found = UNKNOWN
        return StatusPage(
            name=self.settings().target.collection,
            version=syncer.__version__,
            now=now,
            runs=self.metrics.runs,
            health=self._health(),
            facts=found,
            minutes=self.history.minutes(now),
            next_runs=tuple(NextRun(name, at) for name, at in sorted(self.next_runs().items())),
            doing=self.report.doing,
        )
