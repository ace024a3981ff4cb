"""What happens to each HTTP request and answer on the way, and the certificates for it."""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
from qdrant_client.http.exceptions import ResponseHandlingException

from syncer.errors import RejectedError, SettingsError
from syncer.target.faults import reason

Send = Callable[[httpx.Request], httpx.Response]

_BUSY = 429
_SLACK = 1024  # bytes round the points of a request
_READ = httpx.ByteStream(b"")  # in place of a stream that has been read
_DROPPED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


class Careful:
    """Sends requests: none too large, and once more on a fresh connection where one was dropped.

    Everything that syncer asks for may be asked twice. A time to wait comes out in whole seconds,
    in whichever form the server gives it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes

    def __call__(self, request: httpx.Request, send: Send) -> httpx.Response:
        """Return the answer; raise RejectedError instead of sending what is too large."""
        size = len(request.content)
        if size > self._most + _SLACK:
            error = RejectedError(f"a request of {size} bytes is larger than target.batch_bytes")
            error.too_large = True
            raise error
        try:
            answer = send(request)
        except ResponseHandlingException as error:
            if not isinstance(error.source, _DROPPED):
                raise
            answer = send(request)
        answer.stream = _READ  # httpx's own holds the answer, and that the request's megabytes
        if "retry-after" in answer.headers:
            seconds = seconds_to_wait(answer.headers["retry-after"])
            del answer.headers["retry-after"]
            if answer.status_code == _BUSY or seconds:
                answer.headers["retry-after"] = str(seconds)
        return answer


def seconds_to_wait(said: str) -> int:
    """Return how many seconds a Retry-After asks for, as a number or a date; 0 if it is neither."""
    try:
        return max(0, math.ceil(float(said)))
    except (ValueError, OverflowError):
        pass
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return 0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0, math.ceil((until - datetime.now(UTC)).total_seconds()))


def trust(ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext | bool:
    """Return whom to trust, and who we are, for httpx; True for what the machine trusts.

    Raises SettingsError for files that cannot be used.
    """
    if ca is None and certificate is None:
        return True
    named = ", ".join(str(path) for path in (ca, certificate, key) if path is not None)
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise SettingsError(
            f"the certificates for Qdrant cannot be used ({named}): {reason(error)}",
            hint="Check target.ca_file, target.client_cert_file and target.client_key_file: PEM "
            "files that syncer may read, the key without a pass phrase.",
        ) from None
    return context
