"""A target over the wire, what was sent to it, and whole runs in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import memory
from qdrant_client import QdrantClient
from qdrant_http import anywhere

from syncer.cli.once import once as run_once
from syncer.cli.rebuild import rebuild as run_rebuild
from syncer.cli.synced import uncounted
from syncer.cli.verify import Asked
from syncer.cli.verify import verify as run_verify
from syncer.errors import ExitCode, SyncerError
from syncer.keys import PointId
from syncer.model import SYNC_KEY, Description, Point, Position, Recipe, SparseVector
from syncer.ports import Target
from syncer.result import SyncResult, VerifyResult
from syncer.settings import Settings
from syncer.target import Catalog, Connection, GenerationTarget, TargetSpec, connect
from syncer.target import generation_name as new_name

RECIPE = Recipe("v", 2, {"provider": "test"}, {"normaliser": 1}, {"model": "bm25"})
DESCRIPTION = Description(RECIPE, "source", "t", "mapping")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it left."""

    method: str
    path: str
    query: str
    body: Any
    size: int

    @property
    def ids(self) -> list[PointId]:
        """The ids of the points that an upsert carries."""
        return [point["id"] for point in self.body["points"]]


@dataclass(frozen=True, slots=True)
class Wire:
    """A fresh generation on a server."""

    connection: Connection
    generation: str
    target: GenerationTarget
    sent: list[Sent]

    @property
    def client(self) -> QdrantClient:
        """The client that syncer uses."""
        return self.connection.client

    @property
    def upserts(self) -> list[Sent]:
        """The upserts that were sent so far."""
        return [one for one in self.sent if one.method == "PUT" and one.path.endswith("/points")]

    def ids(self) -> set[PointId]:
        """The ids of the points that are there."""
        found, _ = self.client.scroll(self.generation, limit=10_000)
        return {one.id for one in found}  # type: ignore[misc]


@contextmanager
def fresh(url: str, **spec: Any) -> Iterator[Wire]:
    """Connect as syncer does and make a generation; nothing of it stays."""
    with connect(TargetSpec(url=url, **{"timeout": 5, **spec})) as connection:
        sent = record(connection.client)
        generation = new_name("wire", datetime.now(UTC))
        Catalog(connection).create(generation, "wire", DESCRIPTION, ["_sync.row"])
        sent.clear()
        yield Wire(connection, generation, GenerationTarget(connection, generation), sent)


@contextmanager
def anywhere_else(url: str, **settings: Any) -> Iterator[QdrantClient]:
    """Give a client of somebody else's."""
    client = anywhere.client(url, timeout=30, **settings)
    try:
        yield client
    finally:
        client.close()


def record(client: QdrantClient) -> list[Sent]:
    """Return a list that grows with each request of the client's."""
    sent: list[Sent] = []

    def keep(
        request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]
    ) -> httpx.Response:
        url, content = request.url, request.content
        body = json.loads(content) if content else None
        sent.append(Sent(request.method, url.path, url.query.decode(), body, len(content)))
        return send(request)

    client.http.client.add_middleware(keep)
    return sent


def point(identifier: PointId, text: str = "x", **metadata: object) -> Point:
    """Return a complete point with both vectors."""
    row = str(identifier)
    record = {"row": row, "content": "c", "payload": "p", "text": "t", "chunk": 0, "chunks": 1}
    payload = {"document": text, "metadata": metadata, SYNC_KEY: record}
    return Point(identifier, payload, {"v": (0.6, 0.8), "bm25": SparseVector((3,), (0.5,))})


@dataclass(slots=True)
class Told:
    """What a run has said."""

    warnings: list[str] = field(default_factory=list)
    servers: list[tuple[str, str]] = field(default_factory=list)
    retried: list[SyncerError] = field(default_factory=list)
    error: SyncerError | None = None
    result: SyncResult | None = None
    comparisons: list[VerifyResult] = field(default_factory=list)

    def say(self, message: str) -> None:
        """Pass over it."""

    def warn(self, message: str) -> None:
        """Keep it."""
        self.warnings.append(message)

    def connected(self, place: str, version: str) -> None:
        """Keep it."""
        self.servers.append((place, version))

    def uncounted(self, generation: str, points: int) -> None:
        """Keep it as the warning that it is."""
        if points:
            self.warnings.append(uncounted(generation, points))

    def begin(self, pending: int) -> None:
        """Pass over it."""

    def rest(self) -> None:
        """Pass over it."""

    def window(self, result: SyncResult) -> None:
        """Pass over it."""

    def retrying(self, error: SyncerError) -> None:
        """Keep it."""
        self.retried.append(error)

    def failed(self, error: SyncerError) -> None:
        """Keep it."""
        self.error = error

    def done(self, result: SyncResult) -> None:
        """Keep it."""
        self.result = result

    def verified(self, result: VerifyResult) -> None:
        """Keep it."""
        self.comparisons.append(result)

    def stopped(self, code: ExitCode) -> None:
        """Pass over it."""

    def nothing(self, position: Position, *, looked_at_target: bool) -> None:
        """Pass over it."""

    def ended(self, code: ExitCode) -> None:
        """Pass over it."""

    def close(self) -> None:
        """Pass over it."""


def row_pages(target: Target) -> list[list[str]]:
    """Return all pages of the rows that have a point."""
    page, following = target.row_page()
    pages = [page]
    while following is not None:
        page, following = target.row_page(following)
        pages.append(page)
    return pages


def rows(target: Target) -> list[str]:
    """Return the rows of all pages."""
    return [row for page in row_pages(target) for row in page]


def once(settings: Settings, **how: bool) -> tuple[ExitCode, Told]:
    """Run ``syncer once`` in this process; return its exit code and what it said."""
    told = Told()
    return run_once(settings, told, **how), told


def rebuild(settings: Settings) -> tuple[ExitCode, Told]:
    """Run ``syncer rebuild`` in this process; return its exit code and what it said."""
    told = Told()
    return run_rebuild(settings, told), told


def verify(settings: Settings, **asked: Any) -> tuple[ExitCode, Told]:
    """Run ``syncer verify`` in this process; return its exit code and what it said."""
    told = Told()
    return run_verify(settings, told, Asked(**asked)), told


def settings(folder: Path, url: str, **options: object) -> Settings:
    """Return settings for the memory in `folder` and the server at `url`."""
    given = {
        "target.path": "",
        "target.url": url,
        "target.timeout": 5,
        "target.retry_budget": 10,
        "target.check_interval": 0,
        "sparse.enabled": False,  # its stop words take half a second to load
    }
    return memory.settings_for(folder, **{**given, **options})


def documents(settings: Settings) -> dict[object, object]:
    """Return the texts that readers find, by point id."""
    points = memory.points_in(settings)
    return {key: payload["document"] for key, (payload, _) in points.items()}  # type: ignore[index]
