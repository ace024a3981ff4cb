"""What the client's errors mean, in words that hold neither a key nor a row's text."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
import ssl

import grpc
import httpx
import pydantic
from google.protobuf.message import Error as MessageError
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from syncer.errors import (
    IdentityError,
    RejectedError,
    SchemaError,
    SyncerError,
    TargetError,
    TargetUnavailableError,
)
from syncer.redaction import without_secrets

CLIENT_ERRORS = (
    UnexpectedResponse,
    ResponseHandlingException,
    QdrantException,
    httpx.HTTPError,
    grpc.RpcError,
    MessageError,  # what is nested too deep to be sent, or read, over gRPC
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

_NOT_FOUND, _CONTENT_TOO_LARGE = 404, 413
_RETRIED_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_REFUSING_STATUS = frozenset({400, _CONTENT_TOO_LARGE, 422})
_RETRIED_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,  # by a proxy, or a server that goes down: nobody here cancels
        grpc.StatusCode.UNKNOWN,
    }
)
_LONGEST = 300  # characters of a server's answer that go into a message
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')  # a server that cannot parse a value quotes it
_UNINDEXED = re.compile(r'Index required but not found for "([\w.\[\]-]{1,100})"')
_NO_COLLECTION = re.compile(r"Collection \S+ (?:not found|does\s?n[o']t exist)")
_NO_SPACE = re.compile(r"no space left|disk (?:is )?full|available disk space", re.IGNORECASE)
_TOO_LARGE = re.compile(r"larger than (?:allowed|max)|too large", re.IGNORECASE)
_LIMITED_CODES = frozenset({grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.OUT_OF_RANGE})
_NO_TRUST = re.compile(r"WRONG_VERSION_NUMBER|CERTIFICATE_VERIFY_FAILED|Hostname Verification")
_NO_GRPC = "Trying to connect an http1.x server"  # as gRPC says it
_RUNNING = "Is Qdrant running, and is target.url right? Nothing is lost; run again."
_SHOULD_BE_QDRANT = "Something else may answer there: check host, port and path of target.url."
_UNTRUSTED = (
    "Check whether target.url should begin with http or https, and, where the server has a "
    "certificate of your own, target.ca_file."
)
_HINTS = {
    401: "The server wants an API key: set target.api_key_file or SYNCER_TARGET__API_KEY.",
    403: "The API key has no right to do this: syncer needs to read, write and manage its "
    "collection.",
    404: "The collection or the server's path is not there; see `syncer doctor`.",
}
_GRPC_PORT = "gRPC has a port of its own: check target.grpc_port, or set target.grpc = false."
_GRPC_STATUS = {
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: _NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
}


def translate(error: Exception, what: str, secret: str | None = None) -> SyncerError:
    """Return what an error of the client means; whether it may be tried again is in its class."""
    if isinstance(error, UnexpectedResponse):
        return _translate_answer(error, what, secret)
    if isinstance(error, grpc.RpcError):
        return _translate_grpc(error, what, secret)
    if isinstance(error, MessageError):  # its words name types of messages only
        return RejectedError(f"{what} failed: {reason(error)}")
    source = error.source if isinstance(error, ResponseHandlingException) else error
    return _translate_failure(source, what, secret)


def _translate_failure(error: Exception, what: str, secret: str | None) -> SyncerError:
    """Return what it means that there was no answer, or none that could be read."""
    message = f"{what} failed: {reason(error, secret)}"
    if isinstance(error, ResourceExhaustedResponse):
        asked = float(error.retry_after_s)
        return TargetUnavailableError(
            f"{what} failed: the server asks to wait {asked:.0f} s", retry_after=asked
        )
    if isinstance(error, json.JSONDecodeError):
        return TargetUnavailableError(
            f"{what} failed: the answer is no JSON, so it is none of Qdrant's",
            hint=_SHOULD_BE_QDRANT,
        )
    if isinstance(error, ValueError) and not isinstance(error, pydantic.ValidationError):
        return _translate_refusal(400, str(error), message)  # local mode's
    if _is_of_tls(error):
        return TargetError(message, hint=_UNTRUSTED)
    if isinstance(error, (httpx.HTTPError, ConnectionError, TimeoutError)):
        return TargetUnavailableError(message, hint=_RUNNING)
    unreadable = isinstance(error, pydantic.ValidationError)
    return TargetError(message, hint=_SHOULD_BE_QDRANT if unreadable else None)


def reason(error: Exception, secret: str | None = None) -> str:
    """Return an error's kind and words, without what it may quote of a payload."""
    if isinstance(error, pydantic.ValidationError):  # its words hold the input
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"the answer does not have the form it should have ({place}: {first['type']})"
    words = _without_secrets(str(error), secret)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _translate_answer(error: UnexpectedResponse, what: str, secret: str | None) -> SyncerError:
    status = error.status_code or 0
    said = _said(error.content)
    shown = (
        f"{len(error.content)} bytes that are no answer of Qdrant's"
        if said is None
        else _without_secrets(said, secret)
    )
    message = f"{what} failed: HTTP {status}: {shown}"
    if said is not None and _NO_SPACE.search(said):
        return TargetError(message, hint="Make room on the server's disk. Nothing is lost.")
    if status in _RETRIED_STATUS:
        asked = str(error.headers.get("retry-after", ""))
        return TargetUnavailableError(
            message, hint=_RUNNING, retry_after=float(asked) if asked.isdecimal() else 0.0
        )
    return _translate_refusal(status, said, message)


