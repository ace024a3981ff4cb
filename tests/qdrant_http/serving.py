"""Serving from a thread of the test's own process."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from qdrant_http import app
from qdrant_http.app import Options
from qdrant_http.connections import Connections
from qdrant_http.faults import Faults, Faulty
from qdrant_http.rpc import Gateway, serving
from qdrant_http.tls import Tls

_STARTING = 20.0  # seconds at most


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs in this process; `rpc` is its gRPC side, where that was asked for."""

    url: str
    port: int
    faults: Faults
    connections: Connections
    gateway: Gateway | None = None

    @property
    def rpc(self) -> Gateway:
        """Its gRPC side; raises ValueError if there is none."""
        if self.gateway is None:
            raise ValueError("the test server was started without gRPC")
        return self.gateway


def configured(served: ASGIApp, connections: Connections, tls: Tls | None) -> uvicorn.Config:
    """Return how uvicorn is set up."""
    config = uvicorn.Config(
        served,
        http=connections.protocol(),
        ws="none",
        lifespan="off",
        log_level="critical",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
    )
    if tls is not None:
        config.ssl_certfile = str(tls.certificate)
        config.ssl_keyfile = str(tls.key)
        if tls.client_ca is not None:
            config.ssl_ca_certs = str(tls.client_ca)
            config.ssl_cert_reqs = ssl.CERT_REQUIRED
    return config


def bound(port: int = 0) -> socket.socket:
    """Return a socket on loopback; port 0 lets the system choose."""
    found = socket.socket(proto=socket.IPPROTO_TCP)  # asyncio wants it, for TCP_NODELAY
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", port))
    return found


def url_of(port: int, options: Options, tls: Tls | None) -> str:
    """Return the URL that clients use."""
    return f"{'http' if tls is None else 'https'}://127.0.0.1:{port}{options.prefix}"


@contextmanager
def running(
    options: Options,
    *,
    tls: Tls | None = None,
    port: int = 0,
    grpc: bool = False,
    most_grpc_bytes: int = -1,
) -> Iterator[Server]:
    """Serve while the block runs, over gRPC too if asked for; its messages have at most so much."""
    faults, connections = Faults(), Connections()
    served, store = app.make(options)
    faulty = Faulty(served, faults, connections, options.prefix)
    with ExitStack() as stack:
        stack.enter_context(closing(store))
        gateway = None
        if grpc:
            calls = serving(faulty, options.prefix, tls=tls, most_bytes=most_grpc_bytes)
            gateway = stack.enter_context(calls)
        listening = stack.enter_context(closing(bound(port)))
        number = listening.getsockname()[1]
        server = uvicorn.Server(configured(faulty, connections, tls))
        thread = threading.Thread(target=server.run, args=([listening],), name="qdrant-http")
        thread.start()
        try:
            _await_start(server, thread)
            url = url_of(number, options, tls)
            yield Server(url, number, faults, connections, gateway)
        finally:
            server.should_exit = True
            thread.join()


def _await_start(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + _STARTING
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise RuntimeError("the test server did not start")
        time.sleep(0.005)
