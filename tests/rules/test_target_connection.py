"""Rules about reaching Qdrant (QT, SE): addresses, keys, certificates, versions, connections."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import memory
import on_the_wire as wire
import pytest
from commands import run
from on_the_wire import point
from qdrant_client import QdrantClient
from qdrant_http import Options, Server, Tls, running
from qdrant_http.certificates import self_signed
from typer.testing import CliRunner

from syncer.cli.app import app
from syncer.errors import ExitCode, SchemaError, SettingsError, SyncerError
from syncer.target import Catalog, TargetSpec, connect

KEY = "qdrant-key-that-nobody-may-see"


def resolve(spec: TargetSpec) -> str | None:
    """Ask a server the first thing that a run asks it."""
    with connect(spec) as connection:
        connection.check_version()
        return Catalog(connection).resolve("memory")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of two rows."""
    memory.make_memory(tmp_path, ["one", "two"])
    return tmp_path


def nothing_listens() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


@pytest.mark.rule("QT-18")
def test_a_closed_port_ends_with_what_was_tried_and_how_often(folder: Path) -> None:
    url = nothing_listens()
    code, told = wire.once(wire.settings(folder, url, **{"target.retry_budget": 1}))
    assert (code, told.result) == (ExitCode.TARGET, None)
    assert f"asking for the version at {url} failed: ConnectError" in str(told.error)
    assert "(tried " in str(told.error)
    assert "target.url" in str(told.error)


@pytest.mark.rule("QT-18")
def test_a_name_that_leads_nowhere_ends_with_the_name(folder: Path) -> None:
    url = "http://qdrant.invalid:6333"
    code, told = wire.once(wire.settings(folder, url, **{"target.retry_budget": 0}))
    assert code == ExitCode.TARGET
    assert f"at {url} failed" in str(told.error)


@pytest.mark.rule("QT-18")
def test_a_server_that_is_not_qdrant_is_told_at_once(server: Server, folder: Path) -> None:
    server.faults.next("not_qdrant", 100)
    code, told = wire.once(wire.settings(folder, server.url))
    assert (code, told.retried) == (ExitCode.TARGET, [])
    assert f"what answers at {server.url} is no Qdrant" in str(told.error)
    assert len(server.faults.happened) == 1


@pytest.mark.rule("QT-18")
def test_tls_where_there_is_none_is_told_at_once(server: Server, folder: Path) -> None:
    url = server.url.replace("http:", "https:")
    code, told = wire.once(wire.settings(folder, url))
    assert (code, told.retried) == (ExitCode.TARGET, [])
    assert f"at {url} failed: ConnectError" in str(told.error)
    assert "http or https" in str(told.error)


@pytest.mark.rule("QT-18")
@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://qdrant.example", "https://qdrant.example:443"),
        ("http://qdrant.example", "http://qdrant.example:80"),
        ("https://qdrant.example/a/b/", "https://qdrant.example:443/a/b"),
        ("http://qdrant.example:6333/", "http://qdrant.example:6333"),
        ("http://[::1]/q", "http://[::1]:80/q"),
    ],
)
def test_the_port_comes_from_the_scheme_and_the_prefix_from_the_path(url: str, asked: str) -> None:
    """Nothing is connected: the request is caught on its way, and the address shown is its own."""
    with connect(TargetSpec(url=url)) as connection:
        urls: list[httpx.URL] = []

        def catch(request: httpx.Request, _: object) -> httpx.Response:
            urls.append(request.url)
            return httpx.Response(200, json={"result": {"collections": []}})

        connection.client.http.client.add_middleware(catch)
        connection.client.get_collections()
        assert connection.spec.name == asked
    assert urls == [httpx.URL(f"{asked}/collections")]


@pytest.mark.rule("QT-18")
def test_a_server_behind_a_path_and_a_key_is_reached(folder: Path) -> None:
    options = Options(folder=folder / "storage", api_key=KEY, prefix="/q")
    with running(options) as server:
        settings = wire.settings(folder, server.url, **{"target.api_key": KEY})
        assert wire.once(settings)[0] == ExitCode.OK
        assert wire.documents(settings) == {1: "one", 2: "two"}
        code, told = wire.once(wire.settings(folder, server.url.removesuffix("/q")))
        assert code == ExitCode.TARGET
        assert "HTTP 404" in str(told.error)


