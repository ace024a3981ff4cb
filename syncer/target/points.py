"""Reading and writing the points of one generation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from qdrant_client import models

from syncer.errors import RejectedError, TargetError, TargetUnavailableError
from syncer.keys import Key, PointId
from syncer.model import SYNC_KEY, Held, Point, Reason, Vector
from syncer.records import Record, RecordPage
from syncer.target import bodies, messages
from syncer.target.batches import Batch, cut, unfit, written
from syncer.target.bodies import Written
from syncer.target.collection import TOKEN, Catalog
from syncer.target.connection import Connection
from syncer.target.halving import Halving
from syncer.target.pace import Pace
from syncer.target.preserving import writes_of
from syncer.target.records import Records

_LOOK_UP = 1000  # ids a request; an answer is some 200 bytes each


class GenerationTarget:
    """One generation's points; see ``syncer.ports.Target`` for the contract."""

    def __init__(self, connection: Connection, generation: str) -> None:
        self._connection = connection
        self._client = connection.client
        self._generation = generation
        self._spec = connection.spec
        self._pace = Pace()
        self._writes = writes_of(connection, generation)
        self.deleted = 0
        """How many points were asked to be deleted, there or not."""

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

    def batches(self, points: Sequence[Point]) -> list[Batch]:
        """Cut points into what a request takes, by the settings and by the collection's own."""
        return list(self._cut(points, self._most_points, self._written(points)))

    def upsert(self, points: Sequence[Point]) -> dict[PointId, tuple[Reason, str]]:
        """Write whole points in their order; return those that are refused."""
        return self._write(points, self._writes.whole)

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Write the commit records of rows that are being written; raise if one is refused."""
        refused = self._write(held, self._writes.records) | self._write(new, self._writes.whole)
        for _, why in refused.values():
            raise RejectedError(f"a row of {self._generation} cannot be opened: {why}")

    def add_keys(self, points: Sequence[Point]) -> None:
        """Set payload keys of points that are there; raise RejectedError if one is refused."""
        for _, why in self._write(points, self._writes.records).values():
            raise RejectedError(
                f"payload keys of a point of {self._generation} cannot be set: {why}",
                hint="See target.batch_bytes, and the server's limits.",
            )

    def overwrite(self, points: Sequence[Point]) -> dict[PointId, tuple[Reason, str]]:
        """Replace the payloads of points and leave their vectors alone; return those refused."""
        return self._write(points, self._writes.payloads)

    def delete(self, ids: Sequence[PointId]) -> None:
        """Delete points by id."""
        self.deleted += len(ids)
        for start in range(0, len(ids), _LOOK_UP):
            self._writes.delete(list(ids[start : start + _LOOK_UP]))

    def row_page(self, offset: PointId | None = None) -> tuple[list[str], PointId | None]:
        """Return the keys as JSON of a page of rows, and where the next one begins."""
        with self._connection.translated(f"reading points of {self._generation}"):
            records, following = self._client.scroll(
                self._generation,
                limit=self.page,
                offset=offset,
                with_payload=[SYNC_KEY],
                with_vectors=False,
            )
        if following is not None and following == offset:
            raise TargetError(
                f"{self._generation}: the server gives the same page of points again and again",
                hint="Not all points could be read, so nothing was decided by them. See the "
                "server's log.",
            )
        rows = {_held(record.payload or {}).row for record in records}
        return sorted(row for row in rows if row is not None), following  # type: ignore[return-value]

    def records(self, offset: PointId | None = None, *, lacking: str = "") -> RecordPage:
        """Return a page of all points' records from the id `offset` on."""
        return self._records.records(offset, lacking=lacking)

    def records_of(self, ids: Sequence[PointId]) -> tuple[Record, ...]:
        """Return the records of the points with these ids."""
        return self._records.records_of(ids)

    def lacking(self, vector: str, ids: Sequence[PointId]) -> set[PointId]:
        """Return which of the points with these ids are there and have no vector of that name."""
        return self._records.lacking(vector, ids)

    def vectors(self, vector: str, ids: Sequence[PointId]) -> dict[PointId, Vector]:
        """Return the dense vectors of that name by point id."""
        return self._records.vectors(vector, ids)

    @cached_property
    def _records(self) -> Records:
        return Records(self._connection, self._generation, self.page)

    def _write(
        self, points: Sequence[Point], put: Callable[[Sequence[Point], Written], None]
    ) -> dict[PointId, tuple[Reason, str]]:
        """Write points by `put`; return those that no Qdrant takes, or that this one refuses.

        A refusal is believed only while the collection is as it describes itself.
        """
        newest = {point.id: point for point in points}
        found = self._written(points)
        most = self._spec.batch_bytes
        refused = {
            point.id: why
            for point in newest.values()
            if (why := unfit(point, found, most)) is not None
        }
        fit = [point for point in newest.values() if point.id not in refused]
        halving = Halving(lambda some: put(some, found))
        for batch in self._cut(fit, self._pace.bound(self._most_points), found):
            try:
                halving.write(batch)
            except TargetUnavailableError as error:
                if not error.retry_after:  # a server that says when to come again is there
                    self._pace.unanswered(len(batch))
                raise
            self._pace.answered(self._most_points)
        if halving.refused:
            Catalog(self._connection).describe(self._generation)
        return refused | halving.refused

    def _written(self, points: Sequence[Point]) -> Written:
        return written(points, messages.written if self._spec.rpc else bodies.written)

    def _cut(self, points: Sequence[Point], most: int, found: Written) -> Iterator[Batch]:
        return cut(points, most, self._spec.batch_bytes, found, self._writes.around)

    @cached_property
    def _strict(self) -> models.StrictModeConfigOutput | None:
        """What the collection's strict mode says, None where it is off."""
        if self._connection.local:
            return None
        with self._connection.translated(f"reading {self._generation}"):
            strict = self._client.get_collection(self._generation).config.strict_mode_config
        return strict if strict is not None and strict.enabled else None

    @property
    def _most_points(self) -> int:
        allowed = self._strict.upsert_max_batchsize if self._strict else None
        return min(self._spec.batch_points, allowed or self._spec.batch_points)

    @property
    def page(self) -> int:
        """How many points a request may ask for."""
        allowed = self._strict.max_query_limit if self._strict else None
        return min(_LOOK_UP, allowed or _LOOK_UP)


def _held(payload: Mapping[str, object]) -> Held:
    record = payload.get(SYNC_KEY)
    if not isinstance(record, dict) or not isinstance(record.get("row"), str):
        return Held(None)
    return Held(
        row=record["row"],
        content=str(record.get("content", "")),
        payload=str(record.get("payload", "")),
        chunks=int(record.get("chunks", 1)),
        text=str(record.get("text", "")),
    )
