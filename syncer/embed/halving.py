"""Finding the texts that a model refuses, by halving the batches that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from syncer.errors import EmbedderError

T = TypeVar("T")


def by_halving(
    batch: Sequence[int], run: Callable[[Sequence[int]], Iterable[T]]
) -> Iterator[tuple[int, T | EmbedderError]]:
    """Yield what `run` returns for each index of `batch`, or the error that it alone raises.

    A batch that fails is run again as two halves: a text that is refused takes no other with it,
    and one that is too much for the memory together with others may be computed alone.
    """
    try:
        found = run(batch)
    except EmbedderError as error:
        if len(batch) == 1:
            yield batch[0], error
            return
        middle = len(batch) // 2
        yield from by_halving(batch[:middle], run)
        yield from by_halving(batch[middle:], run)
        return
    yield from zip(batch, found, strict=True)
