"""A Qdrant to test with: the one at QDRANT_URL if that is set, else the test server."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient

from qdrant_http.app import Options
from qdrant_http.serving import running

URL = os.environ.get("QDRANT_URL")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Qdrant is; `ours` says that it is the test server."""

    url: str
    ours: bool
    api_key: str | None = field(default=None, repr=False)

    def client(self) -> QdrantClient:
        """Return a client of it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a key over http
            return client(self.url, api_key=self.api_key, timeout=30)


def client(url: str, **settings: Any) -> QdrantClient:
    """Return a client that asks nothing by itself; usually its own thread asks for the version."""
    return QdrantClient(url=url, check_compatibility=False, **settings)


@contextmanager
def anywhere(folder: Path) -> Iterator[Place]:
    """Serve from `folder` while the block runs, or name the Qdrant that is there already."""
    if URL:
        yield Place(URL, ours=False, api_key=os.environ.get("QDRANT_API_KEY"))
        return
    with running(Options(folder=folder)) as server:
        yield Place(server.url, ours=True)


@contextmanager
def own_name(client: QdrantClient) -> Iterator[str]:
    """Give a name that nothing else has; the collection and its aliases are deleted afterwards."""
    name = f"syncer-test-{secrets.token_hex(6)}"
    try:
        yield name
    finally:
        for found in client.get_collections().collections:
            if found.name.startswith(name):
                client.delete_collection(found.name)
