"""Asking one generation, whose recipe made the question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from qdrant_client import models

from syncer.errors import SettingsError
from syncer.model import SYNC_KEY, Description, Hit, Question
from syncer.target.connection import Connection
from syncer.target.structs import as_client

_MOST = 10_000  # points that are asked for to find enough rows
_GROWTH = 4  # how many times more are asked for when the points were those of too few rows


def query(
    connection: Connection,
    generation: str,
    described: Description,
    question: Question,
    limit: int,
    where: Mapping[str, object],
) -> list[Hit]:
    """Return the `limit` rows nearest to `question`, the best first, each by its best chunk.

    `where` keeps points whose metadata have these values. A question without a term that counts
    finds nothing.
    """
    conditions: list[models.Condition] = [
        _is(f"{described.metadata_key}.{name}", str(value)) for name, value in where.items()
    ]
    keep = models.Filter(must=conditions) if conditions else None
    wanted = limit
    while True:
        prefetch = _prefetches(described, question, wanted, keep)
        if not prefetch:
            return []
        points = _ask(connection, generation, prefetch, wanted, keep)
        hits = _by_row([_hit(point.score, point.payload or {}, described) for point in points])
        if len(hits) >= limit or len(points) < wanted or wanted >= _MOST:
            return hits[:limit]
        wanted = min(_MOST, wanted * _GROWTH)


def _prefetches(
    described: Description, question: Question, limit: int, keep: models.Filter | None
) -> list[models.Prefetch]:
    """Return what to ask of each vector; nothing for a sparse question without terms."""
    found = []
    if question.dense is not None:
        using = described.recipe.vector
        dense = as_client(question.dense)
        found.append(models.Prefetch(query=dense, using=using, limit=limit, filter=keep))
    if question.sparse is not None:
        using = described.recipe.sparse_vector
        if not using:
            raise SettingsError(
                "the collection has no sparse vector",
                hint="Search with --mode dense; or set sparse.enabled = true and build it anew.",
            )
        if question.sparse.indices:
            sparse = as_client(question.sparse)
            found.append(models.Prefetch(query=sparse, using=using, limit=limit, filter=keep))
    return found


def _ask(
    connection: Connection,
    generation: str,
    prefetch: Sequence[models.Prefetch],
    limit: int,
    keep: models.Filter | None,
) -> list[models.ScoredPoint]:
    with connection.translated(f"searching {generation}"):
        if len(prefetch) > 1:
            return connection.client.query_points(
                generation,
                prefetch=list(prefetch),
                query=models.FusionQuery(fusion=models.Fusion.RRF),
                limit=limit,
                with_payload=True,
            ).points
        (only,) = prefetch
        return connection.client.query_points(
            generation,
            query=only.query,
            using=only.using,
            limit=limit,
            with_payload=True,
            query_filter=keep,
        ).points


def _by_row(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hit of each row; foreign points, of no row, stay each by itself."""
    rows: dict[str, Hit] = {}
    for number, hit in enumerate(hits):
        rows.setdefault(hit.row or f"foreign {number}", hit)
    return list(rows.values())


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
