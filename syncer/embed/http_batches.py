"""How much one request to an endpoint may hold, learnt from what the endpoint refuses."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

Batch = tuple[int, ...]
"""Indices into the texts."""


class Bounds:
    """The most texts and bytes of one request; several threads may share it.

    Endpoints refuse what is too much for them (10 texts, 32, so many tokens) without saying it in
    a common form. What was refused whole and taken in two halves was too much: requests are
    smaller from then on.
    """

    def __init__(self, items: int, size: int) -> None:
        self._items = items
        self._size = size
        self._taken = 0  # the most texts that were taken at once
        self._lock = Lock()

    def pack(self, sizes: Sequence[int]) -> list[Batch]:
        """Return batches that hold each index into `sizes` once, the largest texts first.

        Texts of like size together spare an endpoint that pads them most of the padding.
        """
        return self.cut(sorted(range(len(sizes)), key=lambda index: -sizes[index]), sizes)

    def cut(self, order: Sequence[int], sizes: Sequence[int]) -> list[Batch]:
        """Return `order` in batches within the bounds; a text that is larger gets its own."""
        batches: list[Batch] = []
        batch: list[int] = []
        total = 0
        for index in order:
            if batch and (len(batch) >= self._items or total + sizes[index] > self._size):
                batches.append(tuple(batch))
                batch, total = [], 0
            batch.append(index)
            total += sizes[index]
        return [*batches, tuple(batch)] if batch else batches

    def took(self, items: int) -> None:
        """Note that so many texts were taken at once."""
        with self._lock:
            self._taken = max(self._taken, items)

    def too_much(self, items: int, size: int) -> None:
        """Note that a batch was refused as a whole, and taken in two halves.

        As many texts have been taken before: then it was not their number.
        """
        with self._lock:
            if items > self._taken:
                self._items = min(self._items, halved(items))
            else:
                self._size = min(self._size, halved(size))


def halved(number: int) -> int:
    """Return half of `number`, rounded up: the larger of two halves."""
    return (number + 1) // 2
