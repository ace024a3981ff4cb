"""Each fault does what it says, and the next request is answered as usual."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_http import KINDS, Fault, Options, Server, anywhere, running

POINTS = "/collections/*/points"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The test server."""
    with running(Options(folder=tmp_path_factory.mktemp("qdrant"))) as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[QdrantClient]:
    """A client, and a collection ``a`` with two points that the alias ``now`` points at."""
    server.faults.clear()
    server.faults.happened.clear()
    found = anywhere.client(server.url, timeout=5)
    for one in found.get_collections().collections:
        found.delete_collection(one.name)
    found.create_collection(
        "a",
        vectors_config={"d": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        sparse_vectors_config={"s": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        metadata={"made": "here"},
    )
    move = models.CreateAlias(collection_name="a", alias_name="now")
    found.update_collection_aliases([models.CreateAliasOperation(create_alias=move)])
    put(found, 1, 2)
    yield found
    found.close()


def put(client: QdrantClient, *ids: int) -> models.UpdateResult:
    points = [models.PointStruct(id=one, vector={"d": [1.0, one]}) for one in ids]
    return client.upsert("a", points)


def there(client: QdrantClient) -> set[object]:
    return {one.id for one in client.scroll("a", limit=100)[0]}


def refusal(client: QdrantClient, *ids: int) -> tuple[int, bytes]:
    with pytest.raises(UnexpectedResponse) as found:
        put(client, *ids)
    return found.value.status_code or 0, found.value.content


def unanswered(client: QdrantClient, *ids: int) -> Exception:
    with pytest.raises(ResponseHandlingException) as found:
        put(client, *ids)
    source = found.value.source
    assert isinstance(source, Exception)
    return source


def test_a_fault_meets_the_requests_that_fit_as_often_as_it_says(
    server: Server, client: QdrantClient
) -> None:
    server.faults.next("error", 2, method="PUT", path=POINTS, skip=1)
    put(client, 3)
    assert there(client) == {1, 2, 3}
    assert [refusal(client, 4)[0] for _ in range(2)] == [500, 500]
    put(client, 5)
    assert there(client) == {1, 2, 3, 5}
    met = [(one.kind, one.method, one.path) for one in server.faults.happened]
    assert met == [("error", "PUT", "/collections/a/points")] * 2


@pytest.mark.parametrize("applied", [False, True])
def test_slow_outlasts_the_client_and_the_write_is_done_all_the_same(
    server: Server, client: QdrantClient, applied: bool
) -> None:
    impatient = anywhere.client(server.url, timeout=1)
    server.faults.next("slow", path=POINTS, seconds=1.5, applied=applied)
    assert isinstance(unanswered(impatient, 3), httpx.ReadTimeout)
    impatient.close()
    assert (3 in there(client)) is applied
    server.faults.next("slow", path=POINTS, seconds=1.0)  # by then the other has been done
    put(client, 4)
    assert there(client) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("kind", "applied"), [("closed_before", False), ("closed_during", True), ("closed_after", True)]
)
def test_a_closed_connection_leaves_open_whether_the_write_was_done(
    server: Server, client: QdrantClient, kind: str, applied: bool
) -> None:
    server.faults.next(kind, path=POINTS)
    assert isinstance(unanswered(client, 3), httpx.RemoteProtocolError)
    assert (3 in there(client)) is applied


def test_an_upload_is_cut_once_it_is_too_large(server: Server, client: QdrantClient) -> None:
    server.faults.next("cut_upload", 2, path=POINTS, size=2**20)
    put(client, 3)
    large = models.PointStruct(id=4, vector={}, payload={"text": "x" * 2**24})
    with pytest.raises(ResponseHandlingException) as found:
        client.upsert("a", [large])
    assert isinstance(found.value.source, httpx.TransportError)
    assert there(client) == {1, 2, 3}


def test_too_many_says_when_to_come_again_in_seconds(server: Server, client: QdrantClient) -> None:
    server.faults.next("too_many", path=POINTS, seconds=7)
    with pytest.raises(ResourceExhaustedResponse) as found:
        put(client, 3)
    assert found.value.retry_after_s == 7
    assert there(client) == {1, 2}


def test_too_many_says_when_to_come_again_by_a_date_or_not_at_all(
    server: Server, client: QdrantClient
) -> None:
    server.faults.next("too_many", seconds=60, form="date")
    server.faults.next("too_many", form="none")
    dated, bare = (httpx.get(f"{server.url}/collections") for _ in range(2))
    assert (dated.status_code, bare.status_code) == (429, 429)
    left = parsedate_to_datetime(dated.headers["retry-after"]) - datetime.now(UTC)
    assert 30 < left.total_seconds() < 61
    assert "retry-after" not in bare.headers


@pytest.mark.parametrize("status", [500, 502, 503])
def test_an_error_comes_as_json_or_as_a_page(
    server: Server, client: QdrantClient, status: int
) -> None:
    server.faults.next("error", path=POINTS, status=status)
    server.faults.next("error", path=POINTS, status=status, form="html", applied=True)
    assert "error" in json.loads(refusal(client, 3)[1])["status"]
    found, body = refusal(client, 4)
    assert found == status
    assert body.startswith(b"<html>")
    assert there(client) == {1, 2, 4}


def test_a_full_disk_refuses_writes_and_answers_reads(server: Server, client: QdrantClient) -> None:
    server.faults.add(Fault(kind="disk_full", times=None))
    assert there(client) == {1, 2}
    assert client.count("a").count == 2
    status, body = refusal(client, 3)
    assert status == 500
    assert b"Service internal error: No space left on device" in body
    server.faults.clear()
    assert there(client) == {1, 2}


def test_another_server_answers_with_a_page_whatever_is_asked(
    server: Server, client: QdrantClient
) -> None:
    server.faults.next("not_qdrant", 2)
    assert httpx.get(f"{server.url}/healthz").text.startswith("<html>")
    with pytest.raises(json.JSONDecodeError):
        client.get_collections()


@pytest.mark.parametrize("applied", [False, True])
def test_acknowledged_is_said_of_a_write_that_is_done_or_not(
    server: Server, client: QdrantClient, applied: bool
) -> None:
    server.faults.next("acknowledged", path=POINTS, applied=applied)
    assert put(client, 3).status == models.UpdateStatus.ACKNOWLEDGED
    assert (3 in there(client)) is applied
    server.faults.next("acknowledged", path=f"{POINTS}/batch")
    erase = models.DeleteOperation(delete=models.PointIdsList(points=[1]))
    results = client.batch_update_points("a", [erase, erase])
    assert [one.status for one in results] == [models.UpdateStatus.ACKNOWLEDGED] * 2
    assert 1 in there(client)


def test_half_a_batch_is_applied_and_the_batch_refused(
    server: Server, client: QdrantClient
) -> None:
    server.faults.next("half_applied", path=POINTS)
    assert refusal(client, 3, 4, 5, 6)[0] == 400
    assert there(client) == {1, 2, 3, 4}
    server.faults.next("half_applied", path=f"{POINTS}/delete")
    with pytest.raises(UnexpectedResponse):
        client.delete("a", [1, 2, 3, 4])
    assert there(client) == {3, 4}


def test_filters_want_an_index_all_at_once(server: Server, client: QdrantClient) -> None:
    owner = models.FieldCondition(key="owner", match=models.MatchValue(value="x"))
    wanted = models.Filter(must=[owner])
    assert client.count("a", wanted).count == 0
    server.faults.next("unindexed", path=f"{POINTS}/delete")
    with pytest.raises(UnexpectedResponse, match="Index required but not found for"):
        client.delete("a", wanted)
    with pytest.raises(UnexpectedResponse, match="Index required but not found for"):
        client.count("now", wanted)


def test_the_collection_is_dropped_before_a_write(server: Server, client: QdrantClient) -> None:
    server.faults.next("dropped", path=POINTS)
    assert refusal(client, 3)[0] == 404
    assert not client.collection_exists("now")


def test_the_collection_is_emptied_before_a_write(server: Server, client: QdrantClient) -> None:
    server.faults.next("emptied", path=POINTS)
    put(client, 3)
    assert there(client) == {3}
    assert client.get_collection("a").config.metadata == {"made": "here"}


def test_the_collection_is_swapped_for_an_empty_one_of_the_same_form(
    server: Server, client: QdrantClient
) -> None:
    server.faults.next("swapped", path="/collections/now")
    config = client.get_collection("now").config
    assert config.metadata is None
    assert isinstance(config.params.vectors, dict)
    assert config.params.vectors["d"].size == 2
    assert there(client) == set()


def test_a_collection_that_is_gone_cannot_be_swapped(server: Server, client: QdrantClient) -> None:
    server.faults.next("swapped")
    with pytest.raises(UnexpectedResponse, match="Collection `gone`"):
        client.count("gone")


def test_the_alias_is_moved(server: Server, client: QdrantClient) -> None:
    client.create_collection("b", vectors_config={})
    server.faults.next("alias_moved", target="b")
    (found,) = client.get_aliases().aliases
    assert (found.alias_name, found.collection_name) == ("now", "b")


def test_an_old_version_is_reported(server: Server, client: QdrantClient) -> None:
    server.faults.next("old_version", path="/")
    assert client.info().version == "1.9.7"
    assert client.info().version != "1.9.7"


def test_a_collection_is_reported_with_other_vectors_than_it_has(
    server: Server, client: QdrantClient
) -> None:
    def params() -> models.CollectionParams:
        return client.get_collection("a").config.params

    for kind in ("wrong_dimension", "missing_vector", "missing_modifier"):
        server.faults.next(kind)
    wrong = params()
    assert isinstance(wrong.vectors, dict)
    assert wrong.vectors["d"].size == 3
    assert params().vectors == {}
    without = (params().sparse_vectors or {})["s"]
    assert without.modifier is None
    assert (params().sparse_vectors or {})["s"].modifier == models.Modifier.IDF


def test_idle_connections_are_closed(server: Server) -> None:
    with httpx.Client(base_url=server.url) as client:
        before = server.connections.made
        client.get("/healthz")
        client.get("/healthz")
        assert server.connections.made == before + 1
        server.connections.close_all()
        assert client.get("/healthz").status_code == 200
        assert server.connections.made == before + 2


def test_every_kind_of_fault_is_tested_here() -> None:
    text = Path(__file__).read_text()
    assert [kind for kind in KINDS if f'"{kind}"' not in text] == []
