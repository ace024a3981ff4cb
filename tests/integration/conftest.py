"""A Qdrant over HTTP for the tests of the test server: its own, or the one at QDRANT_URL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from qdrant_client import QdrantClient, models
from qdrant_http import both as both_of
from qdrant_http.anywhere import Place, anywhere, own_name
from qdrant_http.both import Both
from qdrant_http.points import IDF


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A Qdrant."""
    with anywhere(tmp_path_factory.mktemp("qdrant") / "storage") as found:
        yield found


@pytest.fixture(scope="module")
def client(place: Place) -> Iterator[QdrantClient]:
    """A client of it."""
    found = place.client()
    yield found
    found.close()


@pytest.fixture
def name(client: QdrantClient) -> Iterator[str]:
    """A collection with a dense vector of two numbers, a sparse one with IDF, and metadata."""
    with own_name(client) as found:
        client.create_collection(
            found,
            vectors_config={"d": models.VectorParams(size=2, distance=models.Distance.COSINE)},
            sparse_vectors_config={"s": IDF},
            metadata={"owner": "test", "kept": 1},
        )
        yield found


@pytest.fixture
def both(place: Place) -> Iterator[Both]:
    """A fresh collection on it, and one in local mode."""
    with both_of.both(place) as found:
        yield found
