"""A small HTTP server on threads of its own: it answers whatever the run at work is doing.

It stands on ``http.server`` rather than on prometheus-client's own server: that one knows no bound
for requests, no deadline, no check of the host, and serves metrics alone.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import HTTPServer
from typing import Literal

from syncer.errors import SettingsError
from syncer.telemetry.runs import Health
from syncer.web.requests import Connection
from syncer.web.status import StatusPage

_AT_ONCE = 16  # connections
_DEADLINE = 10.0  # seconds from the beginning of a connection to its end
_POLL = 0.25  # seconds between two looks at deadlines, and the longest a stop waits


@dataclass(frozen=True, slots=True)
class Pages:
    """What is served; each is called in a thread of the server's, several at a time.

    None of them may wait for what a run holds. `metrics` returns Prometheus's text format, which
    is of `metrics_type`.
    """

    metrics: Callable[[], bytes]
    metrics_type: str
    health: Callable[[], Health]
    ready: Callable[[], bool]
    status: Callable[[], StatusPage]


class WebServer(HTTPServer):
    """The server, bound to its address when it is made; it answers between start and stop."""

    request_queue_size = 32

    def __init__(self, address: str, pages: Pages) -> None:
        host, port = _parsed(address)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        self.only_here = _is_loopback(host)
        self._free = threading.Semaphore(_AT_ONCE)
        self._thread: threading.Thread | None = None
        super().__init__((host, port), Connection)

    @property
    def address(self) -> str:
        """Where it listens, with the port that the kernel chose if it was 0."""
        host, port = self.server_address[:2]
        name = host.decode() if isinstance(host, (bytes, bytearray)) else str(host)
        return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def start(self) -> None:
        """Answer from now on."""
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL,), name="syncer-web", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Answer no more, and give the port back; may be called again."""
        if self._thread is not None:
            self.shutdown()
            self._thread.join()
            self._thread = None
        self.server_close()

    def server_bind(self) -> None:
        """Bind, without asking the resolver for this machine's name as the parent does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "syncer", self.server_address[1]

    def process_request(self, request: object, client_address: object) -> None:
        """Answer in a thread of its own, or hang up where too many are at it already."""
        assert isinstance(request, socket.socket)  # noqa: S101 - a server of TCP
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        timer = threading.Timer(_DEADLINE, _hang_up, [request])
        timer.daemon = True
        timer.start()
        threading.Thread(
            target=self._answer, args=(request, client_address, timer), daemon=True
        ).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asked has gone, or took too long."""

    def _answer(
        self, request: socket.socket, client_address: object, timer: threading.Timer
    ) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            self.handle_error(request, client_address)
        finally:
            timer.cancel()
            self.shutdown_request(request)
            self._free.release()


def listen(
    address: str,
    pages: Pages,
    *,
    port_in_use: Literal["fatal", "warn"],
    warn: Callable[[str], None],
) -> WebServer | None:
    """Return a server that answers on `address`, None if the port is taken and that is no matter.

    Raises SettingsError if the port is taken and `port_in_use` is ``fatal``, and in any case for
    an address that is none of this machine's.
    """
    try:
        server = WebServer(address, pages)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        message = f"metrics.listen = {address}: {_cause(error)}"
        if taken and port_in_use == "warn":
            warn(f"{message}. There are no metrics, no health and no status page")
            return None
        raise SettingsError(
            message,
            hint="Choose another port, or stop what listens there; metrics.port_in_use = "
            '"warn" goes on without, metrics.listen = "" switches it off.',
        ) from error
    server.start()
    return server


def _cause(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use by another program"
    return f"it cannot be listened on: {error.strerror or error}"


def _parsed(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _hang_up(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
