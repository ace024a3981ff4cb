"""Embeds texts in one way, in a process of its own, so that the peak memory is that way's own.

Called by embed.py: ``measure.py WAY TEXTS.json VECTORS.npy``; prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from fastembed import TextEmbedding

from syncer.embed import EmbedSpec, build
from syncer.embed.catalogue import find_entry
from syncer.embed.checks import Rows
from syncer.embed.folders import locate

Embed = Callable[[Sequence[str]], Rows]

WARM_UP = ["The first inference also allocates."]


def packed(spec: EmbedSpec) -> Embed:
    """Return syncer's way."""
    embedder = build(spec, {})
    return lambda texts: np.array(embedder.embed(texts).vectors, np.float32)


def chunked(spec: EmbedSpec) -> Embed:
    """Return syncer's way with a row of vectors for each chunk, as a window goes through it."""
    embedder = build(spec, {})

    def embed(texts: Sequence[str]) -> Rows:
        pieces = [piece for of_text in embedder.split(texts) for piece in of_text]
        counts = [piece.tokens for piece in pieces]
        embedded = embedder.embed([piece.text for piece in pieces], counts)
        return np.array(embedded.vectors, np.float32)

    return embed


def plain(spec: EmbedSpec) -> Embed:
    """Return fastembed's way with its defaults."""
    model = _fastembed(spec)
    return lambda texts: np.array(list(model.embed(texts)), np.float32)


def batches_of_20(spec: EmbedSpec) -> Embed:
    """Return fastembed's way in batches of 20 in the given order."""
    model = _fastembed(spec)
    return lambda texts: np.array(list(model.embed(texts, batch_size=20)), np.float32)


WAYS: dict[str, Callable[[EmbedSpec], Embed]] = {
    "plain": plain,
    "batches": batches_of_20,
    "packed": packed,
    "chunked": chunked,
}


def _fastembed(spec: EmbedSpec) -> TextEmbedding:
    return TextEmbedding(spec.model, specific_model_path=str(_folder(spec)))


def _folder(spec: EmbedSpec) -> Path:
    return locate(spec, find_entry(spec.model)).path


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, KiB elsewhere


def main() -> None:
    """Run one way; print wall and CPU seconds, peak memory in MiB, and the texts' tokens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("texts", type=Path)
    parser.add_argument("vectors", type=Path)
    arguments = parser.parse_args()
    texts: list[str] = json.loads(arguments.texts.read_text(encoding="utf-8"))
    spec = EmbedSpec()
    embed = WAYS[arguments.way](spec)
    embed(WARM_UP)
    began, cpu = time.perf_counter(), time.process_time()
    vectors = embed(texts)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = _peak_mib()
    np.save(arguments.vectors, vectors)
    tokens = _fastembed(spec).token_count(texts)
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mib": peak, "tokens": tokens}))


if __name__ == "__main__":
    main()
