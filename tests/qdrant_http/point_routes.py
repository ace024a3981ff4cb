"""What is asked of points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import qdrant_edge as edge
from pydantic import TypeAdapter
from qdrant_client.http import models

from qdrant_http import filters, groups, queries, strict, writes
from qdrant_http.answers import not_found
from qdrant_http.bodies import SELECTOR, UPSERT, Call, at_least_one, check_ids
from qdrant_http.collection import Collection
from qdrant_http.collection_routes import done

_SET = TypeAdapter(models.SetPayload)
_DELETE_PAYLOAD = TypeAdapter(models.DeletePayload)
_UPDATE_VECTORS = TypeAdapter(models.UpdateVectors)
_DELETE_VECTORS = TypeAdapter(models.DeleteVectors)
_BATCH = TypeAdapter(models.UpdateOperations)
_RETRIEVE = TypeAdapter(models.PointRequest)
_SCROLL = TypeAdapter(models.ScrollRequest)
_COUNT = TypeAdapter(models.CountRequest)
_QUERY = TypeAdapter(models.QueryRequest)
_QUERIES = TypeAdapter(models.QueryRequestBatch)
_GROUPS = TypeAdapter(models.QueryGroupsRequest)


def _collection(call: Call) -> Collection:
    return call.store.get(call.path["name"])


def _write(call: Call, found: Collection, *made: writes.Made) -> int:
    """Check strict mode and apply; return the number of the last operation."""
    for _, condition, number in made:
        strict.check_write(found.strict, found.kept.indexes, condition)
        strict.check_limit(found.strict, number, name="upsert limit")
    return found.apply([operation for operation, _, _ in made], wait=call.wait)


def upsert(call: Call) -> object:
    """Write whole points."""
    found = _collection(call)
    number = _write(call, found, writes.of_upsert(call.read(UPSERT)))
    return done(number, wait=call.wait)


def _selected(make: Callable[[models.PointsSelector], edge.UpdateOperation], call: Call) -> object:
    found = _collection(call)
    asked = call.read(SELECTOR)
    number = _write(call, found, (make(asked), writes.filter_of(asked), 0))
    return done(number, wait=call.wait)


delete = partial(_selected, writes.delete)
clear_payload = partial(_selected, writes.clear_payload)


def _filtered(
    form: TypeAdapter[Any], make: Callable[[Any], edge.UpdateOperation], call: Call
) -> object:
    found = _collection(call)
    asked = call.read(form)
    number = _write(call, found, (make(asked), asked.filter, 0))
    return done(number, wait=call.wait)


set_payload = partial(_filtered, _SET, writes.set_payload)
overwrite_payload = partial(_filtered, _SET, writes.overwrite_payload)
delete_payload = partial(_filtered, _DELETE_PAYLOAD, writes.delete_payload)
delete_vectors = partial(_filtered, _DELETE_VECTORS, writes.delete_vectors)


def update_vectors(call: Call) -> object:
    """Replace some vectors of points."""
    found = _collection(call)
    asked = call.read(_UPDATE_VECTORS)
    made = (writes.update_vectors(asked), asked.update_filter, len(asked.points))
    return done(_write(call, found, made), wait=call.wait)


def batch(call: Call) -> object:
    """Apply several operations in their order; those before one that fails stay applied."""
    found = _collection(call)
    made = [writes.of_batch(one) for one in call.read(_BATCH).operations]
    last = _write(call, found, *made)
    return [done(last - len(made) + place + 1, wait=call.wait) for place in range(len(made))]


def retrieve(call: Call) -> object:
    """Answer with points by their ids."""
    asked = call.read(_RETRIEVE)
    check_ids(asked.ids)
    payload = True if asked.with_payload is None else queries.payload_of(asked.with_payload)
    return queries.records(
        _collection(call).use(
            lambda shard: shard.retrieve(list(asked.ids), payload, asked.with_vector or False)
        )
    )


def retrieve_one(call: Call) -> object:
    """Answer with one point."""
    text = call.path["id"]
    wanted: edge.PointId = int(text) if text.isdecimal() else text
    check_ids([wanted])
    found = _collection(call).use(
        lambda shard: shard.retrieve([wanted], with_payload=True, with_vector=True)
    )
    if not found:
        raise not_found(f"Point with id {text} does not exists!")
    return queries.records(found)[0]


def scroll(call: Call) -> object:
    """Answer with a page of points in the order of their ids."""
    asked = call.read(_SCROLL)
    found = _collection(call)
    limit = at_least_one(asked.limit, queries.LIMIT)
    strict.check_limit(found.strict, limit)
    strict.check_read(found.strict, found.kept.indexes, asked.filter)
    if asked.offset is not None:
        check_ids([asked.offset])

    def page(shard: edge.EdgeShard) -> tuple[list[edge.Record], edge.PointId | None]:
        return shard.scroll(
            edge.ScrollRequest(
                offset=asked.offset,
                limit=limit,
                filter=filters.to_edge(asked.filter),
                with_payload=True
                if asked.with_payload is None
                else queries.payload_of(asked.with_payload),
                with_vector=asked.with_vector or False,
                order_by=None if asked.order_by is None else queries.order_of(asked.order_by),
            )
        )

    points, following = found.use(page)
    return {"points": queries.records(points), "next_page_offset": following}


def count(call: Call) -> object:
    """Answer with the number of points."""
    asked = call.read(_COUNT)
    found = _collection(call)
    strict.check_read(found.strict, found.kept.indexes, asked.filter)
    number = found.use(
        lambda shard: shard.count(
            edge.CountRequest(exact=True, filter=filters.to_edge(asked.filter))
        )
    )
    return {"count": number}


def query(call: Call) -> object:
    """Answer with the points that fit best."""
    return _queried(_collection(call), call.read(_QUERY))


def query_batch(call: Call) -> object:
    """Answer several queries."""
    found = _collection(call)
    return [_queried(found, one) for one in call.read(_QUERIES).searches]


def _queried(found: Collection, asked: models.QueryRequest) -> models.QueryResponse:
    limit = at_least_one(asked.limit, queries.LIMIT)
    strict.check_limit(found.strict, limit)
    strict.check_read(found.strict, found.kept.indexes, *queries.filters_of(asked))
    points = found.use(lambda shard: shard.query(queries.query_of(shard, asked, limit)))
    return models.QueryResponse.model_construct(points=queries.scored(points))


def query_groups(call: Call) -> object:
    """Answer with the best points of the best groups."""
    found = _collection(call)
    asked = call.read(_GROUPS)
    strict.check_read(found.strict, found.kept.indexes, *queries.filters_of(asked))
    return found.use(lambda shard: groups.groups(shard, asked))
