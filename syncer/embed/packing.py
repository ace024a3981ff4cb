"""Packs texts into batches that waste little on padding.

A batch is computed as a rectangle: every text is padded to the longest one. Texts of like length
together therefore cost what their own tokens cost, and a bound on the rectangle bounds the memory,
whatever the number of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Batch = tuple[int, ...]
"""Indices into the texts, the longest text first."""


def pack(lengths: Sequence[int], budget: int) -> list[Batch]:
    """Return batches of indices that hold each index once, longest texts first.

    `lengths` are token counts as the model will see them. In every batch,
    ``count x longest <= budget``; a text longer than that gets a batch of its own. Starting with
    the most expensive batches also lets workers finish at about the same time.
    """
    batches: list[Batch] = []
    start = 0
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while start < len(order):
        longest = max(1, lengths[order[start]])
        size = max(1, budget // longest)
        batches.append(tuple(order[start : start + size]))
        start += size
    return batches


def shared_budget(lengths: Sequence[int], budget: int, workers: int) -> int:
    """Return a budget of at most `budget` that leaves something for each of the `workers`.

    A few short texts would otherwise fit into one batch and keep one core busy while others idle.
    """
    return max(1, min(budget, -(-sum(lengths) // workers)))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Texts without their repetitions: ``texts[places[i]]`` is the i-th text that was given."""

    texts: list[str]
    places: list[int]


def distinct(texts: Sequence[str]) -> Distinct:
    """Return the different ones among `texts`, in order of first appearance."""
    seen: dict[str, int] = {}
    places = [seen.setdefault(text, len(seen)) for text in texts]
    return Distinct(list(seen), places)
