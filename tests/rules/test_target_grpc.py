"""Rules about reaching Qdrant (QT), and about collections, over gRPC."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import memory
import on_the_wire as wire
import pytest
from on_the_wire import Wire, point
from over_grpc import fresh, settings_for, upserts
from qdrant_client import models
from qdrant_http import Options, Server, Tls, running
from qdrant_http.anywhere import own_name
from qdrant_http.certificates import self_signed
from typer.testing import CliRunner

from syncer.cli.app import app
from syncer.errors import (
    ExitCode,
    IdentityError,
    SchemaError,
    SyncerError,
    TargetUnavailableError,
)
from syncer.foreign import Foreign
from syncer.model import Question
from syncer.retry import within
from syncer.target import Catalog, Creation, ForeignPoints, TargetSpec, connect
from syncer.target.query import query

KEY = "qdrant-key-that-nobody-may-see"
POINTS = "/collections/*/points"
UUID = "6a7f75b2-5afe-51b8-b4b4-da7ae14a678d"


@pytest.fixture
def server(rpc_server: Server) -> Server:
    """The server over gRPC, in the place of the other one."""
    return rpc_server


@pytest.fixture
def target(rpc_target: Wire) -> Wire:
    """A fresh generation on it."""
    return rpc_target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of two rows."""
    memory.make_memory(tmp_path, ["one", "two"])
    return tmp_path


@pytest.mark.rule("QT-18")
@pytest.mark.parametrize("key", [None, "wrong-key-that-nobody-may-see"])
def test_a_wrong_key_is_told_at_once_and_not_shown(folder: Path, key: str | None) -> None:
    with running(Options(folder=folder / "storage", api_key=KEY), grpc=True) as server:
        code, told = wire.once(settings_for(folder, server, **{"target.api_key": key or ""}))
        assert (code, told.retried) == (ExitCode.TARGET, [])
        assert "gRPC UNAUTHENTICATED" in str(told.error)
        assert "target.api_key_file" in str(told.error)
        assert "nobody-may-see" not in f"{told.error}{told.warnings}"
        assert wire.once(settings_for(folder, server, **{"target.api_key": KEY}))[0] == ExitCode.OK
        assert server.connections.made == 0


@pytest.mark.rule("QT-18")
def test_another_port_and_tls_where_there_is_none_are_told_at_once(
    shared_rpc_server: Server, folder: Path
) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        closed = unused.getsockname()[1]
        code, told = wire.once(
            settings_for(
                folder,
                shared_rpc_server,
                **{"target.grpc_port": closed, "target.retry_budget": 0.5},
            )
        )
    assert (code, bool(told.retried)) == (ExitCode.TARGET, True)
    assert "target.grpc_port" in str(told.error)
    code, told = wire.once(
        settings_for(folder, shared_rpc_server, **{"target.grpc_port": shared_rpc_server.port})
    )
    assert (code, told.retried) == (ExitCode.TARGET, [])
    assert "check target.grpc_port" in str(told.error)
    secure = shared_rpc_server.url.replace("http:", "https:")
    code, told = wire.once(settings_for(folder, shared_rpc_server, **{"target.url": secure}))
    assert (code, told.retried) == (ExitCode.TARGET, [])
    assert "http or https" in str(told.error)


@pytest.mark.rule("QT-18")
def test_doctor_says_that_shared_rpc_server_are_open(
    shared_rpc_server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    port = shared_rpc_server.rpc.port
    given = {
        "source.database": "memory.db",
        "embed.provider": "hash",
        "target.url": shared_rpc_server.url,
        "target.grpc": True,
        "target.grpc_port": port,
    }
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in given.items()]
    (folder / "syncer.toml").write_text("".join(lines))
    done = CliRunner().invoke(app, ["doctor", "--json"])
    found = {one["subject"]: (one["verdict"], one["finding"]) for one in json.loads(done.stdout)}
    assert found["rest"] == ("ok", f"{shared_rpc_server.url} answers")
    assert found["grpc"] == ("ok", f"port {port} answers")


@pytest.mark.rule("QT-17")
def test_an_old_server_is_refused(server: Server, folder: Path) -> None:
    server.faults.next("old_version", path="/")
    code, told = wire.once(settings_for(folder, server))
    assert code == ExitCode.REFUSED
    assert "is Qdrant 1.9.7" in str(told.error)


@pytest.mark.rule("QT-19")
@pytest.mark.parametrize("kind", ["closed_before", "closed_after"])
def test_a_connection_that_was_dropped_is_made_good_once_and_nobody_hears_of_it(
    server: Server, folder: Path, kind: str
) -> None:
    settings = settings_for(folder, server)
    for number, path in enumerate(("/", "/aliases", "/collections/*/points", "/collections/*")):
        memory.execute(folder / "memory.db", "UPDATE memory_events SET content = ?", (f"{number}",))
        server.faults.next(kind, path=path)
        code, told = wire.once(settings)
        assert (code, told.retried) == (ExitCode.OK, [])
        assert not server.faults.waiting
    assert wire.documents(settings) == {1: "3", 2: "3"}


@pytest.mark.rule("QT-23")
def test_a_collection_that_is_gone_or_emptied_is_noticed(server: Server, target: Wire) -> None:
    server.faults.next("dropped", path=POINTS)
    with pytest.raises(IdentityError, match="gRPC NOT_FOUND"):
        target.target.upsert([point(1)])
    with pytest.raises(IdentityError, match="is not there any more"):
        Catalog(target.connection).describe(target.generation)


