"""Measures how much memory a sync takes beyond what is loaded and open before its first window.

Source, plan, `hash` provider and state are the real ones; the target forgets what it is given.
Ends with one line; exits 1 if the peak is above the ceiling.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tables

from syncer.settings import Settings

CEILING = 100  # MB above the imports
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Sync:
    """One sync of a whole table: rows, seconds, and memory in MB before it and at its peak."""

    rows: int
    seconds: float
    before: float
    peak: float


def sync(settings: Settings) -> Sync:
    """Sync a table from its first window to its last."""
    with tables.to_nowhere(settings) as (sides, pipeline):
        before = now_resident()
        began = time.perf_counter()
        result = tables.sync(sides, pipeline)
        seconds = time.perf_counter() - began
        return Sync(result.embedded, seconds, before, peak())


def now_resident() -> float:
    """Return the resident memory in MB; the peak so far where the system does not tell.

    Not the peak everywhere: importing takes more for a moment than it leaves, and the sync would
    be given the difference for free.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak()
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def peak() -> float:
    """Return the highest resident memory of this process so far, in MB."""
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found * (1 if sys.platform == "darwin" else 1024) / _MB  # bytes there, KiB elsewhere


def verdict(done: Sync) -> tuple[str, bool]:
    """Return the closing line, and whether the peak is below the ceiling."""
    above = done.peak - done.before
    line = f"memory: {math.ceil(above)} MB above imports, ceiling {CEILING} MB"
    return line, above < CEILING


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the table (100000)")
    parser.add_argument("--size", type=int, default=1024, help="bytes of each row's text (1024)")
    options = parser.parse_args()
    if options.rows < 1 or not 1 <= options.size <= tables.MAX_SIZE:
        parser.error(f"--rows must be at least 1, --size from 1 to {tables.MAX_SIZE}")
    with tempfile.TemporaryDirectory() as folder:
        settings = tables.settings_in(tables.make_folder(Path(folder), options.rows, options.size))
        done = sync(settings)
    if done.rows != options.rows:
        sys.exit(f"memory: {done.rows} of {options.rows} rows were embedded")
    print(
        f"{done.rows:,} rows of {options.size:,} bytes, dimension {settings.embed.dimension}, "
        f"windows of {settings.sync.window_rows} rows: "
        f"{done.seconds:.1f} s, {done.rows / done.seconds:,.0f} rows/s"
    )
    print(f"{done.before:.0f} MB before the first window, {done.peak:.0f} MB at the peak")
    line, small = verdict(done)
    print(line)
    return 0 if small else 1


if __name__ == "__main__":
    sys.exit(main())
