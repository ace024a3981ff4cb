"""How a run ends before its time: what is said of an error, and of a signal."""

from __future__ import annotations

import json
import signal
import sys

from syncer.errors import ExitCode, SyncerError
from syncer.redaction import without_secrets


def show_error(error: SyncerError, *, as_json: bool) -> None:
    """Print an error: one message with its cause and the next action, on stderr."""
    message, hint = without_secrets(error.message), without_secrets(error.hint or "")
    if as_json:
        record = {"error": type(error).__name__, "message": message, "hint": hint or None}
        print(json.dumps({**record, "exit_code": int(error.exit_code)}))  # noqa: T201
        return
    print(f"syncer: {message}", file=sys.stderr)  # noqa: T201
    if hint:
        print(f"        {hint}", file=sys.stderr)  # noqa: T201


def stopped(code: ExitCode) -> str:
    """Return what is to be said of a run that a signal stopped while it waited."""
    name = signal.Signals(code - 128).name  # as shells count: 128 and the signal's number
    return f"stopped by {name} while waiting; nothing is lost, the next run goes on from here"
