"""Asking a collection, the way its readers do: through the alias."""

from __future__ import annotations

import json
from collections.abc import Mapping

from qdrant_client import models

from syncer.model import SYNC_KEY, Description, Hit, Vector
from syncer.target.connection import Connection
from syncer.target.points import numbers


def query(
    connection: Connection,
    alias: str,
    described: Description,
    vector: Vector,
    limit: int,
    where: Mapping[str, object],
) -> list[Hit]:
    """Return the `limit` nearest points to `vector`, the best first.

    `where` keeps points whose metadata have these values.
    """
    conditions: list[models.Condition] = [
        _is(f"{described.metadata_key}.{name}", str(value)) for name, value in where.items()
    ]
    with connection.translated(f"searching {alias}"):
        answer = connection.client.query_points(
            alias,
            query=numbers(vector),
            using=described.recipe.vector,
            limit=limit,
            with_payload=True,
            query_filter=models.Filter(must=conditions) if conditions else None,
        )
    return [_hit(point.score, point.payload or {}, described) for point in answer.points]


def _is(key: str, text: str) -> models.Filter:
    """Return a filter for a value that was typed: the text, or the number or truth it spells."""
    wanted: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=text))
    ]
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, bool):
        wanted.append(models.FieldCondition(key=key, match=models.MatchValue(value=value)))
    elif isinstance(value, (int, float)):
        wanted.append(models.FieldCondition(key=key, range=models.Range(gte=value, lte=value)))
    return models.Filter(should=wanted)


def _hit(score: float, payload: Mapping[str, object], described: Description) -> Hit:
    record, metadata = payload.get(SYNC_KEY), payload.get(described.metadata_key)
    return Hit(
        row=str(record.get("row", "")) if isinstance(record, dict) else "",
        score=score,
        document=str(payload.get(described.document_key, "")),
        metadata=metadata if isinstance(metadata, dict) else {},
    )
