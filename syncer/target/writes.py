"""A batch of points as a request: written whole, its payloads replaced, or deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from qdrant_client import models

from syncer.errors import RejectedError, TargetUnavailableError
from syncer.keys import PointId
from syncer.model import Point
from syncer.target import bodies, messages, rest
from syncer.target.bodies import Written
from syncer.target.connection import Connection
from syncer.target.local import one_transaction
from syncer.target.structs import structs

_DELETE_TRIES = 3  # a refusal may come although half was done, and pass


class Writes:
    """Sends batches to one generation; each call waits until its batch is applied.

    Raises RejectedError if a batch is refused, TargetUnavailableError unless it is known to be
    applied.
    """

    around = 1
    """Bytes that each point takes in a request, besides its JSON."""

    def __init__(self, connection: Connection, generation: str) -> None:
        self._connection = connection
        self._client = connection.client
        self._generation = generation

    def whole(self, points: Sequence[Point], found: Written) -> None:
        """Write whole points; nothing stays of those that were there."""
        with self._writing(f"writing to {self._generation}"):
            ids = [point.id for point in points]
            if self._connection.spec.rest:
                body = bodies.upsert(ids, found)
                self._confirm(rest.upsert(self._connection, self._generation, body))
            elif self._connection.spec.rpc:
                self._confirm(messages.upsert(self._connection, self._generation, ids, found))
            else:
                self._confirm(self._client.upsert(self._generation, structs(points), wait=True))

    def records(self, points: Sequence[Point], _: Written) -> None:
        """Set the payload keys that the points have, and leave all others alone."""
        self._update([setting(point) for point in points])

    def payloads(self, points: Sequence[Point], _: Written) -> None:
        """Replace whole payloads and leave the vectors alone."""
        self._update(
            [
                models.OverwritePayloadOperation(
                    overwrite_payload=models.SetPayload(
                        payload=dict(point.payload), points=[point.id]
                    )
                )
                for point in points
            ]
        )

    def delete(self, ids: Sequence[PointId]) -> None:
        """Delete points; an answer that refuses it is not believed at once."""
        selector = models.PointIdsList(points=list(ids))
        for left in reversed(range(_DELETE_TRIES)):
            try:
                with self._writing(f"deleting from {self._generation}"):
                    self._confirm(
                        self._client.delete(self._generation, points_selector=selector, wait=True)
                    )
            except RejectedError:
                if not left:
                    raise
            else:
                return

    def _update(self, operations: Sequence[models.UpdateOperation]) -> None:
        with self._writing(f"writing payloads to {self._generation}"):
            for result in self._client.batch_update_points(
                self._generation, update_operations=operations, wait=True
            ):
                self._confirm(result)

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        """Translate errors; what the block writes to local mode reaches the disk together."""
        with self._connection.translated(what), one_transaction(self._client, self._generation):
            yield

    def _confirm(self, result: models.UpdateResult | None) -> None:
        """Raise TargetUnavailableError unless the write is done, not only taken."""
        if result is None or result.status != models.UpdateStatus.COMPLETED:
            answer = "nothing" if result is None else result.status.value
            raise TargetUnavailableError(
                f"{self._generation}: the server answered {answer}, not completed",
                hint="Only `completed` lets the position move. Nothing is lost; run again, and "
                "look at the server's log if it stays so.",
            )


def setting(point: Point) -> models.SetPayloadOperation:
    """Return what sets the payload keys that a point has."""
    return models.SetPayloadOperation(
        set_payload=models.SetPayload(payload=dict(point.payload), points=[point.id])
    )
