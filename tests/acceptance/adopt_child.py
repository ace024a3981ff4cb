"""A ``syncer rebuild --adopt`` that kills itself with SIGKILL at a named moment."""

from __future__ import annotations

import sys
from pathlib import Path

import memory
import on_the_wire
from acceptance.recover_child import deadly

from syncer.canonical import CanonicalTable
from syncer.cli.adopt import adopt
from syncer.state import StateStore
from syncer.target import Catalog, Plain, Succession

MOMENTS: dict[str, tuple[type, str, int, bool]] = {
    "noted": (StateStore, "add", 1, True),
    "made": (Catalog, "make", 1, True),
    "rows are about to be made": (CanonicalTable, "bring_home", 1, False),
    "rows made": (CanonicalTable, "bring_home", 1, True),
    "verified": (StateStore, "enter", 1, True),
    "before it goes": (Plain, "remove", 1, False),
    "it is gone, and the alias is not there": (Plain, "remove", 1, True),
    "before the alias": (Succession, "swap", 1, False),
    "alias there": (Succession, "swap", 1, True),
    "serving": (StateStore, "serve", 1, True),
}
"""Class and method, at which call of it, and whether before or after."""


def main() -> None:
    """Adopt into the memory in the folder, and die at the moment."""
    folder, moment, *export = sys.argv[1:]
    kind, name, call, after = MOMENTS[moment]
    deadly(kind, name, call, after=after)
    file = Path(export[0]) if export else None
    told = on_the_wire.Told()
    sys.exit(adopt(memory.settings_for(Path(folder)), told, file, with_vectors=False))


if __name__ == "__main__":
    main()
