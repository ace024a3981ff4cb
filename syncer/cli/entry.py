"""From arguments to an exit code; the one broad ``except`` of the project is here."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from syncer.cli.app import app
from syncer.cli.endings import show_error
from syncer.errors import ExitCode, SyncerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(words)
    except SystemExit as leaving:  # Typer's way out, its own usage errors included
        return leaving.code if isinstance(leaving.code, int) else ExitCode.OK
    except SyncerError as error:
        show_error(error, as_json="--json" in words)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.BUG
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends here, said once
        _report_bug(error)
        return ExitCode.BUG
    return ExitCode.OK


def _report_bug(error: Exception) -> None:
    """Print where it happened, but not the values: they may hold a row's text or a secret."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    places = "\n".join(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    print(  # noqa: T201
        f"syncer: a bug: {type(error).__name__}\n{places}\n"
        "        The position was not moved. Please report this with the lines above.",
        file=sys.stderr,
    )
