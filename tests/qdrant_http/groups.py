"""Queries whose points are gathered by a payload value; the engine has none of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import qdrant_edge as edge
from qdrant_client.http import models

from qdrant_http import queries
from qdrant_http.bodies import at_least_one

_SIZE = 3  # points in a group, where a request names no number


def groups(shard: edge.EdgeShard, asked: models.QueryGroupsRequest) -> models.GroupsResult:
    """Return the best groups, each with its best points."""
    most = at_least_one(asked.limit, queries.LIMIT)
    size = at_least_one(asked.group_size, _SIZE, "group_size")
    count = max(1, shard.count(edge.CountRequest(exact=True)))
    gathered: dict[int | str, list[edge.ScoredPoint]] = {}
    for point in shard.query(queries.query_of(shard, asked, count)):
        for value in _values(point.payload or {}, asked.group_by.split(".")):
            hits = gathered.setdefault(value, [])
            if len(hits) < size:
                hits.append(point)
    found = list(gathered.items())[:most]
    return models.GroupsResult.model_construct(
        groups=[
            models.PointGroup.model_construct(id=value, hits=_hits(shard, asked, hits))
            for value, hits in found
        ]
    )


def _values(found: object, path: list[str]) -> Iterator[int | str]:
    """Yield the values at a path that a group can have."""
    if isinstance(found, list):
        for one in found:
            yield from _values(one, path)
    elif path and isinstance(found, Mapping):
        yield from _values(found.get(path[0].removesuffix("[]")), path[1:])
    elif not path and isinstance(found, (int, str)) and not isinstance(found, bool):
        yield found


def _hits(
    shard: edge.EdgeShard, asked: models.QueryGroupsRequest, found: list[edge.ScoredPoint]
) -> list[models.ScoredPoint]:
    """Return a group's points with what is wanted of their payloads."""
    wanted = queries.payload_of(asked.with_payload)
    hits = queries.scored(found)
    if wanted is True:
        return hits
    payloads = {}
    if wanted:
        again = shard.retrieve([one.id for one in found], with_payload=wanted, with_vector=False)
        payloads = {str(one.id): one.payload for one in again}
    return [hit.model_copy(update={"payload": payloads.get(str(hit.id))}) for hit in hits]
