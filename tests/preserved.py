"""Points into which somebody else has put keys and a vector, which syncer was asked to preserve."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import memory
import pytest
from qdrant_client import models

from syncer.keys import PointId
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.settings import Settings
from syncer.target import Connection

LONG = "first part, a second part, and a third"  # four chunks
THEIRS = {"theirs": {"votes": [1, 2]}, "seen": 2**53 + 1}
ON = {"target.preserve_foreign_payload": True}

Send = Callable[[httpx.Request], httpx.Response]
Found = Mapping[PointId, tuple[dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Place:
    """A memory and its generation, in chunks of a few characters."""

    path: Path
    pipeline: Pipeline
    connection: Connection

    def sync(self) -> SyncResult:
        """Catch up."""
        return memory.sync(self.pipeline)

    def execute(self, sql: str) -> None:
        """Run one statement as the application does."""
        memory.execute(self.path, sql)

    def points(self) -> Found:
        """Return payload and vectors by id."""
        return memory.all_points(self.connection)  # type: ignore[return-value]

    def ids(self, row: int) -> list[PointId]:
        """Return the ids of a row's points."""
        found = self.points().items()
        return [one for one, (payload, _) in found if payload["_sync"]["row"] == str(row)]

    def mark(self, *rows: int) -> None:
        """Put keys and a vector of somebody else's into all points of rows."""
        ids = [one for row in rows for one in self.ids(row)]
        client, name = self.connection.client, self.pipeline.state.position().generation
        if "theirs" not in client.get_collection(name).config.params.vectors:  # type: ignore[operator]
            dense = models.DenseVectorConfig(size=2, distance=models.Distance.DOT)
            client.create_vector_name(name, "theirs", models.DenseVectorNameConfig(dense=dense))
        client.set_payload(name, THEIRS, points=models.PointIdsList(points=list(ids)))
        vectors = [models.PointVectors(id=one, vector={"theirs": [3.0, 4.0]}) for one in ids]
        client.update_vectors(name, vectors)

    def marked(self) -> dict[str, list[bool]]:
        """Return, by row, whether each of its points has the keys and the vector, by chunk."""
        found: dict[str, dict[int, bool]] = {}
        for payload, vectors in self.points().values():
            keys = all(payload.get(key) == value for key, value in THEIRS.items())
            assert keys == ("theirs" in vectors), payload
            said = payload["_sync"]
            found.setdefault(said["row"], {})[said["chunk"]] = keys
        return {row: [chunks[number] for number in sorted(chunks)] for row, chunks in found.items()}


@contextmanager
def opened(settings: Settings, *, long: bool = True) -> Iterator[Place]:
    """Open the memory, the `long` text in chunks, or as one."""
    chunker = memory.by_characters if long else None
    with memory.pipeline_for(settings, chunker=chunker) as (pipeline, connection):
        yield Place(settings.source.database, pipeline, connection)


def own(found: Found) -> dict[PointId, tuple[dict[str, Any], dict[str, Any]]]:
    """Return points without what is not syncer's."""
    return {
        one: (
            {key: value for key, value in payload.items() if key not in THEIRS},
            {name: rounded(vector) for name, vector in vectors.items() if name != "theirs"},
        )
        for one, (payload, vectors) in found.items()
    }


def rounded(vector: Any) -> Any:
    """Return a vector without the last digits, which normalising it again may change."""
    return [round(value, 5) for value in vector] if isinstance(vector, list) else vector


def assert_as_new(place: Place) -> None:
    """See that syncer's own part of the points is what a first sync makes."""
    found = own(place.points())
    place.connection.client.delete("memory", models.PointIdsList(points=list(found)))
    place.execute("UPDATE memory_events SET agent = agent || '-'")
    place.sync()
    place.execute("UPDATE memory_events SET agent = rtrim(agent, '-')")
    place.sync()
    assert own(place.points()) == found
    assert not any(any(chunks) for chunks in place.marked().values())


def without_times(found: Found) -> Found:
    """Return syncer's own part of points as far as it does not say when a row was changed."""
    points = own(found)
    for payload, _ in points.values():
        payload["metadata"] = {**payload["metadata"], "updated_at": None}
        payload["_sync"] = {**payload["_sync"], "payload": None}
    return points


class Interrupted(BaseException):
    """The process ends here."""


def die(place: Place, patch: pytest.MonkeyPatch, batch: int, operations: int) -> None:
    """Let the process end in the midst of a batch, after so many of its operations."""
    client, turns = place.connection.client, 0
    whole = client.batch_update_points

    def some(name: str, update_operations: list[Any], **how: Any) -> object:
        nonlocal turns
        turns += 1
        if turns < batch:
            return whole(name, update_operations, **how)
        whole(name, update_operations[:operations], **how)
        raise Interrupted

    def send(request: httpx.Request, forward: Send) -> httpx.Response:
        nonlocal turns
        turns += request.url.path.endswith("/batch")
        if turns < batch or not request.url.path.endswith("/batch"):
            return forward(request)
        asked = json.loads(request.content)["operations"][:operations]
        forward(httpx.Request(request.method, request.url, json={"operations": asked}))
        raise Interrupted

    if place.connection.local:
        patch.setattr(client, "batch_update_points", some)
        return
    patch.setattr(client.http.client, "middleware", client.http.client.middleware)
    client.http.client.add_middleware(send)


def with_options(settings: Settings, **options: object) -> Settings:
    """Return settings that differ in these, by dotted key."""
    changed = settings
    for key, value in options.items():
        section, name = key.split(".")
        inner = getattr(changed, section).model_copy(update={name: value})
        changed = changed.model_copy(update={section: inner})
    return changed
