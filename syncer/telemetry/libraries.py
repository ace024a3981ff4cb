"""What libraries say by Python's own logging, brought into the log as events."""

from __future__ import annotations

import logging
import threading

import structlog

from syncer.telemetry.events import bug

_SPEAKS_OF_TIMES_ONLY = "apscheduler"


class _Bridge(logging.Handler):
    """Makes an event of each record.

    The arguments of a message may be a row's text, so the message is shown without them, unless
    they are the scheduler's, which are names of jobs and times.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record."""
        ours = record.name.split(".")[0] == _SPEAKS_OF_TIMES_ONLY
        structlog.get_logger().log(
            record.levelno,
            "library",
            logger=record.name,
            message=record.getMessage() if ours else str(record.msg),
            exc_info=record.exc_info,
        )


def capture_logging(level: int = logging.WARNING) -> None:
    """Send what libraries log at `level` or above through the same processors as our events.

    May be called again.
    """
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Bridge):
            root.removeHandler(handler)
    root.addHandler(_Bridge(level))


def capture_threads() -> None:
    """Log what ends a thread as a bug, instead of printing it with whatever values it names."""

    def log(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None:
            bug(ended.exc_value)

    threading.excepthook = log
