"""Times runs that find nothing to do, in a process of its own, all that they need loaded before.

Called by idle.py: ``idle_runs.py SETTINGS.toml RUNS [--ask]``. Prints a line of JSON for each run;
what the runs themselves log goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from qdrant_client import QdrantClient

from syncer.cli import once, report
from syncer.settings import Settings, load
from syncer.target import connection

LOADED_LATER = ("importlib.readers", "syncer.generations", "syncer.sync", "syncer.target")


class Opening:
    """The CPU time of opening a local folder and of letting go of what was loaded from it.

    Both grow with the collection, and neither can be had for less, so neither counts as the run's.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._opened: list[QdrantClient] = []

    def __call__(self, path: str) -> QdrantClient:
        """Open the folder, as ``QdrantClient(path=…)``."""
        began = time.process_time()
        self._opened.append(QdrantClient(path=path))
        self.seconds += time.process_time() - began
        return self._opened[-1]

    @contextmanager
    def kept_apart(self) -> Iterator[None]:
        """Open folders through this object during the block, and let go of them behind it."""
        with patch.object(connection, "QdrantClient", self):
            yield

    def let_go(self) -> None:
        """Free the memory that the opened clients hold."""
        began = time.process_time()
        self._opened.clear()
        self.seconds += time.process_time() - began


def run(settings: Settings) -> dict[str, float]:
    """Run ``once`` and return the milliseconds of CPU of the run itself and of the opening."""
    chosen, opening = report.choose(settings, as_json=False), Opening()
    with opening.kept_apart():
        began = time.process_time()
        code = once.once(settings, chosen)
        whole = time.process_time() - began
    if code != 0:
        raise SystemExit(int(code))
    itself = whole - opening.seconds
    opening.let_go()
    return {"run": itself * 1000, "opening": opening.seconds * 1000}


def main() -> None:
    """Time so many runs, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", type=Path)
    parser.add_argument("runs", type=int)
    parser.add_argument("--ask", action="store_true", help="let each run look at the target")
    options = parser.parse_args()
    asking = {"target.check_interval": 0} if options.ask else {}
    settings = load(options.settings, environ={}, options=asking)
    for module in LOADED_LATER:  # by the commands that need them; start-up, in any case
        import_module(module)
    for _ in range(options.runs):
        print(json.dumps(run(settings)), flush=True)


if __name__ == "__main__":
    main()
