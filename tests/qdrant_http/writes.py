"""Writes to points: requests as the engine's operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import qdrant_edge as edge
from qdrant_client.http import models

from qdrant_http import engine, filters
from qdrant_http.answers import bad_request, invalid, malformed, not_offered
from qdrant_http.bodies import check_ids, check_sparse

Upsert = models.PointsList | models.PointsBatch
Selected = models.SetPayload | models.DeletePayload | models.DeleteVectors
_MODES = {
    models.UpdateMode.UPSERT: edge.UpdateMode.Upsert,
    models.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly,
    models.UpdateMode.UPDATE_ONLY: edge.UpdateMode.UpdateOnly,
}


def upsert(asked: Upsert) -> edge.UpdateOperation:
    """Return the operation that writes whole points."""
    part: models.PointsList | models.Batch
    if isinstance(asked, models.PointsList):
        part, condition, mode = asked, asked.update_filter, asked.update_mode
        ids = [one.id for one in asked.points]
        rows = ((one.id, one.vector, one.payload) for one in asked.points)
        points = _points(ids, rows)
    else:
        part, condition, mode = asked.batch, asked.update_filter, asked.update_mode
        points = _points(part.ids, _batch_rows(part))
    if not points:
        raise bad_request("Empty update request")
    with engine.translated():
        return edge.UpdateOperation.upsert_points(
            points,
            condition=filters.to_edge(condition),
            update_mode=None if mode is None else _MODES[mode],
        )


def _batch_rows(batch: models.Batch) -> Iterator[tuple[object, object, object]]:
    number = len(batch.ids)
    vectors: Sequence[object]
    if isinstance(batch.vectors, dict):
        names = list(batch.vectors)
        if any(len(column) != number for column in batch.vectors.values()):
            raise invalid("batch.batch: number of ids and vectors must be equal")
        columns = zip(*batch.vectors.values(), strict=True) if names else iter([()] * number)
        vectors = [dict(zip(names, row, strict=True)) for row in columns]
    else:
        vectors = batch.vectors
    payloads: Sequence[object] = batch.payloads or [None] * number
    if not number == len(vectors) == len(payloads):
        raise invalid(
            f"batch.batch: number of ids and vectors must be equal ({number} != {len(vectors)})"
        )
    return zip(batch.ids, vectors, payloads, strict=True)


def _points(
    ids: Sequence[object], rows: Iterator[tuple[object, object, object]]
) -> list[edge.Point]:
    made = [
        (one, _vectors(vector, index), payload) for index, (one, vector, payload) in enumerate(rows)
    ]
    try:
        return [edge.Point(*one) for one in made]  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        check_ids(ids)
        raise malformed(str(error).splitlines()[0]) from error


def _vectors(
    vector: object, index: int
) -> dict[str, edge.NamedVector] | list[float] | list[list[float]]:
    if isinstance(vector, dict):
        return {
            name: one if isinstance(one, list) else _sparse(one, f"points[{index}].vector.?")
            for name, one in vector.items()
        }
    if isinstance(vector, list):
        return vector
    raise not_offered("inference")


def _sparse(vector: object, place: str) -> edge.SparseVector:
    if not isinstance(vector, models.SparseVector):
        raise not_offered("inference")
    check_sparse(vector, place)
    with engine.translated():
        return edge.SparseVector(vector.indices, vector.values)


def _some(ids: Sequence[edge.PointId] | None) -> list[edge.PointId]:
    """Return ids that a write may name; raises RefusedError if there is none, or a bad one."""
    if not ids:
        raise bad_request("Empty update request")
    check_ids(ids)
    return list(ids)


def delete(asked: models.PointsSelector) -> edge.UpdateOperation:
    """Return the operation that deletes points by their ids or by a filter."""
    if isinstance(asked, models.PointIdsList):
        return edge.UpdateOperation.delete_points(_some(asked.points))
    return edge.UpdateOperation.delete_points_by_filter(_filter(asked.filter))


def clear_payload(asked: models.PointsSelector) -> edge.UpdateOperation:
    """Return the operation that takes points' payloads away."""
    if isinstance(asked, models.PointIdsList):
        return edge.UpdateOperation.clear_payload(_some(asked.points))
    return edge.UpdateOperation.clear_payload_by_filter(_filter(asked.filter))


