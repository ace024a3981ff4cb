"""A ``syncer recover`` that kills itself with SIGKILL at a named moment."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import memory
from acceptance.kill_child import die

from syncer.canonical import CanonicalTable
from syncer.cli.recover import Wish, recover
from syncer.state import GenerationState
from syncer.target import ForeignPoints, GenerationTarget
from syncer.target.writes import Writes

MOMENTS: dict[str, tuple[type, str, int | str, bool]] = {
    "nothing done": (ForeignPoints, "pages", 1, False),
    "before rows are made": (CanonicalTable, "bring_home", 1, False),
    "between two rows": (CanonicalTable, "_bring", 2, False),
    "rows made": (CanonicalTable, "bring_home", 1, True),
    "token pending": (GenerationState, "begin_token", 1, True),
    "before own points": (GenerationTarget, "upsert", 1, False),
    "own points there": (GenerationTarget, "upsert", 1, True),
    "before the state knows": (GenerationState, "commit", 1, False),
    "state knows": (GenerationState, "commit", 1, True),
    "before foreign points go": (GenerationTarget, "delete", "foreign", False),
    "between two foreign points": (Writes, "delete", 1, True),
    "foreign points gone": (GenerationTarget, "delete", "foreign", True),
    "before the last token": (GenerationTarget, "write_token", 2, False),
    "last token left": (GenerationState, "confirm_token", 2, True),
    "before it is counted": (GenerationState, "note_points", 1, False),
}
"""Class and method, at which call of it, and whether before or after."""


def deadly(kind: type, name: str, call: int | str, *, after: bool) -> None:
    """Let the process die at one call of a method."""
    method: Callable[..., Any] = getattr(kind, name)
    calls = 0

    def wrapped(self: object, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        counts = bool(arguments[0]) if call == "foreign" else True  # deletes of nothing do not
        calls += counts
        deadly_one = counts and calls == (1 if call == "foreign" else call)
        if deadly_one and not after:
            die()
        result = method(self, *arguments, **options)
        if deadly_one:
            die()
        return result

    setattr(kind, name, wrapped)


def one_by_one() -> None:
    """Let foreign points go one by one, so that there is a moment between two."""
    delete = GenerationTarget.delete

    def split(self: GenerationTarget, ids: Any) -> None:
        for each in ids:
            delete(self, [each])

    GenerationTarget.delete = split  # type: ignore[method-assign]


def main() -> None:
    """Recover the memory in the folder, and die at the moment."""
    folder, moment = Path(sys.argv[1]), sys.argv[2]
    if moment in MOMENTS:
        kind, name, call, after = MOMENTS[moment]
        if moment.startswith("between two foreign"):
            one_by_one()
        deadly(kind, name, call, after=after)
    sys.exit(recover(memory.settings_for(folder), Wish()))


if __name__ == "__main__":
    main()