@pytest.mark.rule("QT-18")
@pytest.mark.parametrize("key", [None, "wrong-key-that-nobody-may-see"])
def test_a_wrong_key_is_told_at_once_and_not_shown(folder: Path, key: str | None) -> None:
    with running(Options(folder=folder / "storage", api_key=KEY)) as server:
        settings = wire.settings(folder, server.url, **{"target.api_key": key or ""})
        code, told = wire.once(settings)
        assert (code, told.retried) == (ExitCode.TARGET, [])
        assert "HTTP 401" in str(told.error)
        assert "target.api_key_file" in str(told.error)
        assert "nobody-may-see" not in f"{told.error}{told.warnings}"


@pytest.mark.rule("QT-18")
def test_doctor_says_where_it_asks_and_probes_rest_and_grpc_apart(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    given = {
        "source.database": "memory.db",
        "embed.provider": "hash",
        "target.url": server.url,
    }
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in given.items()]
    (folder / "syncer.toml").write_text("".join(lines))
    found = diagnosed()
    assert found["rest"] == ("ok", f"{server.url} answers")
    assert found["version"][1].startswith("Qdrant 1.")
    port = nothing_listens().rpartition(":")[2]
    found = diagnosed("--set", "target.grpc=true", "--set", f"target.grpc_port={port}")
    assert found["rest"][0] == "ok"
    assert found["target"][0] == "failed"
    assert "target.grpc_port" in found["target"][1]


def diagnosed(*options: str) -> dict[str, tuple[str, str]]:
    """Return what doctor finds, by subject."""
    done = CliRunner().invoke(app, ["doctor", "--json", *options])
    return {one["subject"]: (one["verdict"], one["finding"]) for one in json.loads(done.stdout)}


@pytest.mark.rule("QT-17")
def test_an_old_server_is_refused_unless_the_operator_knows_better(
    server: Server, folder: Path
) -> None:
    server.faults.next("old_version", 2, path="/")
    code, told = wire.once(wire.settings(folder, server.url))
    assert code == ExitCode.REFUSED
    assert f"{server.url} is Qdrant 1.9.7; syncer needs 1.16 or newer" in str(told.error)
    with wire.anywhere_else(server.url) as client:
        assert client.get_collections().collections == []
    knowing = wire.settings(folder, server.url, **{"target.allow_old_server": True})
    code, told = wire.once(knowing)
    assert (code, told.servers) == (ExitCode.OK, [(server.url, "1.9.7")])
    assert len(server.faults.happened) == 2


@pytest.mark.rule("QT-17")
@pytest.mark.parametrize(
    ("version", "taken"), [("1.15.9", False), ("1.16.0", True), ("1.16.0-dev", True), ("2.0", True)]
)
def test_the_oldest_server_is_1_16(tmp_path: Path, version: str, taken: bool) -> None:
    with running(Options(folder=tmp_path, version=version)) as server:
        spec = TargetSpec(url=server.url)
        if taken:
            assert resolve(spec) is None
        else:
            with pytest.raises(SchemaError, match=version):
                resolve(spec)


@pytest.mark.rule("QT-19")
@pytest.mark.parametrize("kind", ["closed_before", "closed_during", "closed_after"])
def test_a_connection_that_was_dropped_is_made_good_once_and_nobody_hears_of_it(
    server: Server, folder: Path, kind: str
) -> None:
    settings = wire.settings(folder, server.url)
    for number, path in enumerate(("/", "/aliases", "/collections/*/points", "/collections/*")):
        memory.execute(folder / "memory.db", "UPDATE memory_events SET content = ?", (f"{number}",))
        server.faults.next(kind, path=path)
        code, told = wire.once(settings)
        assert (code, told.retried) == (ExitCode.OK, [])
        assert not server.faults.waiting
    assert wire.documents(settings) == {1: "3", 2: "3"}


