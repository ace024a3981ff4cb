"""Reading the vectors that a generation holds, to be used again."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

from qdrant_client import models

from syncer.errors import SyncerError
from syncer.keys import PointId
from syncer.model import SYNC_KEY, SparseVector, StoredVectors, Vector
from syncer.target.connection import Connection

_NUMBERS = 100_000  # of the vectors in one answer: some 2 MB of JSON


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Points that were asked for before anybody wanted them."""

    names: tuple[str, ...]
    answer: Future[list[StoredVectors]]


class StoredPoints:
    """One generation's vectors; see ``syncer.ports.Lender`` for the contract.

    A walk asks for the points of one window after the other. While a window is written, as many
    points behind it are on their way already, from a server that is; what turns out not to be
    asked for is dropped.
    """

    def __init__(
        self, connection: Connection, generation: str, dimension: int, document_key: str
    ) -> None:
        self._connection = connection
        self._generation = generation
        self._document_key = document_key
        self._page = max(1, _NUMBERS // max(1, dimension))
        self._ahead: _Ahead | None = None
        self._thread = None if connection.local else ThreadPoolExecutor(max_workers=1)

    def stored(self, ids: Sequence[PointId], names: Sequence[str]) -> list[StoredVectors]:
        """Return what these points hold of the vectors `names`."""
        known = self._known(tuple(names))
        wanted = set(ids)
        found = [one for one in known if one.id in wanted]
        there = {one.id for one in found}
        found += self._retrieved([one for one in ids if one not in there], names)
        self._ask_ahead(ids, tuple(names))
        return found

    def pieces(self, ids: Sequence[PointId]) -> dict[PointId, str]:
        """Return the texts of these points."""
        found: dict[PointId, str] = {}
        for some in self._cut(ids):
            with self._connection.translated(f"reading points of {self._generation}"):
                records = self._connection.client.retrieve(
                    self._generation, ids=some, with_payload=[self._document_key]
                )
            for record in records:
                text = (record.payload or {}).get(self._document_key)
                if isinstance(text, str):
                    found[record.id] = text  # type: ignore[index] # a UUID comes as text
        return found

    def _retrieved(self, ids: Sequence[PointId], names: Sequence[str]) -> list[StoredVectors]:
        found: list[StoredVectors] = []
        for some in self._cut(ids):
            with self._connection.translated(f"reading vectors of {self._generation}"):
                records = self._connection.client.retrieve(
                    self._generation,
                    ids=some,
                    with_payload=[SYNC_KEY],
                    with_vectors=list(names) if names else False,
                )
            found += map(_stored, records)
        return found

    def _known(self, names: tuple[str, ...]) -> list[StoredVectors]:
        """Return what was asked for ahead, if that went well."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead.names != names:
            return []
        try:
            return ahead.answer.result()
        except SyncerError:  # it is asked for once more, and told then
            return []

    def _ask_ahead(self, ids: Sequence[PointId], names: tuple[str, ...]) -> None:
        """Ask for as many points behind these; ids that are no numbers are in nobody's order."""
        numbers = [one for one in ids if isinstance(one, int)]
        if self._thread is not None and numbers and len(numbers) == len(ids):
            behind = self._thread.submit(self._behind, max(numbers) + 1, len(numbers), names)
            self._ahead = _Ahead(names, behind)

    def _behind(self, first: int, count: int, names: tuple[str, ...]) -> list[StoredVectors]:
        found: list[StoredVectors] = []
        offset: models.ExtendedPointId | None = first
        while offset is not None and len(found) < count:
            with self._connection.translated(f"reading vectors of {self._generation}"):
                records, offset = self._connection.client.scroll(
                    self._generation,
                    limit=min(self._page, count - len(found)),
                    offset=offset,
                    with_payload=[SYNC_KEY],
                    with_vectors=list(names) if names else False,
                )
            found += map(_stored, records)
        return found

    def _cut(self, ids: Sequence[PointId]) -> Iterator[list[PointId]]:
        for start in range(0, len(ids), self._page):
            yield list(ids[start : start + self._page])


def _stored(record: models.Record) -> StoredVectors:
    said = (record.payload or {}).get(SYNC_KEY)
    known: Mapping[str, object] = said if isinstance(said, dict) else {}
    row, chunks = known.get("row"), known.get("chunks")
    found = record.vector if isinstance(record.vector, dict) else {}
    return StoredVectors(
        id=record.id,  # type: ignore[arg-type] # a UUID comes as text
        row=row if isinstance(row, str) else None,
        text=str(known.get("text", "")),
        chunks=chunks if isinstance(chunks, int) else 1,
        content=str(known.get("content", "")),
        vectors={name: _ours(vector) for name, vector in found.items()},
    )


def _ours(vector: object) -> Vector | SparseVector:
    if isinstance(vector, models.SparseVector):
        return SparseVector(vector.indices, vector.values)
    return array("d", cast("Sequence[float]", vector))  # no vector of syncer's is a matrix
