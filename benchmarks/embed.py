"""Times three ways to embed the same texts: fastembed's defaults, batches of 20, and syncer's.

Each way runs in a process of its own, in turn, for some rounds; the best round counts. Ends with
one line of ratios; exits 1 if they are below the floor, or if the vectors do not agree.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from corpus import docstrings, read_jsonl

LABELS = {"plain": "plain, defaults", "batches": "batches of 20", "packed": "syncer's packing"}
FLOORS = {"plain": 4.0, "batches": 3.0}
FLOOR_TOKENS = (80.0, 90.0)  # the floors are for texts whose mean lies between these
MIN_COSINE = 0.9999


@dataclass(frozen=True, slots=True)
class Round:
    """One way's run: its seconds, its peak memory in MiB, and the tokens of all texts."""

    seconds: float
    peak_mib: float
    tokens: int


def run(way: str, texts: Path, vectors: Path) -> Round:
    """Embed `texts` in one way in a new process; its vectors are written to a file."""
    measure_py = Path(__file__).with_name("measure.py")
    command = [sys.executable, str(measure_py), way, str(texts), str(vectors)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        sys.exit(
            f"embed: {LABELS[way]} ended with {done.returncode} (negative: a signal; -9 is"
            " often too little memory, for which --count 100 helps)"
        )
    return Round(**json.loads(done.stdout))


def measure(texts: list[str], rounds: int) -> tuple[dict[str, list[Round]], float]:
    """Return every way's rounds, and the smallest cosine to the plain vectors."""
    results: dict[str, list[Round]] = {way: [] for way in LABELS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.json")
        path.write_text(json.dumps(texts), encoding="utf-8")
        for _ in range(rounds):
            for way, found in results.items():
                found.append(run(way, path, Path(folder, f"{way}.npy")))
                print(f"  {LABELS[way]:<18}{found[-1].seconds:7.1f} s", file=sys.stderr, flush=True)
        rows = {way: np.load(Path(folder, f"{way}.npy")) for way in LABELS}
    cosines = [np.sum(rows["plain"] * rows[way], axis=1) for way in ("batches", "packed")]
    lengths = [np.linalg.norm(found, axis=1) for found in rows.values()]
    return results, float(np.min(cosines) / np.max(lengths) ** 2)


def verdict(results: dict[str, list[Round]], mean: float) -> tuple[str, bool]:
    """Return the line of ratios, and whether they reach the floor where there is one."""
    best = {way: min(round_.seconds for round_ in found) for way, found in results.items()}
    ratios = {way: best[way] / best["packed"] for way in FLOORS}
    shown = {way: math.floor(ratio * 10) / 10 for way, ratio in ratios.items()}
    line = f"embed: {shown['plain']}x plain, {shown['batches']}x batches of 20"
    if not FLOOR_TOKENS[0] <= mean <= FLOOR_TOKENS[1]:
        return f"{line}, no floor for a mean of {mean:.0f} tokens", True
    line = f"{line}, floor {FLOORS['plain']:.0f}x and {FLOORS['batches']:.0f}x"
    return line, all(ratios[way] >= floor for way, floor in FLOORS.items())


def report(results: dict[str, list[Round]], count: int, mean: float, cosine: float) -> None:
    """Print one line for each way."""
    print(f"{count} texts, mean {mean:.1f} tokens; best of {len(results['plain'])} rounds")
    print(f"{'way':<18}{'seconds':>9}{'texts/s':>9}{'peak memory':>14}")
    for way, found in results.items():
        seconds = min(round_.seconds for round_ in found)
        peak = max(round_.peak_mib for round_ in found)
        print(f"{LABELS[way]:<18}{seconds:>9.2f}{count / seconds:>9.1f}{peak:>10.0f} MiB")
    print(f"smallest cosine to the plain vectors: {cosine:.6f}")


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, metavar="FILE.jsonl", help="lines with a `text`")
    parser.add_argument("--count", type=int, default=300, help="number of texts (300)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all three ways (3)")
    options = parser.parse_args()
    if options.count < 1 or options.rounds < 1:
        parser.error("--count and --rounds must be at least 1")
    corpus: Path | None = options.corpus
    texts = read_jsonl(corpus, options.count) if corpus else docstrings(options.count)
    if not texts:
        parser.error(f"{corpus} holds no texts")
    results, cosine = measure(texts, options.rounds)
    mean = results["plain"][0].tokens / len(texts)
    report(results, len(texts), mean, cosine)
    line, fast = verdict(results, mean)
    print(line)
    return 0 if fast and cosine > MIN_COSINE else 1


if __name__ == "__main__":
    sys.exit(main())
