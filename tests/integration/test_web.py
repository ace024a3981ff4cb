"""The server over the wire: pages, health, headers, bounds, and its port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import httpx
import pytest
from status_pages import PAGE, pages

from syncer.errors import ExitCode, SettingsError, SourceError
from syncer.telemetry import Health, Limits, Runs, health
from syncer.telemetry.metrics import CONTENT_TYPE
from syncer.web import Pages, StatusPage, WebServer, listen
from syncer.web import server as server_module
from syncer.web.requests import Connection

LOOPBACK = "127.0.0.1:0"


@contextmanager
def serving(served: Pages, address: str = LOOPBACK) -> Iterator[WebServer]:
    """Serve for as long as the block runs."""
    server = listen(address, served, port_in_use="fatal", warn=no_warning)
    assert server is not None
    try:
        yield server
    finally:
        server.stop()


def no_warning(message: str) -> None:
    raise AssertionError(message)


@pytest.fixture
def server() -> Iterator[WebServer]:
    """A server that shows the page."""
    with serving(pages()) as found:
        yield found


def get(server: WebServer, path: str, **headers: str) -> httpx.Response:
    return httpx.get(f"http://{server.address}{path}", headers=headers, trust_env=False)


def said(server: WebServer, request: bytes) -> bytes:
    """Return all that the server answers to these bytes, until it hangs up."""
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        try:
            connection.sendall(request)
            parts = list(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:  # it hung up before it had read everything
            return b""
    return b"".join(parts)


def test_every_page_is_there_and_no_other(server: WebServer) -> None:
    found = {path: get(server, path) for path in ("/", "/metrics", "/healthz", "/readyz", "/x")}
    assert [one.status_code for one in found.values()] == [200, 200, 200, 200, 404]
    assert "12,840 rows behind" in found["/"].text
    assert found["/"].headers["content-type"] == "text/html; charset=utf-8"
    assert found["/metrics"].text == "up 1\n"
    assert found["/metrics"].headers["content-type"] == CONTENT_TYPE
    assert get(server, "/metrics?name=x").status_code == 200


@pytest.mark.parametrize("path", ["/", "/metrics", "/nothing"])
def test_every_answer_forbids_what_it_does_not_need(server: WebServer, path: str) -> None:
    headers = get(server, path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["server"] == "syncer"
    assert b"nosniff" in said(server, b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_only_get_and_head_are_taken(server: WebServer) -> None:
    head = httpx.head(f"http://{server.address}/", trust_env=False)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 1000
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
        request = f"{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        assert b" 501 " in said(server, request).splitlines()[0]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9464", "[::2]", ""]
)
def test_a_foreign_name_is_refused_while_only_this_machine_is_listened_to(
    server: WebServer, host: str
) -> None:
    assert get(server, "/metrics", Host=host).status_code == 421
    two = b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"
    assert b" 421 " in said(server, two).splitlines()[0]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9464", "[::1]:1", "127.9.9.9"])
def test_names_of_this_machine_are_taken(server: WebServer, host: str) -> None:
    assert get(server, "/metrics", Host=host).status_code == 200


def test_any_name_is_taken_where_everybody_is_listened_to() -> None:
    with serving(pages(), "0.0.0.0:0") as server:
        port = server.address.rpartition(":")[2]
        url = f"http://127.0.0.1:{port}/metrics"
        answer = httpx.get(url, headers={"Host": "syncer:9464"}, trust_env=False)
        assert answer.status_code == 200


@pytest.mark.rule("OP-03")
def test_health_goes_and_comes_with_the_present_state_alone() -> None:
    runs, limits = Runs(started=0.0), Limits(failures=2, seconds=0)
    served = replace(
        pages(), health=lambda: health(runs, limits, 100.0), ready=lambda: runs.caught_up
    )
    with serving(served) as server:
        assert get(server, "/healthz").status_code == 200
        assert get(server, "/readyz").status_code == 503
        runs = runs.failed(1, "target").failed(2, "target")
        ill = get(server, "/healthz")
        assert (ill.status_code, ill.text) == (503, "the last 2 runs failed: target\n")
        runs = runs.succeeded(3, caught_up=True)
        assert get(server, "/healthz").status_code == 200
        assert get(server, "/readyz").status_code == 200


def test_health_is_answered_while_another_page_is_stuck() -> None:
    stuck, reached = threading.Event(), threading.Event()

    def status() -> StatusPage:
        reached.set()
        stuck.wait(30)
        return PAGE

    with serving(replace(pages(), status=status)) as server:
        asking = threading.Thread(target=get, args=(server, "/"))
        asking.start()
        assert reached.wait(10)
        assert get(server, "/healthz").status_code == 200
        stuck.set()
        asking.join()


def test_a_state_that_cannot_be_read_is_an_answer_too() -> None:
    def status() -> StatusPage:
        raise SourceError("/a/path cannot be read")

    with serving(replace(pages(), status=status)) as server:
        answer = get(server, "/")
        assert answer.status_code == 503
        assert "/a/path" not in answer.text


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"\x00\xff\x16\x03\x01" * 10_000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    ],
)
def test_what_is_no_decent_request_gets_no_page_and_stops_nothing(
    server: WebServer, request_: bytes
) -> None:
    assert b"12,840" not in said(server, request_)
    assert get(server, "/healthz").status_code == 200


def test_whoever_says_nothing_is_hung_up_on_and_keeps_nobody_out(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_DEADLINE", 0.2)
    monkeypatch.setattr(Connection, "timeout", 60)  # so that it is the deadline that ends them
    host, _, port = server.address.rpartition(":")
    silent = [socket.create_connection((host, int(port)), timeout=20) for _ in range(16)]
    try:
        assert [connection.recv(1) for connection in silent] == [b""] * 16
        assert get(server, "/healthz").status_code == 200
    finally:
        for connection in silent:
            connection.close()


def test_connections_beyond_a_bound_are_hung_up_on(server: WebServer) -> None:
    host, _, port = server.address.rpartition(":")
    held = [socket.create_connection((host, int(port)), timeout=20) for _ in range(16)]
    with closing(socket.create_connection((host, int(port)), timeout=20)) as beyond:
        assert beyond.recv(1) == b""
    for connection in held:
        connection.close()


@pytest.mark.rule("OP-01")
def test_a_port_that_is_taken_ends_with_the_address_or_is_a_warning(server: WebServer) -> None:
    with pytest.raises(SettingsError) as caught:
        listen(server.address, pages(), port_in_use="fatal", warn=no_warning)
    assert caught.value.exit_code is ExitCode.USAGE
    assert server.address in caught.value.message
    assert "in use by another program" in caught.value.message
    warnings: list[str] = []
    assert listen(server.address, pages(), port_in_use="warn", warn=warnings.append) is None
    assert server.address in warnings[0]


@pytest.mark.rule("OP-01")
def test_the_port_is_free_again_at_once_and_a_second_server_serves_on_it() -> None:
    with serving(pages()) as first:
        address = first.address
        assert get(first, "/healthz").status_code == 200
    for _ in range(3):
        with serving(pages(replace(PAGE, health=Health(well=False, why="x"))), address) as again:
            assert again.address == address
            assert get(again, "/healthz").status_code == 503
    again.stop()


def test_an_address_that_is_not_here_is_refused_whatever_the_setting() -> None:
    with pytest.raises(SettingsError, match="cannot be listened on"):
        listen("192.0.2.1:9464", pages(), port_in_use="warn", warn=no_warning)