def _translate_refusal(status: int, said: str | None, message: str) -> SyncerError:
    """Return what it means that the server understood and will not; `said` if it is Qdrant's."""
    if said is not None and (key := _UNINDEXED.search(said)):
        return SchemaError(
            f"{message} The payload key without an index is {key[1]}",
            hint="The collection is in strict mode. Add the key to target.payload_indexes; the "
            "next run makes the index.",
        )
    if said is not None and _NO_COLLECTION.search(said):
        return IdentityError(
            message,
            hint="It was there before. If it is gone for good, `syncer rebuild` builds "
            "a new one from SQLite.",
        )
    if status in _REFUSING_STATUS:
        rejected = RejectedError(message)
        rejected.too_large = status == _CONTENT_TOO_LARGE or bool(_TOO_LARGE.search(said or ""))
        return rejected
    return TargetError(message, hint=_HINTS.get(status))


def _translate_grpc(error: grpc.RpcError, what: str, secret: str | None) -> SyncerError:
    code = error.code() if hasattr(error, "code") else None
    details = str(error.details() if hasattr(error, "details") else error)
    name = code.name if code is not None else "unknown"
    message = f"{what} failed: gRPC {name}: {_without_secrets(details, secret)}"
    if _NO_SPACE.search(details):
        return TargetError(message, hint="Make room on the server's disk. Nothing is lost.")
    if code in _LIMITED_CODES and _TOO_LARGE.search(details):
        return _translate_refusal(_CONTENT_TOO_LARGE, details, message)
    if _NO_TRUST.search(details):
        return TargetError(message, hint=_UNTRUSTED)
    if _NO_GRPC in details or code == grpc.StatusCode.UNIMPLEMENTED:
        return TargetError(message, hint=_GRPC_PORT)
    if code in _RETRIED_CODES:
        return TargetUnavailableError(message, hint=f"{_RUNNING} gRPC has target.grpc_port.")
    return _translate_refusal(_GRPC_STATUS.get(code, 0) if code else 0, details, message)


def _is_of_tls(error: BaseException | None) -> bool:
    """Say whether it failed for want of TLS, or of trust."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return not isinstance(error, (ssl.SSLZeroReturnError, ssl.SSLEOFError))
        error = error.__cause__ or error.__context__
    return False


def _said(body: bytes) -> str | None:
    """Return the error that Qdrant's JSON names, None for any other body."""
    try:
        status = json.loads(body)["status"]
        return str(status["error"] if isinstance(status, dict) else status)
    except (ValueError, KeyError, TypeError):
        return None


def _without_secrets(text: str, secret: str | None) -> str:
    """Take out the key before anything is cut, and whatever is quoted: it may be a row's text."""
    text = without_secrets(text, [secret] if secret else [])
    text = _QUOTED.sub('"…"', text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
