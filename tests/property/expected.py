"""What the target must hold, told from the rows alone, and how it differs from what it holds."""

from __future__ import annotations

from collections import defaultdict

from property.embedding import RECIPE, by_characters, vector_of
from property.process import Mapping
from property.qdrants import Held
from property.tables import Record

from syncer.keys import Key, PointId, encode_key, point_id
from syncer.model import SYNC_KEY
from syncer.text import as_json, digest, is_blank, normalise, parse_json, payload_digest

_CLOSE = 1e-5  # float32, normalised by the target once more

Expected = dict[PointId, tuple[dict[str, object], tuple[float, ...]]]
"""Payload and vector by point id."""


def is_in_scope(record: Record, mapping: Mapping, now: str | None) -> bool:
    """Say whether a row has points at `now`; None leaves the expiry out of account."""
    expired = now is not None and record.expires_at is not None and record.expires_at <= now
    left_out = mapping.where is not None and record.scope == "out"
    return not (expired or left_out or record.is_deleted or is_blank(record.content))


def points_of(table: str, record: Record, mapping: Mapping) -> Expected:
    """Return the points of a row in scope."""
    values = {"agent": record.agent, "metadata": parse_json(record.metadata)}
    chosen = {name: values[name] for name in mapping.metadata}
    metadata = as_json({**chosen, "sqlite_id": _readable(record.key)})
    return _points(table, record.key, normalise(record.content), metadata)


def by_row(held: Held) -> dict[str, Held]:
    """Return the points of each row by its key as JSON; what bears no key is under ''."""
    found: dict[str, dict[PointId, object]] = defaultdict(dict)
    for point, (payload, vectors) in held.items():
        record = payload.get(SYNC_KEY) if isinstance(payload, dict) else None
        row = record.get("row") if isinstance(record, dict) else None
        found[str(row or "")][point] = (payload, vectors)
    return dict(found)  # type: ignore[arg-type]


def differences(held: Held, expected: Expected) -> list[str]:
    """Return one sentence for each point that is missing, too much or not as it should be."""
    found = [f"missing: {expected[point]}" for point in expected.keys() - held.keys()]
    found += [f"too much: {held[point]}" for point in held.keys() - expected.keys()]
    for point in held.keys() & expected.keys():
        (payload, vectors), (wanted, vector) = held[point], expected[point]
        if payload != wanted:
            found.append(f"the payload is {payload}, not {wanted}")
        if vectors.keys() != {RECIPE.vector}:
            found.append(f"{wanted} has the vectors {list(vectors)}")
        elif not _same(vectors[RECIPE.vector], vector):
            found.append(f"{wanted} has the vector of another text")
    return sorted(found)


def _points(table: str, key: Key, text: str, metadata: object) -> Expected:
    pieces = by_characters(text)
    record = {
        "row": encode_key(key),
        "content": digest(text),
        "payload": payload_digest({"document": None, "metadata": metadata}),
        "chunks": len(pieces),
    }
    return {
        point_id(table, key, number): (
            {
                "document": piece,
                "metadata": metadata,
                SYNC_KEY: {**record, "text": digest(piece), "chunk": number},
            },
            vector_of(piece),
        )
        for number, piece in enumerate(pieces)
    }


def _readable(key: Key) -> object:
    return key[0] if len(key) == 1 else encode_key(key)


def _same(found: object, wanted: tuple[float, ...]) -> bool:
    numbers = [float(number) for number in found]  # type: ignore[attr-defined]
    return len(numbers) == len(wanted) and all(
        abs(a - b) < _CLOSE for a, b in zip(numbers, wanted, strict=True)
    )
