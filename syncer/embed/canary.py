"""A fixed sentence's vector: it differs if a model's weights, pooling or prefix differ."""

from __future__ import annotations

import math
from collections.abc import Iterable

from syncer.model import Recipe

SENTENCE = "Eleven small boats carried salt, lemons and letters across the bay before the storm."
DECIMALS = 5  # finer digits differ between processors
AGREEMENT = 0.999  # cosine; another quantisation of the same weights stays below it


def rounded(vector: Iterable[float]) -> tuple[float, ...]:
    """Return `vector` as it is kept in a recipe."""
    return tuple(round(float(value), DECIMALS) for value in vector)


def canary_agrees(one: Recipe, other: Recipe) -> bool:
    """Say whether both recipes put the canary sentence at the same place.

    False also if the dimensions differ or a recipe has no canary.
    """
    if not one.canary or len(one.canary) != len(other.canary):
        return False
    product = math.fsum(a * b for a, b in zip(one.canary, other.canary, strict=True))
    length = math.hypot(*one.canary) * math.hypot(*other.canary)
    return length > 0 and product / length >= AGREEMENT
