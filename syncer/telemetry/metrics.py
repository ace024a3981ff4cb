"""Every instrument, in a registry of its own; made from results, errors and facts.

No label holds a text, a path, a key or an id.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from syncer.errors import ExitCode, SyncerError
from syncer.result import SyncResult
from syncer.telemetry.facts import Facts
from syncer.telemetry.runs import Runs

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

OPERATIONS = ("embedded", "payload_only", "unchanged", "deleted", "empty", "quarantined")
STAGES = ("read", "plan", "embed", "write", "advance")
DRIFT = ("missing", "stale", "orphan", "foreign", "incomplete", "no_vector", "wrong_vector")
SKIPPED = ("busy", "late")
_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300)  # seconds
_KINDS = {
    ExitCode.BUG: "bug",
    ExitCode.USAGE: "settings",
    ExitCode.REFUSED: "refused",
    ExitCode.SOURCE: "source",
    ExitCode.TARGET: "target",
    ExitCode.EMBEDDER: "embedder",
    ExitCode.LOCKED: "locked",
}
_IN_FLIGHT = frozenset({"source", "target", "embedder"})  # errors that end a window


class Metrics:
    """The instruments of one process, and how its runs went.

    `facts` is called at each scrape, in the thread that asks; what it does not know, or all of it
    where it raises SyncerError, is absent from the answer. `of_process` adds memory, CPU and file
    descriptors.
    """

    def __init__(
        self,
        facts: Callable[[], Facts],
        info: Mapping[str, str],
        *,
        runs: Runs | None = None,
        of_process: bool = True,
    ) -> None:
        self.runs = runs or Runs(started=time.time())
        self.rows = 0  # written, since the process began
        self.uncounted: int | None = None
        registry = self._registry = CollectorRegistry()
        self._rows = Counter("syncer_rows", "Rows, by what was done.", ["op"], registry=registry)
        self._windows = Counter("syncer_windows", "Windows.", ["result"], registry=registry)
        self._runs = Counter("syncer_runs", "Runs.", ["result"], registry=registry)
        self._errors = Counter("syncer_errors", "Failed runs.", ["kind"], registry=registry)
        self._retries = Counter("syncer_retries", "Tries again.", ["where"], registry=registry)
        self._skipped = Counter(
            "syncer_skipped_ticks",
            "Runs that were due and were not begun.",
            ["why"],
            registry=registry,
        )
        self._stages = Histogram(
            "syncer_stage_seconds",
            "Seconds that a stage of a window took.",
            ["stage"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._begin_at_nothing()
        Info("syncer", "What runs here.", registry=registry).info(dict(info))
        registry.register(_Present(self, facts))
        if of_process:
            ProcessCollector(registry=registry)

    def window(self, result: SyncResult) -> None:
        """Count a window that is done: its rows, and how long its stages took."""
        for operation in OPERATIONS[:-1]:
            self._rows.labels(operation).inc(getattr(result, operation))
        self._rows.labels("quarantined").inc(result.newly_quarantined)
        self._windows.labels("written" if result.wrote else "unchanged").inc()
        self.rows += result.embedded + result.payload_only + result.deleted
        for stage, seconds in result.seconds.items():
            self._stages.labels(stage).observe(seconds)

    def retried(self, error: SyncerError) -> None:
        """Count that something is tried again."""
        self._retries.labels(_kind(error)).inc()

    def succeeded(self, *, caught_up: bool, now: float | None = None) -> None:
        """Note a run that ended well, one that found nothing to do too."""
        self._runs.labels("succeeded").inc()
        self.runs = self.runs.succeeded(_or_now(now), caught_up=caught_up)

    def failed(self, error: BaseException, *, now: float | None = None) -> None:
        """Note a run that ended with an error."""
        kind = _kind(error)
        self._runs.labels("failed").inc()
        self._errors.labels(kind).inc()
        if kind in _IN_FLIGHT:
            self._windows.labels("failed").inc()
        self.runs = self.runs.failed(_or_now(now), kind)

    def stopped(self, *, now: float | None = None) -> None:
        """Note a run that a signal ended."""
        self._runs.labels("stopped").inc()
        self.runs = self.runs.stopped(_or_now(now))

    def skipped(self, why: str) -> None:
        """Count a run that was due and was not begun: ``busy`` or ``late``."""
        self._skipped.labels(why).inc()

    def families(self) -> Iterable[Metric]:
        """Return all metrics as they are now; when a series began is left out, it is noise."""
        for family in self._registry.collect():
            family.samples = [one for one in family.samples if not one.name.endswith("_created")]
            yield family

    def exposition(self) -> bytes:
        """Return all metrics as Prometheus reads them, of ``CONTENT_TYPE``."""
        return generate_latest(Families(self.families()))

    def _begin_at_nothing(self) -> None:
        """Let every series exist from the start: a rate needs a first value."""
        for counter, labels in (
            (self._rows, OPERATIONS),
            (self._windows, ("written", "unchanged", "failed")),
            (self._runs, ("succeeded", "failed", "stopped")),
            (self._errors, tuple(_KINDS.values())),
            (self._retries, tuple(sorted(_IN_FLIGHT))),
            (self._skipped, SKIPPED),
        ):
            for label in labels:
                counter.labels(label)
        for stage in STAGES:
            self._stages.labels(stage)


class Families(Collector):
    """Metric families as something that can be written out."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._families


