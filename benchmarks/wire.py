"""Compares ``syncer once`` over the wire with the client's own upload of the same points.

Rows of a canonical table go to a Qdrant server by the `hash` provider with 384 numbers and BM25;
the time that goes into embedding is taken off. Bare is ``upload_points(wait=True)`` of the very
points that came out of it, in batches of the same size, to the same server. Both are done in turn,
for some rounds; medians count. The server is QDRANT_URL's, else the tests' own on Qdrant's engine.
Ends with one line; exits 1 if the share of the bare rate is below its floor.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import tables
from qdrant_client import QdrantClient, models
from servers import server

from syncer.cli import opening
from syncer.cli.log_report import LogReport
from syncer.cli.opening import Sides
from syncer.cli.report import Report
from syncer.cli.run import How, everything, run
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.settings import Settings
from syncer.worker import Terms

FLOOR = 0.80  # of the bare rate
ALIAS = "syncer-wire-benchmark"
_SIZE = 300  # bytes of a row's content
_PAGE = 1000  # points read at a time


@dataclass(frozen=True, slots=True)
class Round:
    """Points, and the seconds that a sync without its embedding and a bare upload took."""

    points: int
    synced: float
    uploaded: float

    @property
    def share(self) -> float:
        """The sync's rate as a share of the upload's."""
        return self.uploaded / self.synced


def once(settings: Settings) -> tuple[int, float]:
    """Sync the table for the first time; return the points and the seconds without embedding."""
    found: list[tuple[int, float]] = []

    def work(pipeline: Pipeline, terms: Terms, report: Report, sides: Sides) -> SyncResult:
        began = time.perf_counter()
        result = everything(pipeline, terms, report, sides)
        seconds = time.perf_counter() - began
        found.append((result.chunks, seconds - result.seconds.get("embed", 0.0)))
        return result

    with opening.opened(settings, to_write=True) as sides:
        code = run(sides, LogReport("error"), How(), work)
    if code:
        sys.exit(f"wire: syncer once ended with {code}")
    return found[0]


def upload(client: QdrantClient, batch: int) -> float:
    """Upload the points behind the alias again, into a collection like it; return the seconds."""
    (generation,) = (
        each.collection_name for each in client.get_aliases().aliases if each.alias_name == ALIAS
    )
    points = list(_points(client, generation))
    params = client.get_collection(generation).config.params
    copy = f"{generation}-bare"
    client.create_collection(
        copy,
        vectors_config=params.vectors,
        sparse_vectors_config=params.sparse_vectors,
    )
    for field in ("_sync.row", "metadata.agent", "metadata.scope"):
        client.create_payload_index(copy, field, models.PayloadSchemaType.KEYWORD, wait=True)
    began = time.perf_counter()
    client.upload_points(copy, points, batch_size=batch, parallel=1, wait=True)
    seconds = time.perf_counter() - began
    if client.count(copy, exact=True).count != len(points):
        sys.exit("wire: the bare upload did not write every point")
    for each in (copy, generation):
        client.delete_collection(each)
    return seconds


def _points(client: QdrantClient, collection: str) -> Iterator[models.PointStruct]:
    offset = None
    while True:
        records, offset = client.scroll(
            collection, limit=_PAGE, offset=offset, with_payload=True, with_vectors=True
        )
        for record in records:
            yield models.PointStruct(id=record.id, payload=record.payload, vector=record.vector)  # type: ignore[arg-type]
        if offset is None:
            return


def measure(url: str, rows: int, rounds: int, sizes: Mapping[str, int]) -> list[Round]:
    """Sync and upload in turn, each round into collections of its own; `sizes` are settings."""
    found = []
    client = QdrantClient(url=url, api_key=os.environ.get("QDRANT_API_KEY"), timeout=60)
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = tables.make_folder(Path(folder), rows, _SIZE)
            options: dict[str, object] = {"target.url": url, "target.collection": ALIAS, **sizes}
            if key := os.environ.get("QDRANT_API_KEY"):
                options["target.api_key"] = key
            settings = tables.settings_in(path, **options)
            points, synced = once(settings)
            uploaded = upload(client, settings.target.batch_points)
        found.append(Round(points, synced, uploaded))
        print(
            f"  round {number + 1} of {rounds}: once {points / synced:,.0f} points/s,"
            f" bare {points / uploaded:,.0f}",
            file=sys.stderr,
            flush=True,
        )
    with suppress(OSError):
        client.close()
    return found


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the table (10,000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of both (5)")
    parser.add_argument("--batch", type=int, help="target.batch_points instead of the default")
    parser.add_argument("--window", type=int, help="sync.window_rows instead of the default")
    options = parser.parse_args()
    if options.rows < 1 or options.rounds < 1:
        parser.error("--rows and --rounds must be at least 1")
    asked = {"target.batch_points": options.batch, "sync.window_rows": options.window}
    sizes = {name: size for name, size in asked.items() if size is not None}
    with server() as url:
        found = measure(url, options.rows, options.rounds, sizes)
    share = median(each.share for each in found)
    points = found[0].points
    print(f"{points:,} points of 384 numbers and BM25; {options.rounds} rounds, medians")
    print(f"syncer once, embedding off  {points / median(e.synced for e in found):>9,.0f} points/s")
    print(
        f"bare upload_points          {points / median(e.uploaded for e in found):>9,.0f} points/s"
    )
    print(f"wire: {math.floor(100 * share)} % of the bare upload's rate, floor {100 * FLOOR:.0f} %")
    return 0 if share >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
