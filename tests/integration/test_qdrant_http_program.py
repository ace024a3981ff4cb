"""The test server as a program: what it has confirmed outlives a kill, and faults come by HTTP."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_http import Program, anywhere, started


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program, running."""
    with started(tmp_path / "storage") as found:
        yield found


@pytest.fixture
def client(program: Program) -> Iterator[QdrantClient]:
    """A client of it."""
    found = anywhere.client(program.url, timeout=10)
    yield found
    found.close()


def points(*ids: int) -> list[models.PointStruct]:
    return [
        models.PointStruct(
            id=one,
            vector={"d": [1.0, one], "s": models.SparseVector(indices=[one], values=[1.0])},
            payload={"n": one, "t": {"x": None}},
        )
        for one in ids
    ]


def everything(client: QdrantClient) -> dict[str, object]:
    """Return all that the server holds, as it tells it."""
    names = [one.name for one in client.get_collections().collections]
    return {
        "aliases": [one.model_dump() for one in client.get_aliases().aliases],
        "collections": {name: client.get_collection(name).model_dump() for name in names},
        "points": {
            name: [
                one.model_dump() for one in client.scroll(name, limit=10000, with_vectors=True)[0]
            ]
            for name in names
        },
    }


def test_a_kill_between_requests_loses_nothing_that_was_confirmed(
    program: Program, client: QdrantClient
) -> None:
    vectors = {"d": models.VectorParams(size=2, distance=models.Distance.COSINE)}
    idf = models.SparseVectorParams(modifier=models.Modifier.IDF)
    every = models.FilterSelector(filter=models.Filter())
    dense = models.DenseVectorConfig(size=3, distance=models.Distance.DOT)
    alias = models.CreateAlias(collection_name="a", alias_name="now")
    groups: list[list[Callable[[], object]]] = [
        [
            lambda: client.create_collection("b", vectors_config={}),
            lambda: client.create_collection(
                "a", vectors_config=vectors, sparse_vectors_config={"s": idf}, metadata={"k": 1}
            ),
        ],
        [
            lambda: client.create_payload_index("a", "n", models.PayloadSchemaType.INTEGER),
            lambda: client.upsert("a", points(*range(1, 300))),
        ],
        [
            lambda: client.set_payload("a", {"n": -1}, [1, 2]),
            lambda: client.create_vector_name("a", "e", models.DenseVectorNameConfig(dense=dense)),
            lambda: client.update_vectors(
                "a", [models.PointVectors(id=5, vector={"e": [1.0, 2.0, 3.0]})]
            ),
            lambda: client.update_collection("a", metadata={"token": "t"}),
        ],
        [
            lambda: client.delete("a", [3, 4]),
            lambda: client.delete_vector_name("a", "d"),
            lambda: client.update_collection_aliases(
                [models.CreateAliasOperation(create_alias=alias)]
            ),
        ],
        [lambda: client.delete("a", every), lambda: client.delete_collection("b")],
    ]
    for group in groups:
        for step in group:
            step()
        before = everything(client)
        program.kill()
        program.start()
        assert everything(client) == before
    assert client.count("now").count == 0


def test_a_kill_in_the_midst_of_writing_loses_no_confirmed_batch(
    program: Program, client: QdrantClient
) -> None:
    client.create_collection(
        "a",
        vectors_config={"d": models.VectorParams(size=2, distance=models.Distance.COSINE)},
        sparse_vectors_config={"s": models.SparseVectorParams()},
    )
    confirmed: list[int] = []
    enough = threading.Event()

    def write_on() -> None:
        with contextlib.suppress(ResponseHandlingException):
            for start in itertools.count(step=50):
                client.upsert("a", points(*range(start, start + 50)))
                confirmed.extend(range(start, start + 50))
                if len(confirmed) >= 1000:
                    enough.set()

    writer = threading.Thread(target=write_on)
    writer.start()
    assert enough.wait(60)
    program.kill()
    writer.join()
    program.start()
    left = {one.id for one in client.scroll("a", limit=100_000)[0]}
    assert left >= set(confirmed)


def test_a_folder_that_a_kill_left_half_made_is_not_taken_for_a_collection(
    program: Program, client: QdrantClient, tmp_path: Path
) -> None:
    client.create_collection("a", vectors_config={})
    program.kill()
    (tmp_path / "storage" / "half" / "shard").mkdir(parents=True)
    program.start()
    assert [one.name for one in client.get_collections().collections] == ["a"]
    assert not (tmp_path / "storage" / "half").exists()


def test_faults_are_added_looked_at_and_cleared_by_http(
    program: Program, client: QdrantClient
) -> None:
    control = f"{program.url}/_faults"
    program.faults(
        {"kind": "error", "path": "/collections", "status": 503, "form": "html"},
        {"kind": "too_many", "path": "/aliases", "times": None},
    )
    with pytest.raises(UnexpectedResponse, match="503"):
        client.get_collections()
    assert client.get_collections().collections == []
    said = httpx.get(control).json()
    assert [one["kind"] for one in said["waiting"]] == ["too_many"]
    assert said["happened"] == [{"kind": "error", "method": "GET", "path": "/collections"}]
    assert httpx.delete(control).json()["waiting"] == []
    assert client.get_aliases().aliases == []
    assert httpx.post(control, json=[{"kind": "nothing"}]).status_code == 400
    program.faults_by_chance(1.0, 3, {"kind": "error", "status": 502})
    with pytest.raises(UnexpectedResponse, match="502"):
        client.get_collections()


def test_the_program_takes_a_key_and_a_prefix(tmp_path: Path) -> None:
    with started(tmp_path / "storage", "--prefix", "/q", "--version", "1.16.3", key="k") as program:
        assert httpx.get(f"{program.url}/q/").json()["version"] == "1.16.3"
        assert httpx.get(f"{program.url}/q/collections").status_code == 401
        answer = httpx.get(f"{program.url}/q/collections", headers={"api-key": "k"})
        assert answer.json()["result"] == {"collections": []}
