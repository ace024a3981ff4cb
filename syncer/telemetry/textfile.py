"""The metrics of one-shot runs, in a file that Prometheus's node exporter picks up.

A run lives for seconds, its file until the next one: counters go on from where the file before had
got, and what a run does not know stays as it was said before only where that is still true.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from syncer.telemetry.metrics import Families, Metrics

_ADDS_UP = frozenset({"counter", "histogram"})
_MOST = 1024 * 1024  # bytes of a file before that are read
_MODE = 0o644  # node exporter is another user, and a service's umask may leave it nothing
_TRIES, _PAUSE = 100, 0.05  # for the lock, and the seconds between two

Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Before:
    """What the file said after the run before: counters by series, and what runs hand on."""

    counted: Mapping[Series, float] = field(default_factory=dict)
    last_run: float | None = None
    last_success: float | None = None
    failures: int = 0
    uncounted: int | None = None


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other runs from the file, so that none takes back what another has counted.

    The lock is on the folder: nothing is left beside the file. A file without one is better than
    none, so the block runs although there is no folder, or somebody holds it for seconds.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        _lock(folder)
        yield
    finally:
        os.close(folder)


def _lock(folder: int) -> None:
    for _ in range(_TRIES):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:  # a file system that has no locks
            return
        else:
            return


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
    uncounted = found.get(("syncer_uncounted_points", ()))
    return Before(
        counted,
        found.get(("syncer_last_run_timestamp_seconds", ())),
        found.get(("syncer_last_success_timestamp_seconds", ())),
        int(found.get(("syncer_consecutive_failures", ()), 0)),
        None if uncounted is None else int(uncounted),
    )


def write(path: Path, metrics: Metrics, before: Before) -> None:
    """Write the file anew in one step: a reader sees the old one or the new one. Raises OSError.

    Everybody may read it: there is nothing confidential in it.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")  # node exporter reads *.prom only
    try:
        new.write_bytes(generate_latest(Families(_added_up(metrics.families(), before))))
        new.chmod(_MODE)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


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
