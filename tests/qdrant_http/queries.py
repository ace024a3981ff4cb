"""Queries and look-ups: requests as the engine's, and what it finds as the server's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import qdrant_edge as edge
from qdrant_client.http import models

from qdrant_http import filters
from qdrant_http.answers import bad_request, not_found, not_offered
from qdrant_http.bodies import at_least_one, check_ids, check_sparse

LIMIT = 10  # points, where a request names no number
_RRF_K = 2
_Asked = models.QueryRequest | models.Prefetch | models.QueryGroupsRequest


def payload_of(asked: models.WithPayloadInterface | None) -> edge.WithPayloadType | None:
    """Return which payload keys are wanted, as the engine takes it."""
    if isinstance(asked, models.PayloadSelectorInclude):
        return list(asked.include)
    if isinstance(asked, models.PayloadSelectorExclude):
        return edge.PayloadSelector.Exclude(list(asked.exclude))
    return asked


def query_of(
    shard: edge.EdgeShard, asked: models.QueryRequest | models.QueryGroupsRequest, limit: int
) -> edge.QueryRequest:
    """Return a query as the engine takes it; vectors of points named by id are looked up."""
    scoring, excluded = _scoring(shard, asked)
    grouped = isinstance(asked, models.QueryGroupsRequest)
    return edge.QueryRequest(
        limit=limit,
        offset=None if isinstance(asked, models.QueryGroupsRequest) else asked.offset,
        query=scoring,
        prefetches=_prefetches(shard, asked),
        with_vector=asked.with_vector,
        with_payload=True if grouped else payload_of(asked.with_payload),
        filter=_without(filters.to_edge(asked.filter), excluded),
        score_threshold=asked.score_threshold,
        params=_params(asked.params),
    )


def _prefetches(shard: edge.EdgeShard, asked: _Asked) -> list[edge.Prefetch] | None:
    if asked.prefetch is None:
        return None
    several = asked.prefetch if isinstance(asked.prefetch, list) else [asked.prefetch]
    return [_prefetch(shard, one) for one in several]


def _prefetch(shard: edge.EdgeShard, asked: models.Prefetch) -> edge.Prefetch:
    scoring, excluded = _scoring(shard, asked)
    return edge.Prefetch(
        limit=at_least_one(asked.limit, LIMIT, "prefetch.limit"),
        query=scoring,
        prefetches=_prefetches(shard, asked),
        params=_params(asked.params),
        filter=_without(filters.to_edge(asked.filter), excluded),
        score_threshold=asked.score_threshold,
    )


def _params(asked: models.SearchParams | None) -> edge.SearchParams | None:
    if asked is None:
        return None
    return edge.SearchParams(
        hnsw_ef=asked.hnsw_ef, exact=bool(asked.exact), indexed_only=bool(asked.indexed_only)
    )


def _without(found: edge.Filter | None, excluded: edge.PointId | None) -> edge.Filter | None:
    """Return a filter that leaves out the point whose vector is asked with."""
    if excluded is None:
        return found
    other = edge.Filter(must_not=[edge.HasIdCondition({excluded})])
    return other if found is None else edge.Filter(must=[found, other])


def _scoring(
    shard: edge.EdgeShard, asked: _Asked
) -> tuple[edge.ScoringQueryType | None, edge.PointId | None]:
    """Return how points are scored, and the id of the point whose vector is asked with."""
    using = asked.using or ""
    match asked.query:
        case None:
            return None, None
        case models.FusionQuery() | models.RrfQuery():
            return _fusion(asked, asked.query), None
        case models.OrderByQuery(order_by=order):
            return order_of(order), None
        case models.SampleQuery():
            return edge.Sample.Random, None
        case models.NearestQuery(nearest=nearest, mmr=None):
            return _nearest(shard, nearest, using)
        case int() | str() | UUID() | list() | models.SparseVector():
            return _nearest(shard, asked.query, using)
    raise not_offered(f"{type(asked.query).__name__}")


def _fusion(asked: _Asked, query: models.FusionQuery | models.RrfQuery) -> Any:
    """Return how prefetched points are fused; the stubs do not know it for a query."""
    if not asked.prefetch:
        raise bad_request("A fusion query needs at least one prefetch")
    if isinstance(query, models.RrfQuery):
        return edge.Fusion.Rrf(_RRF_K if query.rrf.k is None else query.rrf.k, query.rrf.weights)
    rrf = query.fusion == models.Fusion.RRF
    return edge.Fusion.Rrf(_RRF_K) if rrf else edge.Fusion.Dbsf()


def _nearest(
    shard: edge.EdgeShard, asked: models.VectorInput, using: str
) -> tuple[edge.ScoringQueryType | None, edge.PointId | None]:
    if isinstance(asked, models.SparseVector):
        check_sparse(asked, "query")
        return edge.Query.Nearest(edge.SparseVector(asked.indices, asked.values), using), None
    if isinstance(asked, list):
        return edge.Query.Nearest(asked, using), None
    if not isinstance(asked, (int, str, UUID)):
        raise not_offered("inference")
    check_ids([asked])
    found = shard.retrieve([asked], with_payload=False, with_vector=[using] if using else True)
    if not found:
        raise not_found(f"No point with id {asked} found")
    vectors: Any = found[0].vector
    vector = vectors.get(using) if isinstance(vectors, dict) else vectors
    if vector is None:
        raise not_found(f"Vector with name {using} for point {asked}")
    return edge.Query.Nearest(vector, using), asked


def order_of(asked: models.OrderByInterface) -> edge.OrderBy:
    """Return an order as the engine takes it."""
    if isinstance(asked, str):
        return edge.OrderBy(asked)
    start = asked.start_from
    return edge.OrderBy(
        asked.key,
        edge.Direction.Desc if asked.direction == models.Direction.DESC else edge.Direction.Asc,
        start if start is None or isinstance(start, (int, float)) else start.isoformat(),
    )


def filters_of(asked: _Asked) -> list[models.Filter | None]:
    """Return a query's filters and those of all that it prefetches."""
    prefetched = asked.prefetch or []
    several = prefetched if isinstance(prefetched, list) else [prefetched]
    return [asked.filter, *(found for one in several for found in filters_of(one))]


def records(found: Sequence[edge.Record]) -> list[models.Record]:
    """Return points as the server answers them."""
    return [
        models.Record.model_construct(
            id=_id(one.id),
            payload=one.payload,
            vector=_vector(one.vector),
            order_value=one.order_value,
        )
        for one in found
    ]


def scored(found: Sequence[edge.ScoredPoint]) -> list[models.ScoredPoint]:
    """Return the points that were found as the server answers them."""
    return [
        models.ScoredPoint.model_construct(
            id=_id(one.id),
            version=one.version,
            score=one.score,
            payload=one.payload,
            vector=_vector(one.vector),
            order_value=one.order_value,
        )
        for one in found
    ]


def _id(found: edge.PointId) -> int | str:
    return found if isinstance(found, int) else str(found)


def _vector(found: Any) -> Any:
    if isinstance(found, edge.SparseVector):
        return models.SparseVector(indices=found.indices, values=found.values)
    if isinstance(found, dict):
        return {name: _vector(one) for name, one in found.items()}
    return found
