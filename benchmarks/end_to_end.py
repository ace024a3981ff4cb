"""Compares ``syncer once`` with nothing but the inference: by the real model, the same texts.

Rows of a canonical table go into a target that forgets them, and into Qdrant's local mode; what
counts is the time from the first window to the last, start-up left out. Bare is the dense vectors
of the same chunks, packed, in one call. All are done in turn, for some rounds; medians count. Ends
with one line; exits 1 if a share of the bare rate is below its floor.
"""

from __future__ import annotations

import argparse
import math
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from corpus import docstrings

from syncer import embed, migrate
from syncer.cli import opening, specs
from syncer.cli.log_report import LogReport
from syncer.cli.opening import Sides
from syncer.cli.report import Report
from syncer.cli.run import How, everything, run
from syncer.embed.encoder import Dense, Encoder
from syncer.model import Embedded, Piece
from syncer.ports import Embedder, Pipeline
from syncer.result import SyncResult
from syncer.settings import Settings, load
from syncer.target import NullTarget
from syncer.worker import Terms

FLOORS = {"null": 0.90, "local": 0.85}  # of the bare rate
LABELS = {"bare": "bare inference", "null": "once, null target", "local": "once, local mode"}
PLACES = {"null": "a null target", "local": "local mode"}
_SETTINGS = '[source]\ndatabase = "memory.db"\n[log]\nlevel = "error"\n'
_INSERT = "INSERT INTO memory_events (agent, scope, source, content) VALUES ('b', 'b', 'b', ?)"


@dataclass(frozen=True, slots=True)
class Timed:
    """One run: wall seconds, the chunks, and of its inference the wall and the CPU seconds."""

    seconds: float
    chunks: int
    inference: float
    cpu: float

    def share(self, alone: Timed) -> float:
        """Return the rate as a share of that of the inference `alone`, were as much CPU to be had.

        What else a run does is held against the inference of the same run, and its inference
        against the bare one by CPU time: on a machine that is busy with other things, two runs
        one after the other may find quite different shares of the cores.
        """
        return self.inference / self.seconds * alone.cpu / self.cpu


