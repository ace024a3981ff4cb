"""The test server, for the rules about the target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import memory
import on_the_wire as wire
import over_grpc
import preserved
import pytest
from qdrant_http import Options, Server, running

from syncer.settings import Settings


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One test server for all."""
    with running(Options(folder=tmp_path_factory.mktemp("qdrant") / "storage")) as found:
        yield found


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """The test server, without faults and collections."""
    shared_server.faults.clear()
    shared_server.faults.happened.clear()
    yield shared_server
    shared_server.faults.clear()
    with wire.anywhere_else(shared_server.url) as client:
        for one in client.get_collections().collections:
            client.delete_collection(one.name)


@pytest.fixture
def target(server: Server) -> Iterator[wire.Wire]:
    """A fresh generation on it."""
    with wire.fresh(server.url) as found:
        yield found


@pytest.fixture(scope="session")
def shared_rpc_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One test server that speaks gRPC too, for all."""
    folder = tmp_path_factory.mktemp("qdrant")
    with running(Options(folder=folder / "storage"), grpc=True) as found:
        yield found


@pytest.fixture
def rpc_server(shared_rpc_server: Server) -> Iterator[Server]:
    """That server, without faults and collections; in the end nothing went over REST."""
    shared_rpc_server.faults.happened.clear()
    shared_rpc_server.rpc.calls.clear()
    before = shared_rpc_server.connections.made
    yield shared_rpc_server
    assert shared_rpc_server.rpc.calls
    assert shared_rpc_server.connections.made == before
    shared_rpc_server.faults.clear()
    with wire.anywhere_else(
        shared_rpc_server.url, **over_grpc.client_settings(shared_rpc_server)
    ) as client:
        for one in client.get_collections().collections:
            client.delete_collection(one.name)


@pytest.fixture
def rpc_target(rpc_server: Server) -> Iterator[wire.Wire]:
    """A fresh generation on it."""
    with over_grpc.fresh(rpc_server) as found:
        rpc_server.rpc.calls.clear()
        yield found


@pytest.fixture(params=["local", "server"])
def preserving(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Settings:
    """Three rows, and settings that ask to preserve what others put into their points."""
    memory.make_memory(tmp_path, ["one", preserved.LONG, "three"])
    if request.param == "local":
        return memory.settings_for(tmp_path, **preserved.ON)
    options = {"sparse.enabled": True, **preserved.ON}
    return wire.settings(tmp_path, server.url, **options)


@pytest.fixture
def place(preserving: Settings) -> Iterator[preserved.Place]:
    """Those rows, synced, the second one in several chunks."""
    with preserved.opened(preserving) as found:
        found.sync()
        yield found
