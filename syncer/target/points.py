"""Reading and writing the points of one generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qdrant_client import models

from syncer.errors import TargetError, TargetUnavailableError
from syncer.keys import Key, PointId, canonical_json
from syncer.model import SYNC_KEY, Held, Point, Vector
from syncer.target.collection import TOKEN, Catalog
from syncer.target.connection import Connection

_LOOK_UP = 1000  # ids a request; an answer is some 200 bytes each
_BYTES_A_NUMBER = 22  # a float32 as JSON: sign, up to 17 digits, point, exponent, comma
_BYTES_A_POINT = 120  # id, names and braces


class GenerationTarget:
    """One generation's points; see ``syncer.ports.Target`` for the contract."""

    def __init__(self, connection: Connection, generation: str) -> None:
        self._connection = connection
        self._client = connection.client
        self._generation = generation
        self._spec = connection.spec

    def count(self) -> int:
        """Return the exact number of points."""
        with self._connection.translated(f"counting {self._generation}"):
            return self._client.count(self._generation, exact=True).count

    def look_up(self, ids: Mapping[PointId, Key]) -> dict[Key, Held]:
        """Return what the points with these ids say of their rows."""
        held: dict[Key, Held] = {}
        wanted = list(ids)
        for start in range(0, len(wanted), _LOOK_UP):
            with self._connection.translated(f"reading points of {self._generation}"):
                records = self._client.retrieve(
                    self._generation,
                    ids=wanted[start : start + _LOOK_UP],
                    with_payload=[SYNC_KEY],
                    with_vectors=False,
                )
            for record in records:
                held[ids[record.id]] = _held(record.payload or {})  # type: ignore[index]
        return held

    def token(self) -> str | None:
        """Return the token that the collection carries."""
        return Catalog(self._connection).token(self._generation)

    def write_token(self, token: str) -> None:
        """Let the collection carry `token`."""
        with self._connection.translated(f"writing the token of {self._generation}"):
            self._client.update_collection(self._generation, metadata={TOKEN: token})

    def upsert(self, points: Sequence[Point]) -> None:
        """Write whole points in their order."""
        for batch in self._batches(points):
            structs = [
                models.PointStruct(
                    id=point.id,
                    payload=dict(point.payload),
                    vector={name: numbers(vector) for name, vector in point.vectors.items()},
                )
                for point in batch
            ]
            with self._connection.translated(f"writing to {self._generation}"):
                self._confirm(self._client.upsert(self._generation, points=structs, wait=True))

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Write the commit records of rows that are being written."""
        operations: list[models.UpdateOperation] = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload=dict(point.payload), points=[point.id])
            )
            for point in held
        ]
        self._update(operations)
        self.upsert(new)

    def overwrite(self, points: Sequence[Point]) -> None:
        """Replace the payloads of points and leave their vectors alone."""
        for batch in self._batches(points):
            self._update(
                [
                    models.OverwritePayloadOperation(
                        overwrite_payload=models.SetPayload(
                            payload=dict(point.payload), points=[point.id]
                        )
                    )
                    for point in batch
                ]
            )

    def delete(self, ids: Sequence[PointId]) -> None:
        """Delete points by id."""
        for start in range(0, len(ids), _LOOK_UP):
            selector = models.PointIdsList(points=list(ids[start : start + _LOOK_UP]))
            with self._connection.translated(f"deleting from {self._generation}"):
                self._confirm(
                    self._client.delete(self._generation, points_selector=selector, wait=True)
                )

    def row_pages(self) -> Iterator[list[str]]:
        """Yield, in pages, the keys as JSON of all rows that have a point."""
        offset: models.ExtendedPointId | None = None
        while True:
            with self._connection.translated(f"reading points of {self._generation}"):
                records, following = self._client.scroll(
                    self._generation,
                    limit=_LOOK_UP,
                    offset=offset,
                    with_payload=[SYNC_KEY],
                    with_vectors=False,
                )
            rows = {_held(record.payload or {}).row for record in records}
            yield sorted(row for row in rows if row is not None)
            if following is None or following == offset:
                return
            offset = following

    def _update(self, operations: Sequence[models.UpdateOperation]) -> None:
        for start in range(0, len(operations), self._spec.batch_points):
            batch = operations[start : start + self._spec.batch_points]
            with self._connection.translated(f"writing payloads to {self._generation}"):
                for result in self._client.batch_update_points(
                    self._generation, update_operations=list(batch), wait=True
                ):
                    self._confirm(result)

    def _confirm(self, result: models.UpdateResult) -> None:
        if result.status == models.UpdateStatus.COMPLETED:
            return
        message = f"{self._generation}: the server answered {result.status.value}, not completed"
        if result.status == models.UpdateStatus.WAIT_TIMEOUT:
            raise TargetUnavailableError(message)
        raise TargetError(
            message,
            hint="Only `completed` lets the position move. Nothing is lost; run again, and look "
            "at the server's log if it stays so.",
        )

    def _batches(self, points: Sequence[Point]) -> Iterator[list[Point]]:
        """Cut `points` so that no batch passes the bounds by number or by serialised bytes."""
        batch: list[Point] = []
        size = 0
        for point in points:
            added = _serialised_size(point)
            if batch and (
                len(batch) >= self._spec.batch_points or size + added > self._spec.batch_bytes
            ):
                yield batch
                batch, size = [], 0
            batch.append(point)
            size += added
        if batch:
            yield batch


def _serialised_size(point: Point) -> int:
    numbers = sum(len(vector) for vector in point.vectors.values())
    payload = len(canonical_json(point.payload).encode())
    return payload + numbers * _BYTES_A_NUMBER + _BYTES_A_POINT


def numbers(vector: Vector) -> list[float]:
    """Return a vector as the client takes it."""
    listed = getattr(vector, "tolist", None)  # numpy's rows convert themselves, and much faster
    return listed() if listed is not None else list(vector)


def _held(payload: Mapping[str, object]) -> Held:
    record = payload.get(SYNC_KEY)
    if not isinstance(record, dict) or not isinstance(record.get("row"), str):
        return Held(None)
    return Held(
        row=record["row"],
        content=str(record.get("content", "")),
        payload=str(record.get("payload", "")),
        chunks=int(record.get("chunks", 1)),
    )