class Watched:
    """A provider of dense vectors whose time is taken."""

    def __init__(self, inner: Dense) -> None:
        self.recipe, self.query, self.close = inner.recipe, inner.query, inner.close
        self._inner = inner
        self.seconds = self.cpu = 0.0

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Return the vectors of `texts`."""
        began, cpu = time.perf_counter(), time.process_time()
        embedded = self._inner.embed(texts, counts)
        self.seconds += time.perf_counter() - began
        self.cpu += time.process_time() - cpu
        return embedded


class MeasuredError(Exception):
    """Ends a run whose target was another than the one that is looked at in the end."""


def make(folder: Path, texts: Sequence[str]) -> Settings:
    """Make a canonical table of `texts`, and settings that are the defaults."""
    migrate.init_database(folder / "memory.db")
    with closing(sqlite3.connect(folder / "memory.db")) as connection, connection:
        connection.executemany(_INSERT, [(text,) for text in texts])
    (folder / "syncer.toml").write_text(_SETTINGS, encoding="utf-8")
    return load(folder / "syncer.toml", environ={})


def bare(texts: Sequence[str]) -> Callable[[], Timed]:
    """Return what times the dense vectors of the chunks of `texts`, its model loaded and warm."""
    with tempfile.TemporaryDirectory() as folder:
        spec = specs.embed_spec(make(Path(folder), ()))
    encoder = embed.build(replace(spec, sparse=None), {})
    pieces: list[Piece] = [piece for each in encoder.split(texts) for piece in each]
    passages, counts = [piece.text for piece in pieces], [piece.tokens for piece in pieces]
    encoder.embed(passages[:10], counts[:10])

    def timed() -> Timed:
        watched = _watch(encoder)
        encoder.embed(passages, counts)
        return Timed(watched.seconds, len(pieces), watched.seconds, watched.cpu)

    return timed


def once(texts: Sequence[str], *, local: bool) -> Timed:
    """Time a first ``syncer once`` over a table of `texts`, as the command runs it."""
    found: list[Timed] = []

    def work(pipeline: Pipeline, terms: Terms, report: Report, sides: Sides) -> SyncResult:
        pipeline = pipeline if local else replace(pipeline, target=NullTarget())
        watched = _watch(pipeline.embedder)
        began = time.perf_counter()
        result = everything(pipeline, terms, report, sides)
        seconds = time.perf_counter() - began
        found.append(Timed(seconds, result.chunks, watched.seconds, watched.cpu))
        if not local:
            raise MeasuredError
        return result

    with tempfile.TemporaryDirectory() as folder:
        settings = make(Path(folder), texts)
        with suppress(MeasuredError), opening.opened(settings, to_write=True) as sides:
            run(sides, LogReport("error"), How(), work)
    return found[0]


def _watch(embedder: Embedder) -> Watched:
    """Put a watch between an encoder and its provider of dense vectors."""
    assert isinstance(embedder, Encoder)  # noqa: S101 - there is no other
    dense = embedder._dense  # noqa: SLF001 - the sparse vectors shall not be timed
    watched = Watched(dense._inner if isinstance(dense, Watched) else dense)  # noqa: SLF001
    embedder._dense = watched  # noqa: SLF001
    return watched


def measure(texts: Sequence[str], rounds: int) -> dict[str, list[Timed]]:
    """Run all kinds in turn, `rounds` times."""
    kinds: dict[str, Callable[[], Timed]] = {
        "bare": bare(texts),
        "null": lambda: once(texts, local=False),
        "local": lambda: once(texts, local=True),
    }
    found: dict[str, list[Timed]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, timed in kinds.items():
            found[kind].append(timed())
            print(
                f"  {LABELS[kind]:<18}{found[kind][-1].seconds:7.2f} s, load"
                f" {os.getloadavg()[0]:.1f}",
                file=sys.stderr,
                flush=True,
            )
    return found


def shares(found: Mapping[str, Sequence[Timed]]) -> dict[str, float]:
    """Return the median share of the bare rate for each kind of sync."""
    return {
        kind: median(
            timed.share(alone) for timed, alone in zip(found[kind], found["bare"], strict=True)
        )
        for kind in FLOORS
    }


def report_on(found: Mapping[str, Sequence[Timed]]) -> None:
    """Print one line for each kind; the CPU is that of the inference."""
    print(f"{'medians':<18}{'seconds':>9}{'inference':>11}{'CPU':>7}{'share':>9}")
    share = {"bare": 1.0, **shares(found)}
    for kind, each in found.items():
        seconds = median(timed.seconds for timed in each)
        inference = median(timed.inference for timed in each)
        cpu = median(timed.cpu for timed in each)
        print(
            f"{LABELS[kind]:<18}{seconds:>9.2f}{inference:>11.2f}{cpu:>7.2f}"
            f"{100 * share[kind]:>7.1f} %"
        )


def verdict(found: Mapping[str, Sequence[Timed]]) -> tuple[str, bool]:
    """Return the closing line, and whether the floors are kept."""
    share = shares(found)
    shown = (
        f"{math.floor(100 * share[kind])} % of the bare rate into {PLACES[kind]},"
        f" floor {100 * floor:.0f} %"
        for kind, floor in FLOORS.items()
    )
    return f"end to end: {'; '.join(shown)}", all(
        share[kind] >= floor for kind, floor in FLOORS.items()
    )


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=600, help="rows of the table (600)")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of all three (4)")
    options = parser.parse_args()
    if options.rows < 1 or options.rounds < 1:
        parser.error("--rows and --rounds must be at least 1")
    texts = docstrings(options.rows)
    found = measure(texts, options.rounds)
    chunks = found["bare"][0].chunks
    if any(timed.chunks != chunks for each in found.values() for timed in each):
        sys.exit("end to end: not all were given the same chunks")
    print(f"{len(texts)} rows, {chunks} chunks, the packaged model; {options.rounds} rounds")
    report_on(found)
    line, kept = verdict(found)
    print(line)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
