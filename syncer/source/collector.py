"""Gathering the rows of a window until it is full."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from syncer.keys import Key, RawText, encode_key
from syncer.model import Row


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one window may hold: rows, and bytes of content and metadata."""

    rows: int = 500
    size: int = 4 * 2**20


class RowsByKey:
    """Rows by key, in the order in which they came; to Python 1 and 1.0 would be one key."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def __contains__(self, key: Key) -> bool:
        return encode_key(key) in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Row) -> None:
        """Add a row, in the place of an earlier one with its key."""
        self._rows[encode_key(row.key)] = row

    def values(self) -> Iterable[Row]:
        """Return the rows."""
        return self._rows.values()


class Collector:
    """Gathers a window's rows by key until it is full."""

    def __init__(self, limits: Limits) -> None:
        self.rows = RowsByKey()
        self.cut = False  # whether something was left for the next window
        self._limits = limits
        self._size = 0

    @property
    def room(self) -> int:
        """How many more rows there may be."""
        return max(0, self._limits.rows - len(self.rows))

    @property
    def full(self) -> bool:
        """Whether no more may be added."""
        return self.room == 0 or self._size >= self._limits.size

    def add(self, row: Row) -> None:
        """Add a row."""
        self.rows.add(row)
        self._size += _size(row.content) + sum(_size(value) for value in row.metadata.values())


def _size(value: object) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, RawText):
        return len(value.data)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    if isinstance(value, list):
        return sum(map(_size, value))
    return 8
