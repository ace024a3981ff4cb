"""Checks what a model returned, because neither Qdrant's local mode nor its server can."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syncer.errors import EmbedderError
from syncer.model import Vector

MIN_NORM = 1e-6  # a vector shorter than this has no direction in float32

Rows = NDArray[np.float32]


def as_rows(vectors: Iterable[ArrayLike], count: int, dimension: int, model: str) -> Rows:
    """Return `vectors` as one float32 array of `count` rows and `dimension` columns.

    Raises EmbedderError if there are more or fewer vectors, or if one has another dimension.
    """
    rows = [np.asarray(vector, dtype=np.float32) for vector in vectors]
    if len(rows) != count:
        raise EmbedderError(f"{model} returned {len(rows)} vectors for {count} texts")
    for row in rows:
        if row.shape != (dimension,):
            raise EmbedderError(
                f"{model} returned a vector of shape {row.shape}, where {dimension} numbers were"
                " expected"
            )
    return np.stack(rows) if rows else np.empty((0, dimension), np.float32)


def sound(rows: Rows) -> list[bool]:
    """Say of each row whether it is finite and has a direction."""
    with np.errstate(invalid="ignore", over="ignore"):
        norms = np.linalg.norm(rows.astype(np.float64), axis=1)
    return [bool(np.isfinite(norm) and norm > MIN_NORM) for norm in norms]


def usable(vector: Vector, model: str, hint: str) -> Vector:
    """Return a vector that has a direction; raise EmbedderError, with `hint`, for an empty one."""
    if len(vector) == 0:
        raise EmbedderError(f"{model} returned a vector that is zero or not finite", hint=hint)
    return vector


def as_vectors(rows: Rows, places: Sequence[int]) -> list[Vector]:
    """Return the row at each of `places`, or an empty vector where the row is not sound.

    An empty vector tells the caller to quarantine that row alone; the others are good.
    """
    good = sound(rows)
    return [cast("Vector", rows[place] if good[place] else ()) for place in places]
