"""Points as the client's own models have them."""

from __future__ import annotations

from collections.abc import Sequence

from qdrant_client import models

from syncer.model import Point, SparseVector, Vector


def structs(points: Sequence[Point]) -> list[models.PointStruct]:
    """Return points as the client takes them."""
    return [
        models.PointStruct(id=point.id, payload=dict(point.payload), vector=named(point))  # type: ignore[arg-type]
        for point in points
    ]


def named(point: Point) -> dict[str, list[float] | models.SparseVector]:
    """Return a point's vectors by name as the client takes them."""
    return {name: as_client(vector) for name, vector in point.vectors.items()}


def as_client(vector: Vector | SparseVector) -> list[float] | models.SparseVector:
    """Return a vector as the client takes it."""
    if isinstance(vector, SparseVector):
        return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    listed = getattr(vector, "tolist", None)  # numpy's rows convert themselves, and much faster
    return listed() if listed is not None else list(vector)
