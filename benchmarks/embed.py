"""Times three ways to embed the same texts: fastembed's defaults, batches of 20, and syncer's.

Texts of mixed length first, then short ones of nearly one length. Each way runs in a process of its
own, in turn, for some rounds; the best round counts. Then it measures how much memory one text
takes that is very long, through the chunker. Ends with one line; exits 1 if a floor or a ceiling is
missed, or if the vectors do not agree.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from corpus import docstrings, read_jsonl
from tokenizers import Tokenizer

from syncer.embed import EmbedSpec
from syncer.embed.catalogue import TOKENIZER_FILE, find_entry
from syncer.embed.folders import locate
from syncer.embed.tokens import TokenCounter

LABELS = {"plain": "plain, defaults", "batches": "batches of 20", "packed": "syncer's packing"}
SHORT_WAYS = ("plain", "packed")
FLOORS = {"plain": 5.0, "batches": 3.5}
FLOOR_TOKENS = (80.0, 90.0)  # the floors are for texts whose mean lies between these
SHORT_FLOOR = 1.0
SHORT_TOKENS = range(10, 15)
SHORT_COUNT = 400
MEMORY_CEILING = 0.1  # of plain's peak
LONG_CEILING = 100  # MB
LONG_CHARACTERS = 70_000
BESIDE = 200  # short texts beside the long one
MIN_COSINE = 0.9999
_MB = 2**20 / 1_000_000  # a MiB in MB


@dataclass(frozen=True, slots=True)
class Round:
    """One way's run: wall and CPU seconds, peak memory in MiB, and the tokens of all texts."""

    seconds: float
    cpu: float
    peak_mib: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Contest:
    """What ways came to on the same texts: their rounds, and the smallest cosine to plain's."""

    texts: Sequence[str]
    rounds: dict[str, list[Round]]
    cosine: float

    def best(self, way: str) -> Round:
        """Return the fastest round."""
        return min(self.rounds[way], key=lambda found: found.seconds)

    def ratio(self, way: str) -> float:
        """Return how many times as fast as `way` syncer's packing is."""
        return self.best(way).seconds / self.best("packed").seconds

    def peak(self, way: str) -> float:
        """Return the highest memory in MiB."""
        return max(found.peak_mib for found in self.rounds[way])

    @property
    def mean(self) -> float:
        """The mean tokens of a text, cut at what the model takes."""
        return self.best("packed").tokens / len(self.texts)


