"""The official client does with the test server what it does with Qdrant.

With QDRANT_URL set, the same is asked of the server there.
"""

from __future__ import annotations

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_http.anywhere import Place
from qdrant_http.points import ROW, point, sparse, where


def payloads(client: QdrantClient, name: str) -> dict[object, object]:
    return {one.id: one.payload for one in client.scroll(name, limit=100)[0]}


def test_it_says_its_version_and_that_it_is_well(place: Place, client: QdrantClient) -> None:
    assert client.info().version.count(".") == 2
    for path in ("healthz", "readyz", "livez"):
        assert httpx.get(f"{place.url}/{path}").status_code == 200


def test_a_collection_says_what_it_was_made_with(client: QdrantClient, name: str) -> None:
    found = client.get_collection(name)
    assert found.status == models.CollectionStatus.GREEN
    assert found.config.metadata == {"owner": "test", "kept": 1}
    vectors = found.config.params.vectors
    assert isinstance(vectors, dict)
    assert (vectors["d"].size, vectors["d"].distance) == (2, models.Distance.COSINE)
    assert (found.config.params.sparse_vectors or {})["s"].modifier == models.Modifier.IDF
    assert name in [one.name for one in client.get_collections().collections]
    assert client.collection_exists(name)
    assert not client.collection_exists(name + "-x")


def test_an_update_merges_metadata_and_changes_strict_mode(client: QdrantClient, name: str) -> None:
    client.update_collection(name, metadata={"owner": "other", "new": {"a": [1]}})
    client.update_collection(name, strict_mode_config=models.StrictModeConfig(enabled=True))
    config = client.get_collection(name).config
    assert config.metadata == {"owner": "other", "kept": 1, "new": {"a": [1]}}
    assert config.strict_mode_config
    assert config.strict_mode_config.enabled


def test_options_of_creation_are_kept(client: QdrantClient, name: str) -> None:
    client.create_collection(
        f"{name}-2",
        vectors_config={
            "d": models.VectorParams(size=2, distance=models.Distance.DOT, on_disk=True)
        },
        hnsw_config=models.HnswConfigDiff(m=8),
        on_disk_payload=False,
    )
    config = client.get_collection(f"{name}-2").config
    assert isinstance(config.params.vectors, dict)
    assert (config.params.vectors["d"].on_disk, config.hnsw_config.m) == (True, 8)
    assert config.params.on_disk_payload is False


def test_aliases_change_in_one_request_and_stand_for_their_collection(
    client: QdrantClient, name: str
) -> None:
    alias = f"{name}-alias"
    client.create_collection(f"{name}-2", vectors_config={})
    for target in (name, f"{name}-2"):
        client.update_collection_aliases(
            [
                models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)),
                models.CreateAliasOperation(
                    create_alias=models.CreateAlias(collection_name=target, alias_name=alias)
                ),
            ]
        )
        pairs = {one.alias_name: one.collection_name for one in client.get_aliases().aliases}
        assert pairs[alias] == target
    client.upsert(alias, [point(1)])
    assert client.count(f"{name}-2").count == 1
    assert client.collection_exists(alias)
    client.delete_collection(f"{name}-2")
    assert not client.collection_exists(alias)
    assert alias not in [one.alias_name for one in client.get_aliases().aliases]


def test_points_come_back_by_their_ids_with_what_was_asked(client: QdrantClient, name: str) -> None:
    largest = 2**64 - 1
    done = client.upsert(name, [point(largest, 3.0, 4.0, a={"b": 1, "c": 2}), point(ROW, n=None)])
    assert done.status == models.UpdateStatus.COMPLETED
    found = client.retrieve(name, [largest, ROW, 5], with_payload=["a.b", "n"], with_vectors=True)
    assert {one.id: one.payload for one in found} == {largest: {"a": {"b": 1}}, ROW: {"n": None}}
    by_id = {one.id: one.vector for one in found}
    assert isinstance(vectors := by_id[largest], dict)
    assert vectors["d"] == pytest.approx([0.6, 0.8])
    assert by_id[ROW] == {}


def test_a_batch_of_columns_is_written_like_a_list(client: QdrantClient, name: str) -> None:
    columns = models.Batch(
        ids=[1, 2], vectors={"d": [[1.0, 0.0], [0.0, 1.0]]}, payloads=[{"a": 1}, {"a": 2}]
    )
    client.upsert(name, columns)
    assert payloads(client, name) == {1: {"a": 1}, 2: {"a": 2}}


def test_a_scroll_goes_through_all_pages_in_the_order_of_ids(
    client: QdrantClient, name: str
) -> None:
    client.upsert(name, [point(number, n=number) for number in (5, 3, 1, 4, 2)])
    pages, offset = [], None
    while True:
        page, offset = client.scroll(name, limit=2, offset=offset)
        pages.append([one.id for one in page])
        if offset is None:
            break
    assert pages == [[1, 2], [3, 4], [5]]
    wanted = models.Filter(must=[models.FieldCondition(key="n", range=models.Range(gte=4))])
    assert [one.id for one in client.scroll(name, scroll_filter=wanted)[0]] == [4, 5]


def test_filters_tell_truths_from_numbers_and_look_into_lists(
    client: QdrantClient, name: str
) -> None:
    client.upsert(name, [point(1, v=True), point(2, v=1), point(3, v=["x", "y"]), point(4, v="1")])
    found = [client.scroll(name, scroll_filter=where("v", one))[0] for one in (True, 1, "y", "1")]
    assert [[one.id for one in page] for page in found] == [[1], [2], [3], [4]]