class _Present(Collector):
    """What is now, asked for at each scrape."""

    def __init__(self, metrics: Metrics, facts: Callable[[], Facts]) -> None:
        self._metrics = metrics
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        """Yield a gauge for everything that is known."""
        try:
            facts, readable = self._facts(), 1
        except SyncerError:
            facts, readable = Facts(), 0
        yield GaugeMetricFamily(
            "syncer_state_readable", "Whether the state could be read just now.", readable
        )
        yield from _of_runs(self._metrics.runs, facts)
        yield from _of_facts(facts)
        yield from _gauge(
            "syncer_uncounted_points",
            "Points in the collection that syncer has not counted.",
            self._metrics.uncounted,
        )


def _of_runs(runs: Runs, facts: Facts) -> Iterator[Metric]:
    before = facts.last_success  # of another process: known although this one has none yet
    yield from _gauge(
        "syncer_last_success_timestamp_seconds",
        "When a run last succeeded.",
        before if runs.last_success is None else runs.last_success,
    )
    yield from _gauge(
        "syncer_last_run_timestamp_seconds", "When a run last ended, however.", runs.last_run
    )
    yield from _gauge(
        "syncer_consecutive_failures", "Runs that failed since the last success.", runs.failures
    )


def _of_facts(facts: Facts) -> Iterator[Metric]:
    yield from _gauge(
        "syncer_lag_rows", "Rows and changes that are still to be looked at.", facts.lag_rows
    )
    yield from _gauge(
        "syncer_lag_seconds", "Age of the oldest change not yet in the target.", facts.lag_seconds
    )
    quarantined = None if facts.quarantined is None else sum(facts.quarantined.values())
    yield from _gauge("syncer_quarantined_rows", "Rows that cannot be indexed now.", quarantined)
    yield from _gauge(
        "syncer_withheld_deletes", "Rows whose deletion waits for a word.", facts.withheld
    )
    yield from _gauge(
        "syncer_last_verify_timestamp_seconds",
        "When both stores were last compared.",
        facts.last_verify,
    )
    yield from _gauge(
        "syncer_rebuild_progress_ratio",
        "How far a rebuild has got, from 0 to 1.",
        facts.rebuild_progress,
    )
    if facts.drift is not None:
        drift = GaugeMetricFamily(
            "syncer_drift_points", "Drift that the last verify found.", labels=["kind"]
        )
        for kind, count in facts.drift.items():
            drift.add_metric([kind], count)
        yield drift


def _gauge(name: str, meaning: str, value: float | None) -> Iterator[Metric]:
    """Yield a gauge, or nothing where nothing is known: a 0 would be a claim."""
    if value is not None and not math.isnan(value):
        yield GaugeMetricFamily(name, meaning, value)


def _kind(error: BaseException) -> str:
    code = error.exit_code if isinstance(error, SyncerError) else ExitCode.BUG
    return _KINDS.get(code, "bug")


def _or_now(now: float | None) -> float:
    return time.time() if now is None else now
