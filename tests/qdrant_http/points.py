"""Points, sparse vectors and filters as the tests of the server write them down."""

from __future__ import annotations

import uuid

from qdrant_client import models

ROW = str(uuid.UUID(int=77))
IDF = models.SparseVectorParams(modifier=models.Modifier.IDF)


def point(number: int | str, *dense: float, **payload: object) -> models.PointStruct:
    """Return a point with a dense vector `d`, if numbers are given for it."""
    vector: dict[str, models.Vector] = {"d": list(dense)} if dense else {}
    return models.PointStruct(id=number, vector=vector, payload=payload)


def sparse(**weights: float) -> models.SparseVector:
    """Return a sparse vector: ``sparse(i3=1.0)`` has the weight 1 at index 3."""
    indices = [int(name.removeprefix("i")) for name in weights]
    return models.SparseVector(indices=indices, values=list(weights.values()))


def where(key: str, value: str | int | bool) -> models.Filter:
    """Return a filter for points whose payload has this value."""
    match = models.MatchValue(value=value)
    return models.Filter(must=[models.FieldCondition(key=key, match=match)])
