"""What the points of a generation say of themselves, as values."""

from __future__ import annotations

from dataclasses import dataclass

from syncer.keys import PointId


@dataclass(frozen=True, slots=True)
class Record:
    """What a point says of itself; `row` is None for a foreign point.

    `content` and `payload` are its row's hashes, `text` that of what its vector was made from.
    """

    id: PointId
    row: str | None
    chunk: int = 0
    chunks: int = 1
    content: str = ""
    payload: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Some points' records in the order of their ids; `next` is where the next page begins."""

    records: tuple[Record, ...]
    next: PointId | None = None