def test_how_a_collection_is_stored_is_asked_for_and_compared(server: Server) -> None:
    asked = Creation(
        shard_number=1,
        replication_factor=1,
        write_consistency_factor=1,
        vectors_on_disk=True,
        payload_on_disk=False,
        hnsw_m=8,
        hnsw_ef_construct=64,
        quantization="scalar",
    )
    with fresh(server, creation=asked) as target:
        assert Catalog(target.connection).differences(target.generation, wire.RECIPE) == []
        spec = replace(target.connection.spec, creation=replace(asked, hnsw_m=9, quantization=None))
        with connect(spec) as connection:
            found = Catalog(connection).differences(target.generation, wire.RECIPE)
        assert found == ["target.hnsw_m = 9, the collection has 8"]


def test_what_somebody_took_away_is_put_back(target: Wire) -> None:
    def modifier() -> models.Modifier | None:
        config = target.client.get_collection(target.generation).config
        return (config.params.sparse_vectors or {})["bm25"].modifier

    target.client.update_collection(
        target.generation,
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.NONE)},
    )
    assert modifier() == models.Modifier.NONE
    Catalog(target.connection).mend(target.generation, wire.RECIPE, ["_sync.row", "metadata.a"])
    assert modifier() == models.Modifier.IDF
    info = target.client.get_collection(target.generation)
    assert set(info.payload_schema) == {"_sync.row", "metadata.a"}


@pytest.mark.rule("QT-10")
def test_the_bounds_of_strict_mode_are_kept(server: Server, target: Wire) -> None:
    def strictly(**settings: Any) -> None:
        config = models.StrictModeConfig(enabled=True, **settings)
        target.client.update_collection(target.generation, strict_mode_config=config)

    strictly(upsert_max_batchsize=5, max_query_limit=7)
    assert target.target.upsert([point(number) for number in range(20)]) == {}
    assert max(len(one.points) for one in upserts(server)) == 5
    pages = wire.row_pages(target.target)
    assert [len(one) for one in pages] == [7, 7, 6]
    strictly(unindexed_filtering_retrieve=False)
    with pytest.raises(SchemaError, match=r"without an index is metadata\.a"):
        query(
            target.connection,
            target.generation,
            wire.DESCRIPTION,
            Question(dense=(0.6, 0.8)),
            3,
            {"a": "x"},
        )


def test_what_somebody_else_has_written_is_read_with_its_vectors(target: Wire) -> None:
    payload = {"x": [1, None, 2.5, {"y": True}], "z": {}}
    with own_name(target.client) as name:
        target.client.create_collection(
            name, vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT)
        )
        target.client.upsert(
            name, [models.PointStruct(id=UUID, vector=[0.5, 1.0], payload=payload)], wait=True
        )
        pages = ForeignPoints(target.connection, name, vectors=True).pages()
        assert list(pages) == [[Foreign(UUID, payload, {"": [0.5, 1.0]})]]


def resolve(spec: TargetSpec) -> str | None:
    """Ask a server the first thing that a run asks it."""
    with connect(spec) as connection:
        connection.check_version()
        connection.check_rest()
        return Catalog(connection).resolve("memory")


def test_certificates_of_one_s_own_are_trusted_and_shown(tmp_path: Path) -> None:
    tls, ours = self_signed(tmp_path, "server"), self_signed(tmp_path, "client")
    mutual = Tls(certificate=tls.certificate, key=tls.key, client_ca=ours.certificate)
    with running(Options(folder=tmp_path / "storage"), tls=mutual, grpc=True) as server:
        spec = TargetSpec(url=server.url, grpc=True, grpc_port=server.rpc.port, timeout=5)
        with pytest.raises(SyncerError, match=r"CERTIFICATE_VERIFY_FAILED[\s\S]*ca_file"):
            resolve(spec)
        trusting = replace(spec, ca=tls.certificate)
        with pytest.raises(SyncerError):
            resolve(trusting)
        assert not server.rpc.calls
        known = replace(trusting, client_cert=ours.certificate, client_key=ours.key)
        assert resolve(known) is None
        assert server.rpc.names() == [
            "Qdrant.HealthCheck",
            "Collections.ListAliases",
            "Collections.CollectionExists",
        ]


Ask = Callable[[Wire], object]


@pytest.mark.parametrize(
    "ask",
    [
        lambda wire: wire.target.count(),
        lambda wire: wire.target.look_up({1: (1,)}),
        lambda wire: wire.target.row_page(),
        lambda wire: wire.target.records(),
        lambda wire: wire.target.token(),
        lambda wire: wire.target.write_token("t"),
        lambda wire: wire.target.delete([1]),
        lambda wire: wire.target.overwrite([point(1)]),
    ],
    ids=["count", "look_up", "row_page", "records", "token", "write_token", "delete", "overwrite"],
)
def test_whatever_is_asked_may_be_asked_again(server: Server, target: Wire, ask: Ask) -> None:
    """The server is not to be had three times: twice for the channel, and once more."""
    target.target.upsert([point(1)])
    server.faults.next("error", 3, path="/collections/*", status=503)
    told: list[SyncerError] = []
    within(lambda _: 60, sleep=lambda _: None, on_retry=told.append)(ask, target)
    assert [type(one) for one in told] == [TargetUnavailableError]
    assert not server.faults.waiting
