"""One connection: one short request, one answer."""

from __future__ import annotations

import io
import re
from http import HTTPStatus
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from syncer.errors import SyncerError
from syncer.web.page import STYLE_HASH, render

if TYPE_CHECKING:
    from syncer.web.server import WebServer

_LONGEST = 16 * 1024  # bytes of a request, line and headers
_PLAIN, _HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
_HERE = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src '{STYLE_HASH}'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Answer = tuple[HTTPStatus, str, bytes]


class Connection(BaseHTTPRequestHandler):
    """Answers GET and HEAD; the connection ends with the answer."""

    server: WebServer
    timeout = 5  # seconds that a read or a write may wait
    server_version, sys_version = "syncer", ""
    error_content_type = _PLAIN
    error_message_format = "%(code)d %(message)s\n"

    def setup(self) -> None:
        """Read a bounded number of bytes, whoever sends more."""
        super().setup()
        self.rfile = _Bounded(self.rfile, _LONGEST)

    def do_GET(self) -> None:
        """Answer with a page."""
        self._send(*self._answered(), with_body=True)

    def do_HEAD(self) -> None:
        """Answer with a page's headers."""
        self._send(*self._answered(), with_body=False)

    def end_headers(self) -> None:
        """Send what goes with every answer, errors included."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Log nothing: scrapes come all the time, and what they ask for is not ours to keep."""

    def _answered(self) -> Answer:
        try:
            return self._answer()
        except SyncerError as error:
            why = f"the state cannot be read: {type(error).__name__}"
            return _plain(HTTPStatus.SERVICE_UNAVAILABLE, why)

    def _answer(self) -> Answer:
        if not self._is_meant():
            return _plain(HTTPStatus.MISDIRECTED_REQUEST, "this name is not mine")
        pages, path = self.server.pages, self.path.partition("?")[0]
        if path == "/":
            return HTTPStatus.OK, _HTML, render(pages.status()).encode()
        if path == "/metrics":
            return HTTPStatus.OK, pages.metrics_type, pages.metrics()
        if path == "/healthz":
            health = pages.health()
            return _judged(good=health.well, words=health.why or "well")
        if path == "/readyz":
            ready = pages.ready()
            return _judged(good=ready, words="ready" if ready else "not caught up yet")
        return _plain(HTTPStatus.NOT_FOUND, "there are /, /metrics, /healthz and /readyz")

    def _is_meant(self) -> bool:
        """Say whether the request names this machine, where only this machine is listened to.

        A browser that was lured here through a foreign name sends that name.
        """
        if not self.server.only_here:
            return True
        hosts = self.headers.get_all("Host", [])
        return all(_HERE.fullmatch(host.strip()) for host in hosts) and len(hosts) <= 1

    def _send(self, status: HTTPStatus, kind: str, body: bytes, *, with_body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


class _Bounded(io.BufferedIOBase):
    """The beginning of a stream: so many bytes and no more."""

    def __init__(self, stream: io.BufferedIOBase, most: int) -> None:
        self._stream = stream
        self._left = most

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line, or what may still be read of it.

        Raises LineTooLong, for which the handler has an answer, once nothing may be.
        """
        if self._left <= 0:
            raise LineTooLong("request")
        most = self._left if size is None or size < 0 else min(size, self._left)
        line = self._stream.readline(most)
        self._left -= len(line)
        return line

    def close(self) -> None:
        """Close the stream as well."""
        self._stream.close()
        super().close()


def _judged(*, good: bool, words: str) -> Answer:
    return _plain(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, words)


def _plain(status: HTTPStatus, words: str) -> Answer:
    return status, _PLAIN, f"{words}\n".encode()
