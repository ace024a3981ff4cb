"""What the client's errors mean, in words that hold neither a key nor a row's text."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3

import grpc
import httpx
import pydantic
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from syncer.errors import TargetError, TargetUnavailableError

CLIENT_ERRORS = (
    UnexpectedResponse,
    ResponseHandlingException,
    QdrantException,
    httpx.HTTPError,
    grpc.RpcError,
    sqlite3.Error,  # local mode keeps its points in SQLite
    OSError,
    ValueError,  # local mode's word for what the server answers with 400
    KeyError,  # ... and for a point that is not there
    RuntimeError,
)
"""Everything that a call of the client may raise."""

FOLDER_ERRORS = (
    sqlite3.Error,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    pickle.UnpicklingError,
    EOFError,
)
"""Everything that a damaged or forbidden local folder may raise when it is opened."""

_RETRIED_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_RETRIED_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.ABORTED,
    }
)
_LONGEST = 300  # characters of a server's answer that go into a message
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')  # a server that cannot parse a value quotes it
_RUNNING = "Is Qdrant running, and is target.url right? Nothing is lost; run again."
_HINTS = {
    401: "The server wants an API key: set target.api_key_file or SYNCER_TARGET__API_KEY.",
    403: "The API key has no right to do this: syncer needs to read, write and manage its "
    "collection.",
    404: "The collection or the server's path is not there; see `syncer doctor`.",
}


def translate(error: Exception, what: str, secret: str | None = None) -> TargetError:
    """Return what an error of the client means; whether it may be tried again is in its class."""
    if isinstance(error, UnexpectedResponse):
        status = error.status_code or 0
        message = f"{what} failed: HTTP {status}: {_said(error.content, secret)}"
        if status in _RETRIED_STATUS:
            return TargetUnavailableError(message)
        return TargetError(message, hint=_HINTS.get(status))
    if isinstance(error, grpc.RpcError):
        return _translate_grpc(error, what, secret)
    source = error.source if isinstance(error, ResponseHandlingException) else error
    if isinstance(source, ResourceExhaustedResponse):
        return TargetUnavailableError(f"{what} failed: the server asks to wait")
    if isinstance(source, (httpx.HTTPError, ConnectionError, TimeoutError)):
        return TargetUnavailableError(f"{what} failed: {reason(source, secret)}", hint=_RUNNING)
    return TargetError(f"{what} failed: {reason(source, secret)}")


def reason(error: Exception, secret: str | None = None) -> str:
    """Return an error's kind and words, without what it may quote of a payload."""
    if isinstance(error, pydantic.ValidationError):  # its words hold the input
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"the answer does not have the form it should have ({place}: {first['type']})"
    words = _without_secrets(str(error), secret)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _translate_grpc(error: grpc.RpcError, what: str, secret: str | None) -> TargetError:
    code = error.code() if hasattr(error, "code") else None
    details = error.details() if hasattr(error, "details") else str(error)
    name = code.name if code is not None else "unknown"
    message = f"{what} failed: gRPC {name}: {_without_secrets(str(details), secret)}"
    if code in _RETRIED_CODES:
        return TargetUnavailableError(message, hint=_RUNNING)
    return TargetError(message)


def _said(body: bytes, secret: str | None) -> str:
    """Return the error that Qdrant's JSON names; nothing of any other body."""
    try:
        status = json.loads(body)["status"]
        said = status["error"] if isinstance(status, dict) else status
    except (ValueError, KeyError, TypeError):
        return f"{len(body)} bytes that are no answer of Qdrant's"
    return _without_secrets(str(said), secret)


def _without_secrets(text: str, secret: str | None) -> str:
    """Take out the key before anything is cut, and whatever is quoted: it may be a row's text."""
    if secret:
        text = text.replace(secret, "**********")
    text = _QUOTED.sub('"…"', text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
