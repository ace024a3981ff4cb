"""A fixed sentence's vector: it differs if a model's weights, pooling or prefix differ."""

from __future__ import annotations

from collections.abc import Iterable

SENTENCE = "Eleven small boats carried salt, lemons and letters across the bay before the storm."
DECIMALS = 5  # finer digits differ between processors


def rounded(vector: Iterable[float]) -> tuple[float, ...]:
    """Return `vector` as it is kept in a recipe."""
    return tuple(round(float(value), DECIMALS) for value in vector)
