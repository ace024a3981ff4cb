"""Reading the vectors that a generation holds, to be used again."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel
from qdrant_client import models

from syncer.keys import PointId
from syncer.model import SYNC_KEY, SparseVector, StoredVectors, Vector
from syncer.target.connection import Connection
from syncer.target.rest import ask

_NUMBERS = 100_000  # of the vectors in one answer: some 2 MB of JSON


class _Retrieved(BaseModel):
    result: list[Any]


class StoredPoints:
    """One generation's vectors; see ``syncer.ports.Lender`` for the contract."""

    def __init__(
        self, connection: Connection, generation: str, dimension: int, document_key: str
    ) -> None:
        self._connection = connection
        self._generation = generation
        self._document_key = document_key
        self._page = max(1, _NUMBERS // max(1, dimension))

    def stored(self, ids: Sequence[PointId], names: Sequence[str]) -> list[StoredVectors]:
        """Return what these points hold of the vectors `names`."""
        found: list[StoredVectors] = []
        for some in self._cut(ids):
            with self._connection.translated(f"reading vectors of {self._generation}"):
                found += self._read(some, names)
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

    def _read(self, ids: list[PointId], names: Sequence[str]) -> list[StoredVectors]:
        vectors = list(names) or False
        if not self._connection.spec.rest:
            records = self._connection.client.retrieve(
                self._generation, ids=ids, with_payload=[SYNC_KEY], with_vectors=vectors
            )
            return [_stored(one.id, one.payload, one.vector) for one in records]
        asked = models.PointRequest(
            ids=ids,  # type: ignore[arg-type] # UUIDs as text
            with_payload=[SYNC_KEY],
            with_vector=vectors,
        )
        answer = ask(self._connection, self._generation, "/points", asked, _Retrieved)
        return [_stored(one["id"], one.get("payload"), one.get("vector")) for one in answer.result]

    def _cut(self, ids: Sequence[PointId]) -> Iterator[list[PointId]]:
        for start in range(0, len(ids), self._page):
            yield list(ids[start : start + self._page])


def _stored(identifier: Any, payload: Any, vectors: Any) -> StoredVectors:
    said = (payload or {}).get(SYNC_KEY)
    known: Mapping[str, object] = said if isinstance(said, dict) else {}
    row, chunks = known.get("row"), known.get("chunks")
    found = vectors if isinstance(vectors, dict) else {}
    return StoredVectors(
        id=identifier,
        row=row if isinstance(row, str) else None,
        text=str(known.get("text", "")),
        chunks=chunks if isinstance(chunks, int) else 1,
        content=str(known.get("content", "")),
        vectors={name: _ours(vector) for name, vector in found.items()},
    )


def _ours(vector: object) -> Vector | SparseVector:
    if isinstance(vector, models.SparseVector):
        return SparseVector(vector.indices, vector.values)
    if isinstance(vector, dict):
        return SparseVector(vector["indices"], vector["values"])
    return array("f", cast("Sequence[float]", vector))  # no vector of syncer's is a matrix