def test_points_go_by_their_ids_and_by_a_filter(client: QdrantClient, name: str) -> None:
    client.upsert(name, [point(number, odd=number % 2 == 1) for number in range(1, 6)])
    client.delete(name, [1, 99])
    client.delete(name, models.FilterSelector(filter=where("odd", value=True)))
    assert payloads(client, name).keys() == {2, 4}
    assert client.count(name, where("odd", value=False), exact=True).count == 2


def test_payloads_are_set_overwritten_thinned_and_cleared(client: QdrantClient, name: str) -> None:
    client.upsert(name, [point(number, a=1, t={"x": 1, "y": 2}) for number in (1, 2, 3, 4)])
    client.set_payload(name, {"b": 2}, [1])
    client.set_payload(name, {"x": 9}, [1], key="t")
    client.overwrite_payload(name, {"c": 3}, [2])
    client.delete_payload(name, ["t.x", "a"], [3])
    client.clear_payload(name, [4])
    assert payloads(client, name) == {
        1: {"a": 1, "b": 2, "t": {"x": 9, "y": 2}},
        2: {"c": 3},
        3: {"t": {"y": 2}},
        4: {},
    }


def test_a_batch_of_operations_is_done_in_its_order(client: QdrantClient, name: str) -> None:
    points = models.PointsList(points=[point(1, 1.0, 0.0, a=1), point(2)])
    results = client.batch_update_points(
        name,
        [
            models.UpsertOperation(upsert=points),
            models.SetPayloadOperation(set_payload=models.SetPayload(payload={"b": 2}, points=[1])),
            models.DeleteVectorsOperation(
                delete_vectors=models.DeleteVectors(points=[1], vector=["d"])
            ),
            models.DeleteOperation(delete=models.PointIdsList(points=[2])),
        ],
    )
    assert [one.status for one in results] == [models.UpdateStatus.COMPLETED] * 4
    (found,) = client.scroll(name, with_vectors=True)[0]
    assert (found.id, found.payload, found.vector) == (1, {"a": 1, "b": 2}, {})


def test_an_update_filter_spares_points_that_it_does_not_match_and_lets_new_ones_in(
    client: QdrantClient, name: str
) -> None:
    client.upsert(name, [point(1, v=1), point(2, v=2)])
    client.upsert(
        name, [point(number, v=9) for number in (1, 2, 3)], update_filter=where("v", value=1)
    )
    assert payloads(client, name) == {1: {"v": 9}, 2: {"v": 2}, 3: {"v": 9}}


def test_single_vectors_are_replaced_and_deleted(client: QdrantClient, name: str) -> None:
    vectors: dict[str, models.Vector] = {"d": [1.0, 0.0], "s": sparse(i5=1.0, i2=2.0)}
    client.upsert(name, [models.PointStruct(id=1, vector=vectors, payload={"a": 1})])
    client.update_vectors(name, [models.PointVectors(id=1, vector={"d": [0.0, 2.0]})])
    (found,) = client.retrieve(name, [1], with_vectors=True)
    assert found.vector == {"d": [0.0, 1.0], "s": sparse(i2=2.0, i5=1.0)}
    client.delete_vectors(name, ["d"], [1])
    (found,) = client.retrieve(name, [1], with_vectors=True)
    assert (found.vector, found.payload) == ({"s": sparse(i2=2.0, i5=1.0)}, {"a": 1})


def test_named_vectors_are_added_to_a_collection_and_taken_away(
    client: QdrantClient, name: str
) -> None:
    client.upsert(name, [point(1, 1.0, 0.0)])
    dense = models.DenseVectorConfig(size=3, distance=models.Distance.DOT)
    client.create_vector_name(name, "e", models.DenseVectorNameConfig(dense=dense))
    second = models.SparseVectorConfig(modifier=models.Modifier.IDF)
    client.create_vector_name(name, "t", models.SparseVectorNameConfig(sparse=second))
    client.update_vectors(name, [models.PointVectors(id=1, vector={"e": [1.0, 2.0, 3.0]})])
    client.delete_vector_name(name, "d")
    params = client.get_collection(name).config.params
    assert isinstance(params.vectors, dict)
    assert params.vectors.keys() == {"e"}
    assert (params.sparse_vectors or {})["t"].modifier == models.Modifier.IDF
    (found,) = client.retrieve(name, [1], with_vectors=True)
    assert found.vector == {"e": [1.0, 2.0, 3.0]}


def test_payload_indexes_come_and_go(client: QdrantClient, name: str) -> None:
    client.create_payload_index(name, "t.a", models.PayloadSchemaType.KEYWORD)
    number = models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=True, range=True
    )
    client.create_payload_index(name, "n", number)
    client.upsert(name, [point(1, n=2), point(2, n=1)])
    schema = client.get_collection(name).payload_schema
    kinds = {field: index.data_type for field, index in schema.items()}
    assert kinds == {"t.a": models.PayloadSchemaType.KEYWORD, "n": models.PayloadSchemaType.INTEGER}
    assert [one.id for one in client.scroll(name, order_by="n")[0]] == [2, 1]
    client.delete_payload_index(name, "n")
    assert client.get_collection(name).payload_schema.keys() == {"t.a"}


def test_many_points_are_uploaded_in_batches(client: QdrantClient, name: str) -> None:
    client.upload_points(
        name, (point(number, 1.0, number) for number in range(500)), batch_size=64, wait=True
    )
    assert client.count(name).count == 500