def run(way: str, texts: Path, vectors: Path) -> Round:
    """Embed `texts` in one way in a new process; its vectors are written to a file."""
    measure_py = Path(__file__).with_name("measure.py")
    command = [sys.executable, str(measure_py), way, str(texts), str(vectors)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        sys.exit(
            f"embed: {LABELS.get(way, way)} ended with {done.returncode} (negative: a signal; -9"
            " is often too little memory, for which --count 100 helps)"
        )
    return Round(**json.loads(done.stdout))


def compete(texts: Sequence[str], ways: Sequence[str], rounds: int) -> Contest:
    """Run all `ways` in turn, `rounds` times."""
    found: dict[str, list[Round]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.json")
        path.write_text(json.dumps(texts), encoding="utf-8")
        for _ in range(rounds):
            for way in ways:
                found[way].append(run(way, path, Path(folder, f"{way}.npy")))
                print(
                    f"  {LABELS[way]:<18}{found[way][-1].seconds:7.2f} s, load "
                    f"{os.getloadavg()[0]:.1f}",
                    file=sys.stderr,
                    flush=True,
                )
        vectors = {way: np.load(Path(folder, f"{way}.npy")) for way in ways}
    unit = {
        way: rows / np.linalg.norm(rows, axis=1, keepdims=True) for way, rows in vectors.items()
    }
    cosines = [np.sum(unit["plain"] * rows, axis=1).min() for rows in unit.values()]
    return Contest(texts, found, float(min(cosines)))


def short_texts(count: int) -> list[str]:
    """Return different texts of nearly the same length: first lines of docstrings."""
    spec = EmbedSpec()
    folder = locate(spec, find_entry(spec.model)).path
    counter = TokenCounter(Tokenizer.from_file(str(folder / TOKENIZER_FILE)))
    lines = list(dict.fromkeys(text.partition("\n")[0] for text in docstrings(10**6, 1)))
    lengths = counter.count(lines)
    fitting = [line for line, length in zip(lines, lengths, strict=True) if length in SHORT_TOKENS]
    return fitting[:count]


def long_texts() -> Iterator[str]:
    """Yield texts of 70,000 characters: English, and Chinese with a token for each character."""
    yield " ".join(docstrings(2000))[:LONG_CHARACTERS]
    yield "".join(chr(0x4E00 + 7 * at % 5000) for at in range(LONG_CHARACTERS))


def added_memory(short: Sequence[str]) -> float:
    """Return by how many MB a long text among `short` ones raises the peak, at the worst."""
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.json")
        for beside in ([], *([text] for text in long_texts())):
            path.write_text(json.dumps([*short, *beside]), encoding="utf-8")
            found = run("chunked", path, Path(folder, "vectors.npy"))
            peaks.append(_MB * found.peak_mib)
            print(f"  peak {peaks[-1]:.0f} MB", file=sys.stderr, flush=True)
    return max(peaks[1:]) - peaks[0]


def report(contest: Contest) -> None:
    """Print one line for each way; the cores are what it had of them in its best round."""
    count, rounds = len(contest.texts), len(contest.rounds["packed"])
    print(f"{count} texts, mean {contest.mean:.1f} tokens; best of {rounds} rounds")
    print(f"{'way':<18}{'seconds':>9}{'texts/s':>9}{'cores':>7}{'peak memory':>14}")
    for way in contest.rounds:
        best = contest.best(way)
        print(
            f"{LABELS[way]:<18}{best.seconds:>9.2f}{count / best.seconds:>9.1f}"
            f"{best.cpu / best.seconds:>7.2f}{contest.peak(way):>10.0f} MiB"
        )
    print(f"smallest cosine to the plain vectors: {contest.cosine:.6f}")


def verdict(mixed: Contest, short: Contest, added: float) -> tuple[str, bool]:
    """Return the closing line, and whether floors and ceilings are kept."""
    memory = mixed.peak("packed") / mixed.peak("plain")
    shown = {way: math.floor(mixed.ratio(way) * 10) / 10 for way in FLOORS}
    line = f"embed: {shown['plain']}x plain, {shown['batches']}x batches of 20"
    kept = (
        short.ratio("plain") >= SHORT_FLOOR
        and added < LONG_CEILING
        and min(mixed.cosine, short.cosine) > MIN_COSINE
    )
    if FLOOR_TOKENS[0] <= mixed.mean <= FLOOR_TOKENS[1]:
        line += f", floor {FLOORS['plain']:g}x and {FLOORS['batches']:g}x; "
        line += f"memory {math.ceil(100 * memory) / 100} of plain's, ceiling {MEMORY_CEILING}"
        kept = kept and all(mixed.ratio(way) >= floor for way, floor in FLOORS.items())
        kept = kept and memory <= MEMORY_CEILING
    else:
        line += f", no floor for a mean of {mixed.mean:.0f} tokens"
    line += (
        f"; {math.floor(100 * short.ratio('plain')) / 100}x plain on short texts, floor"
        f" {SHORT_FLOOR:g}x; {math.ceil(added)} MB more for a long text, ceiling {LONG_CEILING} MB"
    )
    return line, kept


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, metavar="FILE.jsonl", help="lines with a `text`")
    parser.add_argument("--count", type=int, default=300, help="texts of mixed length (300)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all ways (3)")
    options = parser.parse_args()
    if options.count < 1 or options.rounds < 1:
        parser.error("--count and --rounds must be at least 1")
    corpus: Path | None = options.corpus
    texts = read_jsonl(corpus, options.count) if corpus else docstrings(options.count)
    if not texts:
        parser.error(f"{corpus} holds no texts")
    short = compete(short_texts(SHORT_COUNT), SHORT_WAYS, 2 * options.rounds)
    mixed = compete(texts, tuple(LABELS), options.rounds)
    report(mixed)
    report(short)
    added = added_memory(short.texts[:BESIDE])
    print(f"a text of {LONG_CHARACTERS:,} characters among {BESIDE}: {added:.0f} MB more")
    line, kept = verdict(mixed, short, added)
    print(line)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
