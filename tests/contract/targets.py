"""The targets that the contract is held by, each with a way to look into it from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest
from contract.fake_target import FakeTarget
from qdrant_client import models
from qdrant_http import Options, running

from syncer.keys import PointId
from syncer.model import Description, Recipe, SparseVector, Vector
from syncer.ports import Target
from syncer.target import (
    Catalog,
    Connection,
    GenerationTarget,
    TargetSpec,
    connect,
    generation_name,
)

RECIPE = Recipe("v", 2, {"provider": "test"}, {"normaliser": 1}, {"model": "bm25"})
URL = os.environ.get("QDRANT_URL")
GRPC_PORT = os.environ.get("QDRANT_GRPC_PORT")
NAMES = ["fake", "local", "http", "grpc"] + (["server", "server over grpc"] if URL else [])
"""The dictionary, the client's local mode, the test server by both of its ways, and a real one by
QDRANT_URL, over gRPC too where QDRANT_GRPC_PORT is set."""


class Kind(Protocol):
    """A target under test, and a way to look into it without it."""

    name: str

    @property
    def target(self) -> Target:
        """Return the target under test."""

    def peek(self, identifier: PointId) -> tuple[dict[str, object], dict[str, list[float]]] | None:
        """Return payload and vectors of a point."""

    def count(self) -> int:
        """Return the number of points."""

    def runs_on(self) -> str:
        """Say what it is, asked of itself."""


class Fake:
    """The dictionary."""

    name = "fake"

    def __init__(self, *, preserve: bool = False) -> None:
        self.target = FakeTarget(preserve=preserve)

    def peek(self, identifier: PointId) -> tuple[dict[str, object], dict[str, list[float]]] | None:
        """Look into the dictionary."""
        point = self.target.points.get(identifier)
        if point is None:
            return None
        return dict(point.payload), {name: _plain(v) for name, v in point.vectors.items()}

    def count(self) -> int:
        """Count the dictionary."""
        return self.target.count()

    def runs_on(self) -> str:
        """Name the dictionary."""
        return f"a dictionary of {type(self.target).__name__}"


class Qdrant:
    """A generation in local mode or on a server."""

    def __init__(self, name: str, connection: Connection, alias: str) -> None:
        self.name = name
        self._connection = connection
        self._generation = generation_name(alias, datetime.now(UTC))
        description = Description(RECIPE, "source", "t", "mapping")
        Catalog(connection).create(self._generation, alias, description, ["_sync.row"])
        self.target = GenerationTarget(connection, self._generation)

    def peek(self, identifier: PointId) -> tuple[dict[str, object], dict[str, list[float]]] | None:
        """Ask the client."""
        records = self._connection.client.retrieve(
            self._generation, [identifier], with_payload=True, with_vectors=True
        )
        if not records:
            return None
        vectors = records[0].vector
        assert isinstance(vectors, dict)
        plain = {name: _plain(vector) for name, vector in vectors.items()}  # type: ignore[arg-type]
        return records[0].payload or {}, plain

    def count(self) -> int:
        """Count exactly."""
        return self.target.count()

    def runs_on(self) -> str:
        """Ask the client for what it talks to."""
        if self._connection.local:
            return f"local mode in {self._connection.spec.path}"
        version, spec = self._connection.check_version(), self._connection.spec
        return f"Qdrant {version} at {spec.name}" + (" over gRPC" if spec.grpc else "")

    def drop(self) -> None:
        """Leave nothing behind on a server."""
        self._connection.client.delete_collection(self._generation)


@contextmanager
def made(name: str, folder: Path, *, preserve: bool = False) -> Iterator[Kind]:
    """Make a target of this kind, with nothing in it; it may `preserve` what is not syncer's."""
    if name == "fake":
        yield Fake(preserve=preserve)
        return
    with ExitStack() as stack:
        spec = stack.enter_context(_place(name, folder))
        spec = replace(spec, preserve_foreign_payload=preserve)
        connection = stack.enter_context(connect(spec))
        found = Qdrant(name, connection, "syncer-contract-test")
        stack.callback(found.drop)
        yield found


@contextmanager
def _place(name: str, folder: Path) -> Iterator[TargetSpec]:
    if name == "local":
        yield TargetSpec(path=folder / "qdrant")
    elif name == "http":
        with running(Options(folder=folder / "storage")) as server:
            yield TargetSpec(url=server.url)
        assert server.connections.made
    elif name == "grpc":
        with running(Options(folder=folder / "storage"), grpc=True) as server:
            yield TargetSpec(url=server.url, grpc=True, grpc_port=server.rpc.port)
        assert {"Points.Upsert", "Collections.Create"} & set(server.rpc.names())
        assert server.connections.made == 0  # nothing went over REST
    elif name == "server":
        yield TargetSpec(url=URL, api_key=os.environ.get("QDRANT_API_KEY"))
    else:
        if GRPC_PORT is None:
            pytest.skip("QDRANT_GRPC_PORT does not say where the server speaks gRPC")
        key = os.environ.get("QDRANT_API_KEY")
        yield TargetSpec(url=URL, api_key=key, grpc=True, grpc_port=int(GRPC_PORT))


def _plain(vector: Vector | SparseVector | models.SparseVector) -> list[float]:
    """Return a vector as a list: a sparse one as its indices and its values."""
    if isinstance(vector, (SparseVector, models.SparseVector)):
        return [*vector.indices, *vector.values]
    return list(vector)
