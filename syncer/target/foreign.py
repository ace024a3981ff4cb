"""Reading the points of a collection that syncer did not write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qdrant_client import models

from syncer.errors import TargetError
from syncer.foreign import Foreign, is_foreign
from syncer.keys import PointId
from syncer.model import SYNC_KEY
from syncer.retry import Retry, never
from syncer.target.connection import Connection

_SCAN = 1000  # points a request of which only `_sync` is read
_PAGE = 100  # whole points a request; a payload may be large


class ForeignPoints:
    """The points of a collection that syncer did not write; with `vectors` where wanted.

    All points are looked at, and not asked for by a filter: what somebody else has put under
    ``_sync`` may look like anything. With `everything` syncer's own are given too, as any other.
    """

    def __init__(
        self,
        connection: Connection,
        collection: str,
        *,
        everything: bool = False,
        vectors: bool = False,
        retry: Retry = never,
    ) -> None:
        self._connection = connection
        self._collection = collection
        self._everything = everything
        self._vectors = vectors
        self._retry = retry

    def pages(self) -> Iterator[list[Foreign]]:
        """Yield the points in pages of at most 100; what is deleted meanwhile does no harm."""
        for ids in self._ids():
            for start in range(0, len(ids), _PAGE):
                if found := self._retry(self._whole, ids[start : start + _PAGE]):
                    yield found

    def _ids(self) -> Iterator[list[PointId]]:
        offset: models.ExtendedPointId | None = None
        limit = self._retry(self._most)
        while True:
            records, following = self._retry(self._scan, limit, offset)
            yield [record.id for record in records if self._is_wanted(record)]  # type: ignore[misc]
            if following is None:
                return
            if following == offset:
                raise TargetError(
                    f"{self._collection}: the server gives the same page of points again and again",
                    hint="Not all points could be read. See the server's log, then run again.",
                )
            offset = following

    def _scan(
        self, limit: int, offset: models.ExtendedPointId | None
    ) -> tuple[list[models.Record], models.ExtendedPointId | None]:
        with self._connection.translated(f"reading points of {self._collection}"):
            return self._connection.client.scroll(
                self._collection,
                limit=limit,
                offset=offset,
                with_payload=[SYNC_KEY],
                with_vectors=False,
            )

    def _whole(self, ids: Sequence[PointId]) -> list[Foreign]:
        with self._connection.translated(f"reading points of {self._collection}"):
            records = self._connection.client.retrieve(
                self._collection, ids=list(ids), with_payload=True, with_vectors=self._vectors
            )
        return [
            Foreign(record.id, record.payload or {}, _vectors(record.vector))  # type: ignore[arg-type]
            for record in records
            if self._is_wanted(record)
        ]

    def _is_wanted(self, record: models.Record) -> bool:
        return self._everything or is_foreign(record.payload or {})

    def _most(self) -> int:
        if self._connection.local:
            return _SCAN
        with self._connection.translated(f"reading {self._collection}"):
            found = self._connection.client.get_collection(self._collection)
        strict = found.config.strict_mode_config
        allowed = strict.max_query_limit if strict is not None and strict.enabled else None
        return min(_SCAN, allowed or _SCAN)


def _vectors(found: models.VectorStructOutput | None) -> dict[str, object]:
    """Return vectors by name as JSON has them; one without a name is called ""."""
    if found is None:
        return {}
    named = found if isinstance(found, dict) else {"": found}
    return {
        name: vector.model_dump() if isinstance(vector, models.SparseVector) else vector
        for name, vector in named.items()
    }