@pytest.mark.rule("QT-19")
def test_a_connection_is_kept_and_replaced_when_it_was_idle_for_too_long(server: Server) -> None:
    with wire.fresh(server.url) as target:
        target.target.upsert([point(1)])
        before = server.connections.made
        target.target.upsert([point(2)])
        assert server.connections.made == before
        server.connections.close_all()
        target.target.upsert([point(3)])
        assert server.connections.made == before + 1
        assert target.ids() == {1, 2, 3}


@pytest.mark.rule("QT-20")
def test_a_local_folder_that_is_taken_is_told_once_and_its_lock_stays(folder: Path) -> None:
    (folder / "syncer.toml").write_text(
        '[source]\ndatabase = "memory.db"\n[target]\nlock_wait = 0\n[embed]\nprovider = "hash"\n'
    )
    with closing(QdrantClient(path=str(folder / "qdrant"))):
        held = {one.name for one in (folder / "qdrant").iterdir()}
        done = run("once", cwd=folder)
        assert done.code == ExitCode.LOCKED
        assert done.err.count(f"folder {folder / 'qdrant'} is open in another program") == 1
        assert "Qdrant server" in done.err
        assert held <= {one.name for one in (folder / "qdrant").iterdir()}
    assert run("once", cwd=folder).code == ExitCode.OK  # it had let go of its own lock


@pytest.mark.rule("QT-22")
def test_one_thread_talks_to_qdrant(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talking: set[int] = set()
    send = httpx.Client.send

    def noted(client: httpx.Client, *args: object, **kwargs: object) -> httpx.Response:
        talking.add(threading.get_ident())
        return send(client, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(httpx.Client, "send", noted)
    assert wire.once(wire.settings(folder, server.url))[0] == ExitCode.OK
    assert talking == {threading.get_ident()}


@pytest.mark.rule("SE-05")
@pytest.mark.parametrize("by", ["api_key", "api_key_file"])
def test_a_key_is_not_sent_in_the_clear_to_another_machine(folder: Path, by: str) -> None:
    (folder / "key").write_text(KEY)
    secret = {f"target.{by}": KEY if by == "api_key" else str(folder / "key")}
    with pytest.raises(SettingsError, match="unencrypted") as found:
        wire.settings(folder, "http://192.0.2.1:6333", **secret)
    assert KEY not in str(found.value)
    assert found.value.exit_code == ExitCode.USAGE
    wire.settings(folder, "https://192.0.2.1:6333", **secret)
    wire.settings(folder, "http://192.0.2.1:6333", **secret, **{"target.allow_insecure_key": True})


def test_a_certificate_of_one_s_own_is_trusted_only_if_it_is_named(tmp_path: Path) -> None:
    tls = self_signed(tmp_path, "server")
    with running(Options(folder=tmp_path / "storage"), tls=tls) as server:
        spec = TargetSpec(url=server.url)
        with pytest.raises(SyncerError, match=r"CERTIFICATE_VERIFY_FAILED[\s\S]*ca_file"):
            resolve(spec)
        assert resolve(replace(spec, ca=tls.certificate)) is None


def test_a_client_certificate_is_shown(tmp_path: Path) -> None:
    tls, ours = self_signed(tmp_path, "server"), self_signed(tmp_path, "client")
    mutual = Tls(certificate=tls.certificate, key=tls.key, client_ca=ours.certificate)
    with running(Options(folder=tmp_path / "storage"), tls=mutual) as server:
        spec = TargetSpec(url=server.url, ca=tls.certificate)
        with pytest.raises(SyncerError):
            resolve(spec)
        known = replace(spec, client_cert=ours.certificate, client_key=ours.key)
        assert resolve(known) is None


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_a_certificate_that_cannot_be_used_is_a_matter_of_settings(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    spec = TargetSpec(url="https://localhost:1", ca=tmp_path / "ca.pem")
    with pytest.raises(SettingsError, match=r"ca\.pem[\s\S]*target\.ca_file"):
        connect(spec)
