"""What the client's errors become: the right class, and words without keys and texts."""

from __future__ import annotations

import json
import socket
import sqlite3
from pathlib import Path

import grpc
import httpx
import pytest
from google.protobuf.message import DecodeError
from pydantic import BaseModel, ValidationError
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from syncer.errors import (
    IdentityError,
    RejectedError,
    SchemaError,
    SyncerError,
    TargetError,
    TargetUnavailableError,
)
from syncer.model import Point
from syncer.target import Catalog, GenerationTarget, TargetSpec, connect
from syncer.target.faults import translate

KEY = "SECRETKEY"
TEXT = "PRIVATE ROW TEXT"
UNINDEXED = 'Index required but not found for "metadata.agent" of one of the following types'


def answer(status: int, body: bytes) -> UnexpectedResponse:
    """Return what the client raises for an answer of the server's."""
    return UnexpectedResponse(status, "", body, httpx.Headers())


class Wanted(BaseModel):
    """A form that the answer does not have."""

    number: int


def invalid() -> ValidationError:
    """Return the error of an answer that quotes what it was given."""
    with pytest.raises(ValidationError) as found:
        Wanted(number=TEXT)  # type: ignore[arg-type]
    return found.value


class CallError(grpc.RpcError):  # type: ignore[misc] # which has no types
    """What the client raises for a call over gRPC."""

    def __init__(self, code: grpc.StatusCode, details: str = "") -> None:
        super().__init__()
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        """Return the code that the call ended with."""
        return self._code

    def details(self) -> str:
        """Return the words."""
        return self._details


NOWHERE = "failed to connect to all addresses; last error: UNKNOWN: "
CODES = grpc.StatusCode


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CallError(CODES.UNAVAILABLE, "Socket closed"), TargetUnavailableError),
        (CallError(CODES.UNAVAILABLE, f"{NOWHERE}CERTIFICATE_VERIFY_FAILED"), TargetError),
        (CallError(CODES.UNAVAILABLE, f"{NOWHERE}WRONG_VERSION_NUMBER"), TargetError),
        (
            CallError(CODES.UNAVAILABLE, f"{NOWHERE}(Trying to connect an http1.x server)"),
            TargetError,
        ),
        (CallError(CODES.DEADLINE_EXCEEDED), TargetUnavailableError),
        (CallError(CODES.CANCELLED), TargetUnavailableError),
        (CallError(CODES.RESOURCE_EXHAUSTED, "Rate limiting exceeded"), TargetUnavailableError),
        (
            CallError(CODES.RESOURCE_EXHAUSTED, "SERVER: Received message larger than max (9)"),
            RejectedError,
        ),
        (CallError(CODES.OUT_OF_RANGE, "decoded message length too large: found 9"), RejectedError),
        (CallError(CODES.INTERNAL, "Service internal error"), TargetUnavailableError),
        (CallError(CODES.INTERNAL, "No space left on device"), TargetError),
        (CallError(CODES.INVALID_ARGUMENT, "Wrong input"), RejectedError),
        (CallError(CODES.INVALID_ARGUMENT, UNINDEXED), SchemaError),
        (CallError(CODES.NOT_FOUND, "Not found: Collection `g` doesn't exist!"), IdentityError),
        (CallError(CODES.NOT_FOUND, "Not found: No point with id 7 found"), TargetError),
        (CallError(CODES.UNAUTHENTICATED), TargetError),
        (CallError(CODES.PERMISSION_DENIED), TargetError),
        (CallError(CODES.FAILED_PRECONDITION), TargetError),
        (CallError(CODES.UNIMPLEMENTED), TargetError),
        (DecodeError("Error parsing message"), RejectedError),
        (answer(400, b'{"status": {"error": "Wrong input"}}'), RejectedError),
        (answer(413, b"<html>"), RejectedError),
        (answer(422, b'{"status": {"error": "Validation error in JSON body"}}'), RejectedError),
        (answer(401, b"Must provide an API key"), TargetError),
        (answer(403, b'{"status": {"error": "Forbidden"}}'), TargetError),
        (answer(404, b'{"status": {"error": "Not found: Collection"}}'), TargetError),
        (
            answer(404, b'{"status": {"error": "Not found: Collection `g` doesn\'t exist!"}}'),
            IdentityError,
        ),
        (answer(400, f'{{"status": {{"error": {json.dumps(UNINDEXED)}}}}}'.encode()), SchemaError),
        (answer(500, b'{"status": {"error": "No space left on device"}}'), TargetError),
        (answer(429, b"{}"), TargetUnavailableError),
        (json.JSONDecodeError("Expecting value", "<html>", 0), TargetUnavailableError),
        (answer(500, b'{"status": {"error": "Service internal error"}}'), TargetUnavailableError),
        (answer(503, b"<html>"), TargetUnavailableError),
        (ResponseHandlingException(httpx.ConnectError("refused")), TargetUnavailableError),
        (ResponseHandlingException(httpx.ReadTimeout("slow")), TargetUnavailableError),
        (ResponseHandlingException(invalid()), TargetError),
        (ResourceExhaustedResponse("", 3), TargetUnavailableError),
        (sqlite3.OperationalError("database or disk is full"), TargetError),
        (ValueError("Wrong input: Not existing vector name error: v"), RejectedError),
        (ValueError("Collection g not found"), IdentityError),
        (KeyError("7"), TargetError),
        (ConnectionResetError("reset"), TargetUnavailableError),
    ],
)
def test_only_what_may_pass_by_itself_is_tried_again(
    error: Exception, kind: type[SyncerError]
) -> None:
    assert type(translate(error, "writing")) is kind


