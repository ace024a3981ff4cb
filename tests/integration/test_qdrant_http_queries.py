"""The official client's queries, answered by the test server or by the one at QDRANT_URL."""

from __future__ import annotations

import pytest
from qdrant_client import QdrantClient, models
from qdrant_http.points import point, sparse, where


def ids(found: list[models.ScoredPoint]) -> list[object]:
    return [one.id for one in found]


def test_a_query_finds_the_nearest_points_that_the_filter_lets_through(
    client: QdrantClient, name: str
) -> None:
    angles = {1: (1.0, 0.0), 2: (1.0, 0.1), 3: (0.0, 1.0), 4: (1.0, 0.2)}
    client.upsert(name, [point(n, *xy, even=n % 2 == 0) for n, xy in angles.items()])
    near = [1.0, 0.0]
    assert ids(client.query_points(name, near, using="d", limit=2).points) == [1, 2]
    even = client.query_points(name, near, using="d", query_filter=where("even", value=True))
    assert ids(even.points) == [2, 4]
    assert even.points[0].score == pytest.approx(0.995, abs=1e-3)
    assert even.points[0].payload == {"even": True}
    assert ids(client.query_points(name, 1, using="d", limit=2).points) == [2, 4]
    least = client.query_points(name, near, using="d", score_threshold=0.99)
    assert ids(least.points) == [1, 2]


def test_idf_makes_a_rare_term_count_more(client: QdrantClient, name: str) -> None:
    weights = [sparse(i1=1.0), sparse(i1=1.0), sparse(i1=1.0), sparse(i2=1.0)]
    client.upsert(
        name,
        [
            models.PointStruct(id=number, vector={"s": one})
            for number, one in enumerate(weights, start=1)
        ],
    )
    found = client.query_points(name, sparse(i2=1.0, i1=1.0), using="s").points
    scores = {one.id: one.score for one in found}
    assert scores[4] == pytest.approx(1.2040, abs=1e-3)  # ln((4 - 1 + 0.5) / (1 + 0.5) + 1)
    assert scores[1] == pytest.approx(0.3567, abs=1e-3)  # ln((4 - 3 + 0.5) / (3 + 0.5) + 1)


def hybrid(limit: int) -> dict[str, object]:
    return {
        "prefetch": [
            models.Prefetch(query=[1.0, 0.0], using="d", limit=3),
            models.Prefetch(query=sparse(i1=1.0), using="s", limit=3),
        ],
        "query": models.FusionQuery(fusion=models.Fusion.RRF),
        "limit": limit,
    }


def put_hybrid(client: QdrantClient, name: str) -> None:
    rows = [([1.0, 0.0], 0.2, "x"), ([1.0, 0.3], 0.9, "y"), ([0.0, 1.0], 0.5, "x")]
    client.upsert(
        name,
        [
            models.PointStruct(
                id=number, vector={"d": dense, "s": sparse(i1=weight)}, payload={"g": group}
            )
            for number, (dense, weight, group) in enumerate(rows, start=1)
        ],
    )


def test_rrf_fuses_what_was_prefetched(client: QdrantClient, name: str) -> None:
    put_hybrid(client, name)
    found = client.query_points(name, **hybrid(3)).points  # type: ignore[arg-type]
    # The places are 1, 2, 3 by the dense and 2, 3, 1 by the sparse vector; each gives 1 / (2 + it),
    # counted from zero.
    assert {one.id: round(one.score, 3) for one in found} == {2: 0.833, 1: 0.75, 3: 0.583}
    kept = client.query_points(name, query_filter=where("g", "x"), **hybrid(3))  # type: ignore[arg-type]
    assert set(ids(kept.points)) == {1, 3}


def test_several_queries_are_answered_at_once(client: QdrantClient, name: str) -> None:
    put_hybrid(client, name)
    asked = [
        models.QueryRequest(query=[0.0, 1.0], using="d", limit=1),
        models.QueryRequest(**hybrid(1)),  # type: ignore[arg-type]
    ]
    assert [ids(one.points) for one in client.query_batch_points(name, asked)] == [[3], [2]]


def test_a_query_can_be_answered_by_groups(client: QdrantClient, name: str) -> None:
    put_hybrid(client, name)
    found = client.query_points_groups(name, "g", query=[1.0, 0.0], using="d", group_size=1)
    assert [(one.id, ids(one.hits)) for one in found.groups] == [("x", [1]), ("y", [2])]
