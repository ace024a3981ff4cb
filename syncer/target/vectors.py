"""Reading the vectors that a generation holds, to be used again."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import cast

from qdrant_client import models

from syncer.keys import PointId
from syncer.model import SYNC_KEY, SparseVector, StoredVectors, Vector
from syncer.target.connection import Connection

_NUMBERS = 100_000  # of the vectors in one answer: some 2 MB of JSON


class StoredPoints:
    """One generation's vectors; see ``syncer.reuse.Lender`` for the contract."""

    def __init__(self, connection: Connection, generation: str, dimension: int) -> None:
        self._connection = connection
        self._generation = generation
        self._page = max(1, _NUMBERS // max(1, dimension))

    def stored(self, ids: Sequence[PointId], names: Sequence[str]) -> list[StoredVectors]:
        """Return what these points hold of the vectors `names`."""
        found: list[StoredVectors] = []
        for start in range(0, len(ids), self._page):
            with self._connection.translated(f"reading vectors of {self._generation}"):
                records = self._connection.client.retrieve(
                    self._generation,
                    ids=list(ids[start : start + self._page]),
                    with_payload=[SYNC_KEY],
                    with_vectors=list(names) if names else False,
                )
            found += map(_stored, records)
        return found


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
        vectors={name: _ours(vector) for name, vector in found.items()},
    )


def _ours(vector: object) -> Vector | SparseVector:
    if isinstance(vector, models.SparseVector):
        return SparseVector(vector.indices, vector.values)
    return array("d", cast("Sequence[float]", vector))  # no vector of syncer's is a matrix