@pytest.mark.parametrize(
    "error",
    [
        answer(400, f'{{"status": {{"error": "bad value \\"{TEXT}\\" for {KEY}"}}}}'.encode()),
        answer(400, f"{KEY} {TEXT}".encode()),
        answer(502, f"<html>{TEXT}{KEY}</html>".encode()),
        CallError(CODES.INVALID_ARGUMENT, f'bad value "{TEXT}" for {KEY}'),
        ResponseHandlingException(invalid()),
        ResponseHandlingException(httpx.ConnectError(f"no route with {KEY}")),
    ],
)
def test_neither_key_nor_text_reaches_a_message(error: Exception) -> None:
    found = translate(error, "writing", KEY)
    assert KEY not in str(found)
    assert TEXT not in str(found)


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"retry-after": "7"}, 7.0), ({}, 0.0), ({"retry-after": "-"}, 0.0)]
)
def test_how_long_the_server_asks_to_wait_is_kept(headers: dict[str, str], seconds: float) -> None:
    error = UnexpectedResponse(503, "", b"", httpx.Headers(headers))
    assert translate(error, "writing").retry_after == seconds


def test_the_server_s_own_reason_is_kept() -> None:
    body = b'{"status": {"error": "Not existing vector name error: fast-x"}, "time": 0.1}'
    assert "Not existing vector name error: fast-x" in str(translate(answer(400, body), "writing"))


@pytest.mark.parametrize("rpc", [False, True])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_server_that_is_not_there_is_unavailable(host: str, rpc: bool) -> None:
    family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
    with socket.socket(family) as unused:
        try:
            unused.bind((host.strip("[]"), 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        url = f"http://{host}:{unused.getsockname()[1]}"
        with connect(TargetSpec(url=url, grpc=rpc, timeout=2)) as connection:
            assert connection.spec.name == url
            with pytest.raises(TargetUnavailableError, match=r"target\.url"):
                Catalog(connection).resolve("memory")


def test_a_write_to_a_point_that_is_not_there_is_an_error_of_the_target(tmp_path: Path) -> None:
    with connect(TargetSpec(path=tmp_path)) as connection:
        connection.client.create_collection("g", vectors_config={})
        target = GenerationTarget(connection, "g")
        with pytest.raises(TargetError):
            target.overwrite([Point(7, {"document": "x"})])


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"collections": {"x": 1}}'])
def test_a_damaged_folder_is_named_and_its_lock_let_go(tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "qdrant"
    with connect(TargetSpec(path=folder)):
        pass
    (folder / "meta.json").write_bytes(damage)
    for _ in range(2):
        with pytest.raises(TargetError, match="cannot be opened") as found:
            connect(TargetSpec(path=folder, lock_wait=0))
        assert "syncer rebuild" in str(found.value)


def test_a_damaged_storage_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "qdrant"
    with connect(TargetSpec(path=folder)) as connection:
        connection.client.create_collection("g", vectors_config={})
    (folder / "collection" / "g" / "storage.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(TargetError, match="cannot be opened"):
        connect(TargetSpec(path=folder))
