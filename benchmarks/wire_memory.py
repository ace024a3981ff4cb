"""Measures whether the memory of a sync over the wire grows with the table.

A first ``syncer once`` of two tables into a Qdrant server, by the `hash` provider with 384 numbers
and BM25, each in a process of its own. Compared is the highest resident memory of the two; what the
larger table's has beyond the smaller one's has a ceiling of its own, since most of either is what
is loaded. The server is QDRANT_URL's, else the tests' own on Qdrant's engine. Ends with one
line; exits 1 if the larger table takes too much more.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import tables
from peak_memory import now_resident, peak
from qdrant_client import QdrantClient
from servers import server

from syncer.cli import opening
from syncer.cli.log_report import LogReport
from syncer.cli.opening import Sides
from syncer.cli.report import Report
from syncer.cli.run import How, everything, run
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.worker import Terms

CEILING = 1.10  # of the peak with the smaller table
MORE = 8.0  # MB beyond it; chance alone, in how a heap comes to lie, is worth 3
ALIAS = "syncer-wire-memory-benchmark"
_SIZE = 300  # bytes of a row's content


@dataclass(frozen=True, slots=True)
class Sync:
    """A first sync: points, seconds, and memory in MB before its first window and at its peak."""

    points: int
    seconds: float
    before: float
    peak: float

    @property
    def above(self) -> float:
        """What the sync took beyond what was loaded and open."""
        return self.peak - self.before


def once(settings_file: Path, options: dict[str, object]) -> Sync:
    """Sync a table for the first time, in this process."""
    found: list[Sync] = []

    def work(pipeline: Pipeline, terms: Terms, report: Report, sides: Sides) -> SyncResult:
        before, began = now_resident(), time.perf_counter()
        result = everything(pipeline, terms, report, sides)
        seconds = time.perf_counter() - began
        found.append(Sync(result.chunks, seconds, before, peak()))
        return result

    settings = tables.settings_in(settings_file, **options)
    with opening.opened(settings, to_write=True) as sides:
        code = run(sides, LogReport("error"), How(), work)
    if code:
        sys.exit(f"wire memory: syncer once ended with {code}")
    return found[0]


def measure(url: str, rows: int) -> Sync:
    """Sync a table of so many rows in a process of its own; nothing of it stays."""
    options: dict[str, object] = {"target.url": url, "target.collection": ALIAS}
    if key := os.environ.get("QDRANT_API_KEY"):
        options["target.api_key"] = key
    with tempfile.TemporaryDirectory() as folder:
        path = tables.make_folder(Path(folder), rows, _SIZE)
        with get_context("spawn").Pool(1) as pool:
            found = pool.apply(once, (path, options))
    _forget(QdrantClient(url=url, api_key=os.environ.get("QDRANT_API_KEY"), timeout=60))
    if found.points < rows:
        sys.exit(f"wire memory: {found.points} points of {rows} rows")
    return found


def _forget(client: QdrantClient) -> None:
    for alias in client.get_aliases().aliases:
        if alias.alias_name == ALIAS:
            client.delete_collection(alias.collection_name)
    client.close()


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows",
        type=int,
        nargs=2,
        metavar=("A", "B"),
        default=(10_000, 100_000),
        help="rows of the two tables (10000 100000)",
    )
    few, many = parser.parse_args().rows
    if not 1 <= few < many:
        parser.error("--rows takes two numbers from 1, the larger one last")
    found = {}
    with server() as url:
        for rows in (few, many):
            found[rows] = done = measure(url, rows)
            print(
                f"{rows:>9,} rows in {done.seconds:6.1f} s: {done.before:.0f} MB before the first "
                f"window, {done.peak:.0f} MB at the peak, {done.above:.1f} MB above",
                flush=True,
            )
    ratio = math.ceil(100 * found[many].peak / found[few].peak) / 100
    more = found[many].peak - found[few].peak
    print(
        f"wire memory: {ratio:.2f}x and {more:+.1f} MB from {few:,} to {many:,} rows, "
        f"ceilings {CEILING:.2f}x and {MORE:+.0f} MB"
    )
    return 0 if ratio <= CEILING and more <= MORE else 1


if __name__ == "__main__":
    sys.exit(main())
