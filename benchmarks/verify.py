"""Compares ``syncer verify`` over the wire with bare reads of the same: all points, and the table.

Rows of a canonical table are synced to a Qdrant server by the `hash` provider. Then, in turn and
for some rounds: a bare scroll of the points' ``_sync`` payloads in pages of the same size plus a
bare read of the table's columns, and the comparison of both stores. Medians count. The server is
QDRANT_URL's, else the tests' own on Qdrant's engine, in a process of its own. Ends with one line;
exits 1 if the comparison takes longer than the ceiling allows, or more memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

import servers
import tables
from qdrant_client import QdrantClient

from syncer.cli import compose, opening, specs
from syncer.cli.log_report import LogReport
from syncer.cli.run import How, everything, run
from syncer.retry import never
from syncer.settings import Settings
from syncer.target import Catalog, connect
from syncer.verify import verify
from syncer.worker import Stop

CEILING = 1.5  # times the bare reads
MEMORY = 300  # MB, the whole process
ALIAS = "syncer-verify-benchmark"
_SIZE = 300  # bytes of a row's content
_PAGE = 1000  # points a page, as the comparison reads them
_COLUMNS = "id, content, agent, scope, source, importance, created_at, updated_at, metadata"


def fill(settings: Settings) -> None:
    """Sync the table for the first time."""
    with opening.opened(settings, to_write=True) as sides:
        if code := run(sides, LogReport("error"), How(), everything):
            sys.exit(f"verify: syncer once ended with {code}")


def scroll(client: QdrantClient) -> int:
    """Read what all points say of themselves; return how many there are."""
    count, offset = 0, None
    while True:
        records, offset = client.scroll(
            ALIAS, limit=_PAGE, offset=offset, with_payload=["_sync"], with_vectors=False
        )
        count += len(records)
        if offset is None:
            return count


def read(path: Path) -> int:
    """Read the whole table in the order of its key; return how many rows there are."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM memory_events ORDER BY id")
        return sum(1 for _ in rows)


def bare(settings: Settings, client: QdrantClient) -> float:
    """Return the seconds that both bare reads take."""
    began = time.perf_counter()
    points, rows = scroll(client), read(settings.source.database)
    seconds = time.perf_counter() - began
    if points < rows:
        sys.exit(f"verify: {points} points for {rows} rows")
    return seconds


def compared(settings: Settings) -> float:
    """Return the seconds that a comparison takes, which has to find both stores equal."""
    with (
        opening.opened(settings) as sides,
        connect(specs.target_spec(settings), to_write=False) as connection,
    ):
        generation = Catalog(connection).resolve(ALIAS)
        if generation is None:
            sys.exit(f"verify: no alias {ALIAS}")
        recipe = Catalog(connection).describe(generation).recipe
        embedder = compose.build_embedder(settings).by(recipe)
        pipeline = compose.pipeline(sides, connection, embedder, generation, never)
        began = time.perf_counter()
        result = verify(pipeline, compose.terms(settings, Stop()))
        seconds = time.perf_counter() - began
    if not result.clean or not result.rows:
        sys.exit(f"verify: {result.counts} in {result.rows} rows")
    return seconds


def measure(folder: Path, url: str, rounds: int) -> tuple[list[tuple[float, float]], float]:
    """Return the seconds of each round, bare and compared, and this process's peak in MB."""
    settings = _settings(folder / "syncer.toml", url)
    client = QdrantClient(url=url, api_key=os.environ.get("QDRANT_API_KEY"), timeout=60)
    found = []
    for number in range(rounds):
        found.append((bare(settings, client), compared(settings)))
        print(
            f"  round {number + 1} of {rounds}: bare {found[-1][0]:.1f} s, verify "
            f"{found[-1][1]:.1f} s",
            file=sys.stderr,
            flush=True,
        )
    client.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found, peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def _settings(path: Path, url: str) -> Settings:
    given: dict[str, object] = {"target.url": url, "target.collection": ALIAS}
    if key := os.environ.get("QDRANT_API_KEY"):
        given["target.api_key"] = key
    return tables.settings_in(path, **given)


def report(rows: int, found: Sequence[tuple[float, float]], peak: float) -> int:
    """Print the figures and return the exit code."""
    reads, comparisons = (median(each) for each in zip(*found, strict=True))
    times = median(compare / read for read, compare in found)
    print(f"{rows:,} rows; {len(found)} rounds, medians")
    print(f"bare scroll and bare read  {reads:>8.1f} s")
    print(f"verify                     {comparisons:>8.1f} s")
    print(
        f"verify: {times:.2f} times the bare reads, ceiling {CEILING}; "
        f"{peak:.0f} MB, ceiling {MEMORY}"
    )
    return 0 if times <= CEILING and peak < MEMORY else 1


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the table (100,000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of both (3)")
    parser.add_argument("--fill", nargs=2, metavar=("FOLDER", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rows < 1 or options.rounds < 1:
        parser.error("--rows and --rounds must be at least 1")
    if options.fill:
        folder, url = options.fill
        fill(_settings(Path(folder) / "syncer.toml", url))
        return 0
    with tempfile.TemporaryDirectory() as name, servers.server() as url:
        folder = Path(name)
        tables.make_folder(folder, options.rows, _SIZE)
        # In a process of its own, whose memory is not counted.
        subprocess.run(  # noqa: S603 - itself
            [sys.executable, __file__, "--fill", name, url], check=True
        )
        found, peak = measure(folder, url, options.rounds)
    return report(options.rows, found, peak)


if __name__ == "__main__":
    sys.exit(main())
