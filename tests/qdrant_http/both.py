"""The same asked of a Qdrant and of the client's local mode, and whether the same comes of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse
from qdrant_client.http.models import QueryResponse

from qdrant_http.anywhere import Place, own_name

ALL = 100  # more points than a test has
CLOSE = 1e-3
Do = Callable[[QdrantClient, str], object]


@dataclass(frozen=True, slots=True)
class Both:
    """The server and local mode, with a collection of one name on each."""

    server: QdrantClient
    local: QdrantClient
    name: str

    def do(self, do: Do) -> tuple[object, object]:
        """Return what came of it on each, refusals in one form."""
        return _outcome(do, self.server, self.name), _outcome(do, self.local, self.name)

    def points(self) -> tuple[object, object]:
        """Return all points of each."""
        return self.do(lambda c, n: c.scroll(n, limit=ALL, with_vectors=True)[0])


@contextmanager
def both(place: Place) -> Iterator[Both]:
    """Give a fresh collection of one name on each."""
    server, local = place.client(), QdrantClient(":memory:")
    with own_name(server) as name:
        for one in (server, local):
            one.create_collection(
                name,
                vectors_config={"d": models.VectorParams(size=3, distance=models.Distance.COSINE)},
                sparse_vectors_config={
                    "s": models.SparseVectorParams(),
                    "idf": models.SparseVectorParams(modifier=models.Modifier.IDF),
                },
            )
        yield Both(server, local, name)
    local.close()
    server.close()


def equal(key: str, value: int) -> models.Filter:
    """Return a filter for a payload value."""
    match = models.MatchValue(value=value)
    return models.Filter(must=[models.FieldCondition(key=key, match=match)])


def _outcome(do: Do, client: QdrantClient, name: str) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # local mode warns of what it leaves out
            return plain(do(client, name))
    except (UnexpectedResponse, ValueError, KeyError):
        return "refused"


def plain(found: object) -> object:  # noqa: PLR0911 - a line a form
    """Return an answer as plain values, in an order that both can have."""
    match found:
        case models.UpdateResult():
            return found.status.value
        case models.CountResult():
            return found.count
        case models.Record():
            return [str(found.id), plain(found.payload), plain(found.vector)]
        case models.SparseVector():
            return [[i, w] for i, w in sorted(zip(found.indices, found.values, strict=True))]
        case QueryResponse():
            return sorted([round(one.score, 3), str(one.id)] for one in found.points)
        case list() | tuple():
            return [plain(one) for one in found]
        case dict():
            return {key: plain(one) for key, one in found.items()}
        case _:
            return found


def same(one: object, other: object) -> bool:
    """Say whether two answers are equal, numbers nearly so; truths are no numbers."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=2 * CLOSE)
    return type(one) is type(other) and one == other
