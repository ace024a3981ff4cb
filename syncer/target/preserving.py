"""Writing points so that what somebody else has put into them stays.

A point that is there is not replaced, but changed in place. That takes several operations, of which
a server that dies may have done the first only. So each point is opened before: neither what its
record said of the row nor the hash of its text holds until all is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from qdrant_client import models

from syncer.keys import PointId
from syncer.model import SYNC_KEY, Point
from syncer.target import bodies, rest
from syncer.target.bodies import Written
from syncer.target.collection import Catalog
from syncer.target.connection import Connection
from syncer.target.structs import named
from syncer.target.writes import Writes, setting


def writes_of(connection: Connection, generation: str) -> Writes:
    """Return how batches are written to a generation, by what the settings say of other's keys."""
    kind = Preserving if connection.spec.preserve_foreign_payload else Writes
    return kind(connection, generation)


class Preserving(Writes):
    """Leaves alone the payload keys and the vectors that are not syncer's.

    Keys that were syncer's by an earlier mapping go, as they would if points were replaced.
    """

    around = 150  # the id three times more, a UUID in quotes being the longest, and the operation

    def whole(self, points: Sequence[Point], found: Written) -> None:
        """Write new points whole, and those that are there in place."""
        there = self._there([point.id for point in points])
        if new := [point for point in points if point.id not in there]:
            super().whole(new, found)
        if old := [point for point in points if point.id in there]:
            self._replace(old)

    def payloads(self, points: Sequence[Point], _: Written) -> None:
        """Set syncer's own keys, each as a whole, and take away what were its own before."""
        gone = self._gone(points)
        self._update([*_without(gone, points), *(setting(point) for point in points)])

    def _there(self, ids: Sequence[PointId]) -> set[PointId]:
        with self._connection.translated(f"reading points of {self._generation}"):
            found = self._client.retrieve(
                self._generation, ids=list(ids), with_payload=False, with_vectors=False
            )
        return {one.id for one in found}  # type: ignore[misc] # a UUID comes as text

    def _replace(self, points: Sequence[Point]) -> None:
        gone = self._gone(points)
        if not self._connection.spec.rest:
            self._update(_replacing(points, gone))
            return
        with self._writing(f"writing to {self._generation}"):
            body = bodies.replacement(points, gone)
            for result in rest.update(self._connection, self._generation, body):
                self._confirm(result)

    def _gone(self, points: Sequence[Point]) -> list[str]:
        used = {key for point in points for key in point.payload}
        return [key for key in self._former if key not in used]

    @cached_property
    def _former(self) -> Sequence[str]:
        return Catalog(self._connection).former_keys(self._generation)


def _replacing(points: Sequence[Point], gone: Sequence[str]) -> list[models.UpdateOperation]:
    """Return what opens points, replaces syncer's vectors and its keys, in this order."""
    opened = models.SetPayload(
        payload=dict(bodies.OPENED), key=SYNC_KEY, points=[point.id for point in points]
    )
    vectors = [
        models.PointVectors(id=point.id, vector=named(point))  # type: ignore[arg-type]
        for point in points
        if point.vectors
    ]
    updated = models.UpdateVectorsOperation(update_vectors=models.UpdateVectors(points=vectors))
    return [
        models.SetPayloadOperation(set_payload=opened),
        *([updated] if vectors else []),
        *_without(gone, points),
        *(setting(point) for point in points),
    ]


def _without(gone: Sequence[str], points: Sequence[Point]) -> list[models.UpdateOperation]:
    if not gone:
        return []
    which = models.DeletePayload(keys=list(gone), points=[point.id for point in points])
    return [models.DeletePayloadOperation(delete_payload=which)]
