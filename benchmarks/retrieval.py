"""Measures what a search finds, by meaning, by words and by both: recall@5 and MRR.

The collection holds docstrings of Python's standard library without their first sentence. Asked is
for that sentence, and for the function's name in words; right is the docstring that it came from.
Ends with one line; exits 1 if searching by both is worse than the better of the two by more than
chance explains, over questions of both kinds.
"""

from __future__ import annotations

import argparse
import ast
import math
import random
import re
import sqlite3
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from corpus import SKIPPED
from numpy.typing import NDArray

from syncer import migrate
from syncer.cli import once
from syncer.cli.log_report import LogReport
from syncer.cli.search import asking
from syncer.model import Mode
from syncer.settings import Settings, load

KINDS = ("sentence", "name")
DEPTH = 20  # hits that are looked at; a right one behind them counts as not found
FIRST_PAGE = 5
_MIN_REST = 80  # characters
_DRAWS = 2000  # of the bootstrap
_CONFIDENCE = 0.95
_SETTINGS = '[source]\ndatabase = "memory.db"\n[log]\nlevel = "error"\n'
_DOCUMENTED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SENTENCE = re.compile(r"(.+?[.!?])(?:\s+|$)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Item:
    """A docstring without its first sentence, and two questions that it should answer."""

    sentence: str
    name: str
    rest: str


Ranks = dict[tuple[str, Mode], NDArray[np.float64]]
"""For each kind of question and mode: the rank of the right row for each item, inf if unfound."""


def items(count: int) -> list[Item]:
    """Return `count` items, chosen by chance but always the same for one Python."""
    found: dict[str, Item] = {}
    for item in _all_items():
        found.setdefault(item.rest, item)
    ordered = sorted(found.values(), key=lambda item: item.rest)
    chance = random.Random(0)  # noqa: S311 - a choice, not a secret
    return chance.sample(ordered, min(count, len(ordered)))


def _all_items() -> Iterator[Item]:
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if SKIPPED.isdisjoint(path.relative_to(root).parts):
            yield from _items_of(path)


def _items_of(path: Path) -> Iterator[Item]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
            match = _SENTENCE.fullmatch(text.strip())
            name = _in_words(node.name)
            if match and name and len(match[2]) >= _MIN_REST:
                yield Item(" ".join(match[1].split()), name, match[2])


def _in_words(name: str) -> str:
    """Return a name of two words or more as words; nothing for any other."""
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    return " ".join(part.lower() for part in parts) if len(parts) > 1 else ""


def fill(folder: Path, found: Sequence[Item]) -> Settings:
    """Make a memory of the items and sync it by the packaged model; row n is item n - 1."""
    migrate.init_database(folder / "memory.db")
    with closing(sqlite3.connect(folder / "memory.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO memory_events (agent, scope, source, content) VALUES ('b', 'b', 'b', ?)",
            [(item.rest,) for item in found],
        )
    (folder / "syncer.toml").write_text(_SETTINGS)
    settings = load(folder / "syncer.toml", environ={})
    code = once.once(settings, LogReport("error"))
    if code:
        sys.exit(f"retrieval: syncer once ended with {code}")
    return settings


def ask(settings: Settings, found: Sequence[Item]) -> Ranks:
    """Return the rank of each item for each kind of question and mode."""
    ranks: Ranks = {}
    for mode in Mode:
        with asking(settings, mode) as question:
            for kind in KINDS:
                began = time.perf_counter()
                rows = [
                    [hit.row for hit in question(getattr(item, kind), DEPTH, {})] for item in found
                ]
                each = 1000 * (time.perf_counter() - began) / len(found)
                print(f"  {kind}, {mode}: {each:.1f} ms a question", file=sys.stderr, flush=True)
                ranks[kind, mode] = np.array(
                    [_rank(str(number), hits) for number, hits in enumerate(rows, 1)]
                )
    return ranks


def _rank(row: str, hits: Sequence[str]) -> float:
    return hits.index(row) + 1.0 if row in hits else np.inf


def scores(ranks: NDArray[np.float64]) -> Mapping[str, NDArray[np.float64]]:
    """Return what each question counts towards recall@5 and towards MRR."""
    return {"recall@5": (ranks <= FIRST_PAGE).astype(np.float64), "MRR": 1.0 / ranks}


def lowest(better: NDArray[np.float64]) -> float:
    """Return how far below zero the mean of differences may come out by chance alone."""
    chance = np.random.default_rng(0)
    draws = chance.integers(0, len(better), (_DRAWS, len(better)))
    spread = better[draws].mean(axis=1) - better.mean()
    return float(np.quantile(spread, 1 - _CONFIDENCE))


def report(ranks: Ranks) -> tuple[str, bool]:
    """Print a table; return the closing line, and whether both together are good enough.

    Questions of all kinds count together, as in a memory that is asked either way.
    """
    good, shown = True, []
    print(f"{'question':<10}{'score':<10}{'dense':>8}{'sparse':>8}{'hybrid':>8}{'noise':>8}")
    for kinds in (("sentence",), ("name",), KINDS):
        pooled = {mode: np.concatenate([ranks[kind, mode] for kind in kinds]) for mode in Mode}
        by_mode = {mode: scores(found) for mode, found in pooled.items()}
        for score in ("recall@5", "MRR"):
            means = {mode: float(by_mode[mode][score].mean()) for mode in Mode}
            best = max((Mode.DENSE, Mode.SPARSE), key=means.__getitem__)
            noise = lowest(by_mode[Mode.HYBRID][score] - by_mode[best][score])
            values = "".join(f"{means[mode]:8.3f}" for mode in Mode)
            print(
                f"{kinds[0] if len(kinds) == 1 else 'either':<10}{score:<10}{values}{-noise:8.3f}"
            )
            if kinds == KINDS:
                good = good and means[Mode.HYBRID] >= means[best] + noise
                floor = math.ceil(1000 * (means[best] + noise)) / 1000
                shown.append(f"hybrid {score} {means[Mode.HYBRID]:.3f}, floor {floor:.3f}")
    return f"retrieval: {'; '.join(shown)} (the better of dense and sparse, less noise)", good


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="docstrings (500)")
    options = parser.parse_args()
    if options.count < FIRST_PAGE:
        parser.error(f"--count must be at least {FIRST_PAGE}")
    found = items(options.count)
    with tempfile.TemporaryDirectory() as folder:
        ranks = ask(fill(Path(folder), found), found)
    print(f"{len(found)} docstrings, questions by first sentence and by name")
    line, good = report(ranks)
    print(line)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
