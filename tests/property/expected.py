"""What the target must hold, told from the table alone, and how it differs from what it holds."""

from __future__ import annotations

import sqlite3
from functools import cache

from property.modes import TABLE
from property.process import EMBEDDER, Mapping, by_characters
from property.qdrants import Held

from syncer.keys import PointId, encode_key, point_id
from syncer.model import SYNC_KEY
from syncer.text import as_json, digest, is_blank, normalise, parse_json, payload_digest

_CLOSE = 1e-5  # float32, normalised by the target once more

Expected = dict[PointId, tuple[dict[str, object], tuple[float, ...]]]
"""Payload and vector by point id."""


@cache
def vector_of(text: str) -> tuple[float, ...]:
    """Return the vector of this very text."""
    (vector,) = EMBEDDER.embed([text]).vectors
    return tuple(float(number) for number in vector)


def expected_points(database: sqlite3.Connection, mapping: Mapping, now: str) -> Expected:
    """Return the points of every row in scope at `now`."""
    rows = database.execute(
        f"SELECT id, agent, scope, content, metadata, expires_at FROM {TABLE} "
        "WHERE superseded_by IS NULL AND deleted_by IS NULL"
    )
    expected: Expected = {}
    for row, agent, scope, content, metadata, expires_at in rows:
        expired = expires_at is not None and expires_at <= now
        if expired or is_blank(content) or (mapping.where and scope == "out"):
            continue
        values = {"agent": agent, "metadata": parse_json(metadata)}
        chosen = {name: values[name] for name in mapping.metadata}
        expected |= _points(row, normalise(content), {**chosen, "sqlite_id": row})
    return expected


def _points(row: int, text: str, metadata: dict[str, object]) -> Expected:
    pieces = by_characters(text)
    metadata = as_json(metadata)  # type: ignore[assignment]
    record = {
        "row": encode_key((row,)),
        "content": digest(text),
        "payload": payload_digest({"document": None, "metadata": metadata}),
        "chunks": len(pieces),
    }
    return {
        point_id(TABLE, (row,), number): (
            {
                "document": piece,
                "metadata": metadata,
                SYNC_KEY: {**record, "text": digest(piece), "chunk": number},
            },
            vector_of(piece),
        )
        for number, piece in enumerate(pieces)
    }


def differences(held: Held, expected: Expected) -> list[str]:
    """Return one sentence for each point that is missing, too much or not as it should be."""
    found = [f"missing: {expected[point]}" for point in expected.keys() - held.keys()]
    found += [f"too much: {held[point]}" for point in held.keys() - expected.keys()]
    for point in held.keys() & expected.keys():
        (payload, vectors), (wanted, vector) = held[point], expected[point]
        if payload != wanted:
            found.append(f"the payload is {payload}, not {wanted}")
        if vectors.keys() != {EMBEDDER.recipe.vector}:
            found.append(f"{wanted} has the vectors {list(vectors)}")
        elif not _same(vectors[EMBEDDER.recipe.vector], vector):
            found.append(f"{wanted} has the vector of another text")
    return sorted(found)


def _same(found: object, wanted: tuple[float, ...]) -> bool:
    numbers = [float(number) for number in found]  # type: ignore[attr-defined]
    return len(numbers) == len(wanted) and all(
        abs(a - b) < _CLOSE for a, b in zip(numbers, wanted, strict=True)
    )
