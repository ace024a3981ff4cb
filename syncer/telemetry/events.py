"""What happened, as structured events: one line a window, one a run, one an error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

import structlog

from syncer.errors import SyncerError
from syncer.result import SyncResult, VerifyResult
from syncer.telemetry.lines import Flood, Redaction, without_values

_COUNTS = ("read", "embedded", "payload_only", "unchanged", "deleted", "empty", "chunks", "reused")


def configure(
    *,
    as_json: bool,
    level: str,
    stream: TextIO | None = None,
    secrets: Iterable[str] = (),
    flood: Flood | None = None,
) -> None:
    """Send events of at least `level` to `stream` (stderr), as JSON lines or for reading.

    Nothing of `secrets` is shown, nor what looks like one. With `flood` the same incident is said
    once a period, for processes that live long.
    """
    renderer: structlog.typing.Processor
    if as_json:
        renderer = structlog.processors.JSONRenderer(sort_keys=False, ensure_ascii=False)
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            without_values,
            Redaction(secrets),
            *([flood] if flood is not None else []),
            _event_first,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )


def _event_first(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put what every line has where the eye looks for it."""
    first = ("timestamp", "level", "event")
    rest = {name: value for name, value in event.items() if name not in first}
    return {name: event[name] for name in first if name in event} | rest


def warn(message: str) -> None:
    """Log something that is risky, but stops nothing."""
    structlog.get_logger().warning("risk", message=message)


def said(message: str) -> None:
    """Log what a long run is about to do, or has done."""
    structlog.get_logger().info("step", message=message)


def connected(place: str, version: str) -> None:
    """Log which server answers, and which version it is."""
    structlog.get_logger().info("server", place=place, version=version)


def window_done(result: SyncResult) -> None:
    """Log one window, and by key each row that was cut or could not be indexed."""
    log = structlog.get_logger()
    log.info("window", generation=result.generation, **counts(result))
    if result.truncated:
        log.warning("truncated", rows=result.truncated.first, count=len(result.truncated))
    for item in result.quarantined:
        log.warning("quarantined", row=item.row, reason=item.reason.value, detail=item.detail)


def run_done(result: SyncResult) -> None:
    """Log the sum of a run."""
    structlog.get_logger().info(
        "run",
        generation=result.generation,
        last_id=result.position.last_id,
        change_seq=result.position.change_seq,
        caught_up=not result.more,
        seconds={stage: round(spent, 3) for stage, spent in result.seconds.items()},
        **counts(result),
    )


def verified(result: VerifyResult) -> None:
    """Log what a comparison of both stores found, by kind, and some of the rows by key."""
    log = structlog.get_logger()
    log.info("verified", generation=result.generation, **verify_counts(result))
    for kind, found in result.drift.items():
        if found:
            log.warning("drift", kind=kind.value, count=len(found), rows=found.first)


def nothing_to_do(generation: str, *, looked_at_target: bool) -> None:
    """Log that a run found nothing to do."""
    structlog.get_logger().info(
        "nothing to do", generation=generation, looked_at_target=looked_at_target
    )


def retrying(error: SyncerError) -> None:
    """Log that something is tried again, and why."""
    structlog.get_logger().warning(
        "trying again", error=type(error).__name__, message=error.message
    )


def stopped(message: str, exit_code: int) -> None:
    """Log that a signal ended a run while it waited."""
    structlog.get_logger().warning("stopped", message=message, exit_code=int(exit_code))


def failed(error: SyncerError) -> None:
    """Log an error with its exit code and what to do about it."""
    structlog.get_logger().error(
        "failed",
        error=type(error).__name__,
        message=error.message,
        hint=error.hint,
        exit_code=int(error.exit_code),
    )


def bug(error: BaseException) -> None:
    """Log an error that nobody expected: kinds and places, never words."""
    structlog.get_logger().error("bug", error=type(error).__name__, exc_info=error)


def summarise(flood: Flood, *, whole: bool = False) -> None:
    """Log how often incidents were held back: in periods that are over, or in all."""
    for found in flood.summaries(whole=whole):
        structlog.get_logger().warning("repeated", **found)


def counts(result: SyncResult) -> dict[str, int]:
    """Return the rows of `result` by what was done with them."""
    found = {name: getattr(result, name) for name in _COUNTS}
    found["truncated"] = len(result.truncated)
    found["quarantined"] = len(result.quarantined)
    found["withheld"] = result.withheld
    return found


def verify_counts(result: VerifyResult) -> dict[str, object]:
    """Return what a comparison found, in numbers."""
    return {
        "clean": result.clean,
        "rows": result.rows,
        "points": result.points,
        "sampled": result.sampled,
        "drift": {kind.value: count for kind, count in result.counts.items()},
        "pending": len(result.pending),
        "quarantined": len(result.quarantined),
        "withheld": len(result.withheld),
        "seconds": round(result.seconds, 3),
    }
