"""Local mode writes a request's points to the disk together, and is then whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models

from syncer.target.local import one_transaction

NAME = "memory--x"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[QdrantClient]:
    client = QdrantClient(path=str(tmp_path / "qdrant"))
    vectors = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection(NAME, vectors_config=vectors)
    yield client
    client.close()


def points(*ids: int) -> list[models.PointStruct]:
    return [models.PointStruct(id=each, vector=[1.0, each], payload={}) for each in ids]


def stored(tmp_path: Path) -> int:
    (path,) = (tmp_path / "qdrant").rglob("storage.sqlite")
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM points").fetchone()[0])
    finally:
        connection.close()


def test_what_a_block_writes_reaches_the_disk_at_its_end_and_not_before(
    client: QdrantClient, tmp_path: Path
) -> None:
    client.upsert(NAME, points(1))
    with one_transaction(client, NAME):
        client.upsert(NAME, points(2, 3))
        client.delete(NAME, points_selector=[1])
        assert stored(tmp_path) == 1
    assert stored(tmp_path) == 2
    client.upsert(NAME, points(4))  # and after the block as before it
    assert stored(tmp_path) == 3


def test_what_was_written_before_an_error_stays(client: QdrantClient, tmp_path: Path) -> None:
    def write_and_fail() -> None:
        with one_transaction(client, NAME):
            client.upsert(NAME, points(1))
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    assert stored(tmp_path) == 1
    assert client.count(NAME).count == 1


def test_a_collection_that_is_not_there_is_left_to_the_client(client: QdrantClient) -> None:
    with pytest.raises(ValueError, match="not found"), one_transaction(client, "other"):
        client.upsert("other", points(1))
