"""The test server's gRPC side: the same store as over REST, and the server's own refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc as channels
import pytest
from qdrant_client import QdrantClient, grpc, models
from qdrant_http import Options, Server, running
from qdrant_http.anywhere import client as client_of
from qdrant_http.points import IDF, point, sparse, where

DENSE = {"d": models.VectorParams(size=2, distance=models.Distance.COSINE)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that speaks both."""
    with running(Options(folder=tmp_path_factory.mktemp("qdrant")), grpc=True) as found:
        yield found


@pytest.fixture
def clients(server: Server) -> Iterator[tuple[QdrantClient, QdrantClient]]:
    """A client by REST and one by gRPC, and a collection `c`."""
    rest = client_of(server.url)
    rpc = client_of(server.url, prefer_grpc=True, grpc_port=server.rpc.port)
    rpc.create_collection("c", vectors_config=DENSE, sparse_vectors_config={"s": IDF})
    yield rest, rpc
    rest.delete_collection("c")
    rest.close()
    rpc.close()


def test_what_one_way_writes_the_other_one_reads(
    clients: tuple[QdrantClient, QdrantClient],
) -> None:
    rest, rpc = clients
    rpc.upsert("c", [point(1, 0.6, 0.8, text="NaN", none=None), point(2, 0.8, 0.6, text="b")])
    rest.upsert("c", [models.PointStruct(id=3, vector={"s": sparse(i3=1.5)}, payload={"n": 1.0})])
    rpc.set_payload("c", {"more": [1, {}]}, points=[2])
    rpc.delete("c", models.PointIdsList(points=[9]))
    found, _ = rpc.scroll("c", with_vectors=True)
    assert found == rest.scroll("c", with_vectors=True)[0]
    assert [one.id for one in found] == [1, 2, 3]
    filtered = rpc.query_points("c", [0.6, 0.8], using="d", query_filter=where("text", "b"))
    assert [one.id for one in filtered.points] == [2]
    assert rpc.count("c", count_filter=where("text", "b")).count == 1
    by_rest, by_rpc = (one.get_collection("c") for one in clients)
    assert by_rpc.config.params == by_rest.config.params
    assert by_rpc.points_count == by_rest.points_count == 3


@pytest.mark.parametrize(
    ("value", "code"),
    [(float("nan"), channels.StatusCode.INVALID_ARGUMENT), (1.5, None)],
)
def test_a_number_that_is_no_json_is_refused(
    clients: tuple[QdrantClient, QdrantClient], value: float, code: channels.StatusCode | None
) -> None:
    _, rpc = clients
    wanted = [point(1, 0.6, 0.8, list=[{"x": value}])]
    if code is None:
        rpc.upsert("c", wanted)
        return
    with pytest.raises(channels.RpcError) as found:
        rpc.upsert("c", wanted)
    assert found.value.code() == code


def test_what_is_not_there_and_what_is_not_offered_have_their_codes(
    clients: tuple[QdrantClient, QdrantClient],
) -> None:
    _, rpc = clients
    with pytest.raises(channels.RpcError) as found:
        rpc.count("nothing")
    assert found.value.code() == channels.StatusCode.NOT_FOUND
    with pytest.raises(channels.RpcError) as found:
        rpc.create_collection("c", vectors_config=DENSE)
    assert found.value.code() == channels.StatusCode.ALREADY_EXISTS
    with pytest.raises(channels.RpcError) as found:
        rpc.grpc_points.Facet(grpc.FacetCounts(collection_name="c", key="k"))
    assert found.value.code() == channels.StatusCode.UNIMPLEMENTED


def test_what_was_written_over_grpc_is_there_after_a_new_start(tmp_path: Path) -> None:
    options = Options(folder=tmp_path)
    for time in (1, 2):
        with running(options, grpc=True) as server:
            rpc = client_of(server.url, prefer_grpc=True, grpc_port=server.rpc.port)
            if time == 1:
                rpc.create_collection("c", vectors_config=DENSE)
                rpc.upsert("c", [point(1, 0.6, 0.8)])
            assert rpc.count("c").count == 1
            rpc.close()
