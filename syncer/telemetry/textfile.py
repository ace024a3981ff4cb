"""The metrics of one-shot runs, in a file that Prometheus's node exporter picks up.

A run lives for seconds, its file until the next one: counters go on from where the file before had
got, and what a run does not know stays as it was said before only where that is still true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.exposition import write_to_textfile
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from syncer.telemetry.metrics import Families, Metrics

_ADDS_UP = frozenset({"counter", "histogram"})
_MOST = 1024 * 1024  # bytes of a file before that are read

Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Before:
    """What the file said after the run before: counters by series, and the last success."""

    counted: Mapping[Series, float] = field(default_factory=dict)
    last_success: float | None = None
    failures: int = 0


def read(path: Path) -> Before:
    """Return what the file at `path` says; nothing, if there is none or it cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            families = list(text_string_to_metric_families(file.read(_MOST)))
    except (OSError, ValueError):
        return Before()
    found = {_series(one): one.value for family in families for one in family.samples}
    counted = {
        _series(one): one.value
        for family in families
        if family.type in _ADDS_UP
        for one in family.samples
    }
    return Before(
        counted,
        found.get(("syncer_last_success_timestamp_seconds", ())),
        int(found.get(("syncer_consecutive_failures", ()), 0)),
    )


def write(path: Path, metrics: Metrics, before: Before) -> None:
    """Write the file anew in one step: a reader sees the old one or the new one. Raises OSError."""
    write_to_textfile(str(path), Families(_added_up(metrics.families(), before)))


def _added_up(families: Iterable[Metric], before: Before) -> Iterator[Metric]:
    for family in families:
        if family.type in _ADDS_UP:
            family.samples = [
                one._replace(value=one.value + before.counted.get(_series(one), 0.0))
                for one in family.samples
            ]
        yield family


def _series(sample: Sample) -> Series:
    return (sample.name, tuple(sorted(sample.labels.items())))