def set_payload(asked: models.SetPayload) -> edge.UpdateOperation:
    """Return the operation that sets keys of points' payloads."""
    with engine.translated():
        if asked.points is not None:
            return edge.UpdateOperation.set_payload(_some(asked.points), asked.payload, asked.key)
        return edge.UpdateOperation.set_payload_by_filter(
            _required(asked), asked.payload, asked.key
        )


def overwrite_payload(asked: models.SetPayload) -> edge.UpdateOperation:
    """Return the operation that replaces points' payloads."""
    with engine.translated():
        if asked.points is not None:
            return edge.UpdateOperation.overwrite_payload(
                _some(asked.points), asked.payload, asked.key
            )
        return edge.UpdateOperation.overwrite_payload_by_filter(
            _required(asked), asked.payload, asked.key
        )


def delete_payload(asked: models.DeletePayload) -> edge.UpdateOperation:
    """Return the operation that takes keys out of points' payloads."""
    with engine.translated():
        if asked.points is not None:
            return edge.UpdateOperation.delete_payload(_some(asked.points), asked.keys)
        return edge.UpdateOperation.delete_payload_by_filter(_required(asked), asked.keys)


def update_vectors(asked: models.UpdateVectors) -> edge.UpdateOperation:
    """Return the operation that replaces some vectors of points."""
    _some([one.id for one in asked.points])
    with engine.translated():
        points = [
            edge.PointVectors(one.id, _vectors(one.vector, index))
            for index, one in enumerate(asked.points)
        ]
        return edge.UpdateOperation.update_vectors(
            points, condition=filters.to_edge(asked.update_filter)
        )


def delete_vectors(asked: models.DeleteVectors) -> edge.UpdateOperation:
    """Return the operation that takes some vectors of points away."""
    if asked.points is not None:
        return edge.UpdateOperation.delete_vectors(_some(asked.points), asked.vector)
    return edge.UpdateOperation.delete_vectors_by_filter(_required(asked), asked.vector)


def _required(asked: Selected) -> edge.Filter:
    if asked.filter is None:
        raise invalid("__all__: at least one of points and filter must be provided")
    return _filter(asked.filter)


def _filter(asked: models.Filter) -> edge.Filter:
    with engine.translated():
        return filters.to_edge(asked) or edge.Filter()


Made = tuple[edge.UpdateOperation, models.Filter | None, int]
"""An operation, the filter that it is bound by, and the number of points that it carries."""


def of_batch(asked: models.UpdateOperation) -> Made:
    """Return one of the operations of a batch."""
    match asked:
        case models.UpsertOperation(upsert=one):
            return of_upsert(one)
        case models.UpdateVectorsOperation(update_vectors=one):
            return update_vectors(one), one.update_filter, len(one.points)
        case models.DeleteOperation(delete=one):
            return delete(one), filter_of(one), 0
        case models.ClearPayloadOperation(clear_payload=one):
            return clear_payload(one), filter_of(one), 0
        case _:
            return _of_filtered(asked)


def _of_filtered(asked: models.UpdateOperation) -> Made:
    """Return one of the operations that name their points or a filter themselves."""
    match asked:
        case models.SetPayloadOperation(set_payload=one):
            return set_payload(one), one.filter, 0
        case models.OverwritePayloadOperation(overwrite_payload=one):
            return overwrite_payload(one), one.filter, 0
        case models.DeletePayloadOperation(delete_payload=one):
            return delete_payload(one), one.filter, 0
        case models.DeleteVectorsOperation(delete_vectors=one):
            return delete_vectors(one), one.filter, 0
        case _:
            raise malformed("unknown operation")


def of_upsert(asked: Upsert) -> Made:
    """Return the operation that writes whole points, with its filter and number."""
    number = len(asked.points if isinstance(asked, models.PointsList) else asked.batch.ids)
    return upsert(asked), asked.update_filter, number


def filter_of(asked: models.PointsSelector) -> models.Filter | None:
    """Return the filter that selects points, if it is one that does."""
    return asked.filter if isinstance(asked, models.FilterSelector) else None
