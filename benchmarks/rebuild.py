"""Compares a rebuild that embeds nothing with the first build, over the wire, with a real model.

Docstrings of Python's standard library become rows of a canonical table; the first build embeds
them with the packaged model. Then the mapping of the payload changes, which asks for no other
vector, and a rebuild makes a new generation of copied ones, compares it with the table and lets it
take over, some times to and fro; the median counts. Loading the model is left out of both. The
server is QDRANT_URL's, else the tests' own on Qdrant's engine. Ends with one line; exits 1 if the
ratio of the rates is below its floor.
"""

from __future__ import annotations

import argparse
import math
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

import corpus
from qdrant_client import QdrantClient
from servers import server

from syncer import migrate
from syncer.cli import opening
from syncer.cli.log_report import LogReport
from syncer.cli.ready import Ready, ready
from syncer.cli.rebuild import rebuild_on
from syncer.cli.run import everything, work_on_serving
from syncer.result import SyncResult
from syncer.settings import Settings, load
from syncer.worker import Stop

FLOOR = 20  # times the first build's rate
ALIAS = "syncer-rebuild-benchmark"
_INSERT = "INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', ?)"
_MAPPINGS = ("agent,scope", "agent,scope,source,created_at")


def fill(database: Path, rows: int) -> None:
    """Make a canonical table of so many rows of real text."""
    migrate.init_database(database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(_INSERT, [(text,) for text in corpus.docstrings(rows)])


def settings_for(folder: Path, url: str, metadata: str) -> Settings:
    """Return the defaults, but for the server and which columns go along."""
    options: dict[str, object] = {
        "source.database": str(folder / "memory.db"),
        "source.metadata": metadata,
        "target.collection": ALIAS,
        "target.url": url,
    }
    if key := os.environ.get("QDRANT_API_KEY"):
        options["target.api_key"] = key
    return load(None, environ={}, options=options)


def timed(settings: Settings, work: Callable[[Ready], SyncResult]) -> tuple[SyncResult, float]:
    """Return what `work` did, and the seconds that it took once everything was open."""
    report = LogReport("error")
    with (
        opening.opened(settings, to_write=True) as sides,
        ready(sides, report, Stop()) as found,
    ):
        began = time.perf_counter()
        result = work(found)
        return result, time.perf_counter() - began


def first_build(settings: Settings) -> tuple[int, float]:
    """Return how many chunks there are, and the seconds that their first build took."""
    report = LogReport("error")
    result, seconds = timed(settings, lambda found: work_on_serving(found, report, everything))
    return result.chunks, seconds


def rebuild(settings: Settings, chunks: int) -> float:
    """Return the seconds of a rebuild that has to copy every vector."""
    report = LogReport("error")
    result, seconds = timed(settings, lambda found: rebuild_on(found, report))
    if (result.chunks, result.reused) != (chunks, chunks):
        sys.exit(f"rebuild: {result.reused} of {result.chunks} vectors were copied, not {chunks}")
    return seconds


def measure(url: str, rows: int, rounds: int) -> tuple[int, float, float]:
    """Return the number of chunks, the seconds of the first build, and those of a rebuild."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fill(folder / "memory.db", rows)
        chunks, building = first_build(settings_for(folder, url, _MAPPINGS[0]))
        print(f"  first build: {building:.1f} s", file=sys.stderr, flush=True)
        found = []
        for number in range(1, rounds + 1):
            found.append(rebuild(settings_for(folder, url, _MAPPINGS[number % 2]), chunks))
            print(f"  rebuild {number} of {rounds}: {found[-1]:.2f} s", file=sys.stderr, flush=True)
    return chunks, building, median(found)


def clean(url: str) -> None:
    """Leave nothing on the server."""
    with closing(QdrantClient(url=url, api_key=os.environ.get("QDRANT_API_KEY"))) as client:
        for each in client.get_collections().collections:
            if each.name.startswith(f"{ALIAS}--"):
                client.delete_collection(each.name)


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000, help="rows of the table (2,000)")
    parser.add_argument("--rounds", type=int, default=3, help="rebuilds (3)")
    options = parser.parse_args()
    if options.rows < 1 or options.rounds < 1:
        parser.error("--rows and --rounds must be at least 1")
    with server() as url:
        try:
            chunks, building, rebuilding = measure(url, options.rows, options.rounds)
        finally:
            clean(url)
    print(
        f"{chunks:,} chunks of real text, 384 numbers and BM25; {options.rounds} rebuilds, median"
    )
    print(f"first build       {chunks / building:>8,.1f} chunks/s")
    print(f"rebuild, copied   {chunks / rebuilding:>8,.1f} chunks/s")
    ratio = building / rebuilding
    print(f"rebuild: {math.floor(ratio)}x the first build's rate, floor {FLOOR}x")
    return 0 if ratio >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
