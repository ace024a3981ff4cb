"""What happened, as events and metrics; what is now, as facts, health and history.

The metrics stand in a module of their own, ``syncer.telemetry.metrics``, since only those who need
them should load prometheus-client.
"""

from __future__ import annotations

from syncer.telemetry.events import (
    bug,
    configure,
    connected,
    counts,
    failed,
    nothing_to_do,
    retrying,
    run_done,
    said,
    stopped,
    summarise,
    verified,
    verify_counts,
    warn,
    window_done,
)
from syncer.telemetry.facts import UNKNOWN, Facts, GenerationFacts
from syncer.telemetry.history import History, Minute
from syncer.telemetry.libraries import capture_logging, capture_threads
from syncer.telemetry.lines import Flood
from syncer.telemetry.runs import Health, Limits, Runs, health

__all__ = [
    "UNKNOWN",
    "Facts",
    "Flood",
    "GenerationFacts",
    "Health",
    "History",
    "Limits",
    "Minute",
    "Runs",
    "bug",
    "capture_logging",
    "capture_threads",
    "configure",
    "connected",
    "counts",
    "failed",
    "health",
    "nothing_to_do",
    "retrying",
    "run_done",
    "said",
    "stopped",
    "summarise",
    "verified",
    "verify_counts",
    "warn",
    "window_done",
]
