"""What a step or a run did, as values; telemetry and reports are made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from syncer.model import Position, Quarantined

T = TypeVar("T")
_KEPT = 20  # things of a sample that are kept


@dataclass(frozen=True, slots=True)
class Sample(Generic[T]):
    """The first of some things, and how many there were: bounded, however long a run is.

    Its length is the number of all, iterating gives those that were kept.
    """

    first: tuple[T, ...] = ()
    count: int = 0

    @classmethod
    def of(cls, things: Sequence[T]) -> Sample[T]:
        """Return a sample of `things`."""
        return cls(tuple(things[:_KEPT]), len(things))

    def plus(self, later: Sample[T]) -> Sample[T]:
        """Return a sample of these and `later` ones."""
        return Sample((self.first + later.first)[:_KEPT], self.count + later.count)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[T]:
        return iter(self.first)


NONE: Sample[str] = Sample()
"""No rows."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What one call of ``sync_once`` did: rows by operation, and the seconds each stage took.

    `chunks` is how many the embedded rows have; of so many the vectors were `reused`.
    """

    generation: str
    position: Position
    read: int = 0
    embedded: int = 0
    payload_only: int = 0
    unchanged: int = 0
    deleted: int = 0
    empty: int = 0
    chunks: int = 0
    reused: int = 0
    truncated: Sample[str] = Sample()
    quarantined: Sample[Quarantined] = Sample()
    newly_quarantined: int = 0
    withheld: int = 0
    more: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def wrote(self) -> bool:
        """Whether anything was written to the target."""
        return bool(self.embedded or self.payload_only or self.deleted)

    def plus(self, later: SyncResult) -> SyncResult:
        """Return the sum of this result and a `later` one of the same run."""
        stages = self.seconds.keys() | later.seconds.keys()
        return replace(
            later,
            read=self.read + later.read,
            embedded=self.embedded + later.embedded,
            payload_only=self.payload_only + later.payload_only,
            unchanged=self.unchanged + later.unchanged,
            deleted=self.deleted + later.deleted,
            empty=self.empty + later.empty,
            chunks=self.chunks + later.chunks,
            reused=self.reused + later.reused,
            truncated=self.truncated.plus(later.truncated),
            quarantined=self.quarantined.plus(later.quarantined),
            newly_quarantined=self.newly_quarantined + later.newly_quarantined,
            withheld=self.withheld + later.withheld,
            seconds={
                stage: self.seconds.get(stage, 0.0) + later.seconds.get(stage, 0.0)
                for stage in stages
            },
        )


class Drift(StrEnum):
    """In what a row, or a point that is not syncer's, differs between both stores.

    A row has one kind, the first that fits in this order.
    """

    MISSING = "missing"  # the table has it, the target has not
    STALE = "stale"  # the target has another content or other metadata, or an unfinished row
    ORPHAN = "orphan"  # the target has it, the table has not: gone, out of scope or without text
    INCOMPLETE = "incomplete"  # a chunk too few or too many, or chunks that disagree
    NO_VECTOR = "no_vector"  # a named vector that should be there is not
    WRONG_VECTOR = "wrong_vector"  # a vector is not that of its text; found by a sample only
    FOREIGN = "foreign"  # a point that syncer did not write


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What a comparison of both stores found.

    `rows` of the table and `points` of the target were looked at, `sampled` rows embedded again.
    `drift` has rows by kind, their keys as JSON; for foreign points their ids. Rows with `pending`
    changes, `quarantined` ones without a point and those whose deletion is `withheld` are no drift.
    """

    generation: str
    rows: int = 0
    points: int = 0
    sampled: int = 0
    drift: Mapping[Drift, Sample[str]] = field(default_factory=dict)
    pending: Sample[str] = NONE
    quarantined: Sample[str] = NONE
    withheld: Sample[str] = NONE
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether both stores are equal, what is listed apart aside."""
        return not self.drifted

    @property
    def drifted(self) -> int:
        """How many rows and foreign points differ."""
        return sum(self.counts.values())

    @property
    def counts(self) -> dict[Drift, int]:
        """How many there are of each kind, of those there are none of too."""
        return {kind: len(self.drift.get(kind, NONE)) for kind in Drift}
