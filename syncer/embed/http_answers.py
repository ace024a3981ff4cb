"""What an endpoint answered, as rows in the order of the texts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from syncer.embed.checks import Rows
from syncer.embed.http_spec import MAX_DIMENSION


class BadAnswerError(Exception):
    """An answer that cannot be used; it says why, in words that hold nothing of the answer."""


def read_rows(body: bytes, count: int, dimension: int | None) -> Rows:
    """Return the `count` vectors of a `body` in the order of the texts that were sent.

    They are put in order by ``index``, or taken as they come if none has one. All have
    `dimension` numbers; None takes what the first has. Raises BadAnswerError otherwise.
    """
    items = _items(body)
    if len(items) != count:
        raise BadAnswerError(f"it has {len(items)} vectors for {count} texts")
    vectors = [_vector(items[place]) for place in _order(items)]
    expected = len(vectors[0]) if dimension is None and vectors else dimension
    for vector in vectors:
        if len(vector) != expected or len(vector) not in range(1, MAX_DIMENSION + 1):
            raise BadAnswerError(
                f"it has a vector of {len(vector)} numbers, where {expected} were expected"
            )
    return np.stack(vectors)


def _items(body: bytes) -> list[dict[str, object]]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise BadAnswerError("it is no JSON") from None
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadAnswerError('it has no list of objects under "data"')
    return items


def _order(items: Sequence[dict[str, object]]) -> list[int]:
    """Return for each text where its vector stands among `items`."""
    indices = [item.get("index") for item in items]
    if all(index is None for index in indices):
        return list(range(len(items)))
    places = {index: place for place, index in enumerate(indices) if type(index) is int}
    if places.keys() != set(range(len(items))):
        raise BadAnswerError("its indices are not those of the texts, each once")
    return [places[number] for number in range(len(items))]


def _vector(item: dict[str, object]) -> Rows:
    """Return an item's vector; a null in it is what JSON has instead of NaN."""
    numbers = item.get("embedding")
    if not isinstance(numbers, list):
        raise BadAnswerError("it has an item without a list of numbers")
    if None in numbers:
        numbers = [math.nan if number is None else number for number in numbers]
    try:
        vector = np.asarray(numbers)
    except ValueError:  # lists of different lengths
        raise BadAnswerError("it has an item whose vector is no list of numbers") from None
    if vector.ndim != 1 or (len(vector) and vector.dtype.kind not in "fiu"):
        raise BadAnswerError("it has an item whose vector is no list of numbers")
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is found there
        return vector.astype(np.float32)
