"""What the server refuses, with its status and words; much of it local mode lets pass.

With QDRANT_URL set, what needs no other set-up is asked of the server there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse
from qdrant_http.anywhere import Place, own_name

Do = Callable[[QdrantClient, str], object]


@pytest.fixture(scope="module")
def name(client: QdrantClient) -> Iterator[str]:
    """A collection that an alias points at; refused requests leave it as it is."""
    with own_name(client) as found:
        client.create_collection(
            found,
            vectors_config={"d": models.VectorParams(size=2, distance=models.Distance.COSINE)},
            sparse_vectors_config={"s": models.SparseVectorParams()},
        )
        client.update_collection_aliases([alias(f"{found}-alias", found)])
        yield found


def alias(name: str, collection: str) -> models.CreateAliasOperation:
    made = models.CreateAlias(collection_name=collection, alias_name=name)
    return models.CreateAliasOperation(create_alias=made)


def refused(client: QdrantClient, name: str, do: Do) -> tuple[int, str]:
    with pytest.raises(UnexpectedResponse) as found:
        do(client, name)
    answer = json.loads(found.value.content)
    assert isinstance(answer["time"], float | int)
    return found.value.status_code or 0, answer["status"]["error"]


def put(identifier: int | str, vector: models.VectorStruct) -> Do:
    point = models.PointStruct(id=identifier, vector=vector)
    return lambda client, name: client.upsert(name, [point])


def indices(*found: int) -> dict[str, models.Vector]:
    return {"s": models.SparseVector(indices=list(found), values=[1.0] * len(found))}


NOT_AN_ID = "is not a valid point ID, valid values are either an unsigned integer or a UUID"
REFUSED: dict[str, tuple[Do, int, str]] = {
    "negative id": (put(-1, {}), 400, ""),
    "id beyond 64 bits": (put(2**64, {}), 400, ""),
    "id that is no UUID": (put("row-1", {}), 400, ""),
    "dimension": (put(1, {"d": [1.0, 2.0, 3.0]}), 400, "expected dim: 2, got 3"),
    "vector name": (put(1, {"e": [1.0, 2.0]}), 400, "Not existing vector name error: e"),
    "duplicate indices": (put(1, indices(4, 4)), 422, "indices: must be unique"),
    "no point at all": (lambda c, n: c.upsert(n, []), 400, "Empty update request"),
    "no id at all": (lambda c, n: c.delete(n, []), 400, "Empty update request"),
    "payload of a point that is not there": (
        lambda c, n: c.set_payload(n, {"a": 1}, [987654]),
        404,
        "No point with id 987654 found",
    ),
    "limit of nothing": (lambda c, n: c.scroll(n, limit=0), 422, "must be 1 or larger"),
    "dimension of a query": (
        lambda c, n: c.query_points(n, [1.0], using="d"),
        400,
        "expected dim: 2, got 1",
    ),
    "vector name of a query": (
        lambda c, n: c.query_points(n, [1.0, 2.0], using="e"),
        400,
        "Not existing vector name error: e",
    ),
    "order without an index": (
        lambda c, n: c.scroll(n, order_by="a"),
        400,
        "No range index for `order_by` key",
    ),
    "no such collection": (lambda c, n: c.count(f"{n}-no"), 404, "doesn't exist!"),
    "collection made twice": (
        lambda c, n: c.create_collection(n, vectors_config={}),
        409,
        "already exists!",
    ),
    "collection with a bad name": (
        lambda c, n: c.create_collection(f"{n}*", vectors_config={}),
        422,
        "cannot contain",
    ),
    "collection named like an alias": (
        lambda c, n: c.create_collection(f"{n}-alias", vectors_config={}),
        400,
        "Alias with the same name already exists",
    ),
    "alias named like a collection": (
        lambda c, n: c.update_collection_aliases([alias(n, n)]),
        409,
        "already exists!",
    ),
    "alias of no collection": (
        lambda c, n: c.update_collection_aliases([alias(f"{n}-other", f"{n}-no")]),
        404,
        "doesn't exist!",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_what_the_server_refuses(client: QdrantClient, name: str, case: str) -> None:
    do, status, words = REFUSED[case]
    said = refused(client, name, do)
    assert said[0] == status
    assert words in said[1]
    assert client.count(name).count == 0


@pytest.mark.parametrize("identifier", ["row-1", -1, 2**64])
def test_a_bad_id_is_named_in_the_refusal(
    place: Place, client: QdrantClient, name: str, identifier: int | str
) -> None:
    if not place.ours:
        pytest.skip("the server's JSON reader words it in several ways")
    assert refused(client, name, put(identifier, {})) == (
        400,
        f"Format error in JSON body: value {identifier} {NOT_AN_ID}",
    )


def test_a_body_with_an_unknown_field_is_refused(place: Place, name: str) -> None:
    body: dict[str, object] = {"filter": {"musst": []}}
    answer = httpx.post(
        f"{place.url}/collections/{name}/points/count",
        json=body,
        headers={"api-key": place.api_key or ""},
    )
    assert answer.status_code == 400
    assert answer.json()["status"]["error"].startswith("Format error in JSON body: ")


def test_sparse_indices_need_no_order(client: QdrantClient, name: str) -> None:
    client.upsert(name, [models.PointStruct(id=1, vector=indices(9, 3))])
    (found,) = client.retrieve(name, [1], with_vectors=True)
    assert found.vector == indices(3, 9)
    client.delete(name, [1])


def test_a_refused_batch_may_be_applied_in_part(client: QdrantClient, name: str) -> None:
    good = [models.PointStruct(id=number, vector={"d": [1.0, 1.0]}) for number in range(2, 9)]
    bad = models.PointStruct(id=1, vector={"e": [1.0, 1.0]})
    for _ in range(20):  # the order is the engine's, and now and then the bad one comes first
        status, _ = refused(client, name, lambda c, n: c.upsert(n, [*good[:3], bad, *good[3:]]))
        assert status == 400
    left = {one.id for one in client.scroll(name, limit=100)[0]}
    assert left <= {one.id for one in good}
    assert left
    client.delete(name, list(left))


def test_what_does_not_wait_is_acknowledged_and_its_failure_told_to_nobody(
    client: QdrantClient, name: str
) -> None:
    wrong = models.PointStruct(id=1, vector={"d": [1.0, 2.0, 3.0]})
    right = models.PointStruct(id=2, vector={"d": [1.0, 2.0]})
    for point in (wrong, right):
        done = client.upsert(name, [point], wait=False)
        assert done.status == models.UpdateStatus.ACKNOWLEDGED
    client.upsert(name, [models.PointStruct(id=3, vector={})], wait=True)
    assert [one.id for one in client.scroll(name)[0]] == [2, 3]
    client.delete(name, [2, 3])


def test_strict_mode_wants_an_index_for_what_is_filtered_on(client: QdrantClient) -> None:
    settings = models.StrictModeConfig(
        enabled=True, unindexed_filtering_retrieve=False, unindexed_filtering_update=False
    )
    owner = models.FieldCondition(key="m.owner", match=models.MatchValue(value="x"))
    wanted = models.Filter(should=[models.Filter(must_not=[owner])])
    with own_name(client) as name:
        client.create_collection(name, vectors_config={}, strict_mode_config=settings)
        asked: list[Do] = [lambda c, n: c.count(n, wanted), lambda c, n: c.delete(n, wanted)]
        for do in asked:
            status, said = refused(client, name, do)
            assert status == 400
            assert said == (
                'Bad request: Index required but not found for "m.owner" of one of the following '
                "types: [keyword]. Help: Create an index for this key or use a different filter."
            )
        client.create_payload_index(name, "m.owner", models.PayloadSchemaType.KEYWORD)
        assert client.count(name, wanted).count == 0
        client.delete(name, wanted)


def test_strict_mode_wants_the_index_of_a_nested_filter(client: QdrantClient) -> None:
    settings = models.StrictModeConfig(enabled=True, unindexed_filtering_retrieve=False)
    inner = models.FieldCondition(key="n", range=models.Range(gte=1))
    nested = models.Nested(key="list", filter=models.Filter(must=[inner]))
    wanted = models.Filter(must=[models.NestedCondition(nested=nested)])
    with own_name(client) as name:
        client.create_collection(name, vectors_config={}, strict_mode_config=settings)
        said = refused(client, name, lambda c, n: c.count(n, wanted))[1]
        assert 'Index required but not found for "list[].n"' in said


def test_strict_mode_bounds_batches_and_limits(client: QdrantClient) -> None:
    settings = models.StrictModeConfig(enabled=True, max_query_limit=5, upsert_max_batchsize=2)
    points = [models.PointStruct(id=number, vector={}) for number in range(3)]
    with own_name(client) as name:
        client.create_collection(name, vectors_config={}, strict_mode_config=settings)
        assert (
            'Limit exceeded 6 > 5 for "limit"'
            in (refused(client, name, lambda c, n: c.scroll(n, limit=6))[1])
        )
        assert (
            'Limit exceeded 3 > 2 for "upsert limit"'
            in (refused(client, name, lambda c, n: c.upsert(n, points))[1])
        )


def test_aliases_before_one_that_is_refused_stay_changed(client: QdrantClient, name: str) -> None:
    changes = [alias(f"{name}-first", name), alias(f"{name}-second", f"{name}-no")]
    refused(client, name, lambda c, _: c.update_collection_aliases(changes))
    names = {one.alias_name for one in client.get_collection_aliases(name).aliases}
    assert f"{name}-first" in names
    assert f"{name}-second" not in names
