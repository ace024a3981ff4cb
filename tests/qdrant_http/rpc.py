"""Qdrant's gRPC interface on a port of its own, before the REST interface of the same server.

Each call becomes the request that asks the same over REST, and goes through the same faults to the
same store; so a fault is named by the method and path of that request. Where a fault closes the
connection the call ends as one does whose connection is lost. Only what syncer and the tests call
is there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from grpc import ServicerContext, StatusCode, server, ssl_server_credentials
from qdrant_client import grpc
from starlette.types import ASGIApp, Message, Scope

from qdrant_http import rpc_answers as answers
from qdrant_http import rpc_requests as requests
from qdrant_http.answers import RefusedError, Reply
from qdrant_http.rpc_requests import Asked
from qdrant_http.tls import Tls

_OK = 200
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Rpc:
    """How a call is asked over REST, and its answer made from the other one."""

    ask: Callable[[Any], Asked]
    answer: Callable[[Any], Any]


SERVICES: Mapping[str, Mapping[str, Rpc]] = {
    "Qdrant": {"HealthCheck": Rpc(requests.of_server("GET", "/"), answers.healthy)},
    "Collections": {
        "List": Rpc(requests.of_server("GET", "/collections"), answers.names),
        "ListAliases": Rpc(requests.of_server("GET", "/aliases"), answers.aliases),
        "UpdateAliases": Rpc(requests.change_aliases, answers.done),
        "Get": Rpc(requests.of_collection("GET"), answers.info),
        "Create": Rpc(requests.create, answers.done),
        "Update": Rpc(requests.update, answers.done),
        "Delete": Rpc(requests.of_collection("DELETE"), answers.done),
        "CollectionExists": Rpc(requests.of_collection("GET", "/exists"), answers.existence),
        "ListCollectionAliases": Rpc(requests.of_collection("GET", "/aliases"), answers.aliases),
    },
    "Points": {
        "CreateFieldIndex": Rpc(requests.create_index, answers.written),
        "Upsert": Rpc(requests.upsert, answers.written),
        "Delete": Rpc(requests.delete, answers.written),
        "UpdateBatch": Rpc(requests.batch, answers.several_written),
        "SetPayload": Rpc(requests.set_payload, answers.written),
        "OverwritePayload": Rpc(requests.overwrite_payload, answers.written),
        "Get": Rpc(requests.retrieve, answers.points),
        "Scroll": Rpc(requests.scroll, answers.page),
        "Count": Rpc(requests.count, answers.counted),
        "Query": Rpc(requests.query, answers.best),
    },
}


class _AbortedError(Exception):
    """A call ends with a code and words, and perhaps a time to wait."""

    def __init__(self, code: StatusCode, words: str, retry_after: str | None = None) -> None:
        super().__init__(words)
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Called:
    """A call that came in."""

    name: str
    message: Any


class Gateway:
    """Answers calls by asking the application; `calls` says which there were."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.port = 0
        self.calls: list[Called] = []
        self._app = app
        self._prefix = prefix

    def names(self) -> list[str]:
        """Return the calls so far, each as ``Service.Method``."""
        return [one.name for one in self.calls]

    def answer(self, name: str, rpc: Rpc, message: Any, context: ServicerContext) -> Any:
        """Answer a call."""
        self.calls.append(Called(name, message))
        try:
            return self._answer(rpc, message, dict(context.invocation_metadata()))
        except _AbortedError as error:
            if error.retry_after is not None:
                context.set_trailing_metadata((("retry-after", error.retry_after),))
            context.abort(error.code, str(error))

    def _answer(self, rpc: Rpc, message: Any, metadata: Mapping[str, str]) -> Any:
        try:
            asked = rpc.ask(message)
        except RefusedError as error:
            raise _AbortedError(answers.CODES[error.status], error.said) from error
        except ValueError as error:
            raise _AbortedError(StatusCode.INVALID_ARGUMENT, "Malformed message") from error
        reply = asyncio.run(self._ask(asked, metadata))
        if reply is None:
            raise _AbortedError(StatusCode.UNAVAILABLE, "Socket closed")
        if reply.status != _OK:
            raise _refusal(reply)
        try:
            said = json.loads(reply.body)
        except ValueError as error:
            words = f"unexpected content-type: {reply.media_type}"
            raise _AbortedError(StatusCode.UNKNOWN, words) from error
        return rpc.answer(said if asked.path == "/" else said["result"])

    async def _ask(self, asked: Asked, metadata: Mapping[str, str]) -> Reply | None:
        """Return what the application answers, None if it closes the connection instead."""
        wire = _Wire(asked.body)
        scope = self._scope(asked, {"api-key": metadata.get("api-key", "")})
        await self._app(scope, wire.receive, wire.send)
        return wire.reply

    def _scope(self, asked: Asked, headers: Mapping[str, str]) -> Scope:
        path = self._prefix + asked.path
        given = {**headers, "content-length": str(len(asked.body)), "host": "grpc"}
        return {
            "type": "http",
            "http_version": "2",
            "method": asked.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": asked.query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
            "client": ("grpc", 0),
            "server": ("grpc", 0),
        }


class _Wire:
    """One request on its way to the application, and the answer."""

    def __init__(self, body: bytes) -> None:
        self._messages: list[Message] = [{"type": "http.request", "body": body}]
        self._start: Message | None = None
        self._parts: list[bytes] = []
        self._whole = False

    async def receive(self) -> Message:
        return self._messages.pop() if self._messages else {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._parts.append(message.get("body", b""))
            self._whole = not message.get("more_body", False)

    @property
    def reply(self) -> Reply | None:
        """The answer, None if it did not come or not to its end."""
        if self._start is None or not self._whole:
            return None
        headers = {name.decode(): value.decode() for name, value in self._start["headers"]}
        kind = headers.get("content-type", "")
        return Reply(self._start["status"], b"".join(self._parts), headers, kind)


def _refusal(reply: Reply) -> _AbortedError:
    try:
        said = json.loads(reply.body)["status"]["error"]
    except ValueError:
        plain = reply.media_type.startswith("text/plain")
        said = reply.body.decode() if plain else f"HTTP status {reply.status}"
    code = answers.CODES[reply.status]
    return _AbortedError(code, said, reply.headers.get("retry-after"))


@contextmanager
def serving(
    app: ASGIApp,
    prefix: str = "",
    *,
    port: int = 0,
    tls: Tls | None = None,
    most_bytes: int = -1,
) -> Iterator[Gateway]:
    """Listen on loopback while the block runs; messages have at most `most_bytes`, -1 for any."""
    gateway = Gateway(app, prefix)
    limits = [("grpc.max_receive_message_length", most_bytes), ("grpc.so_reuseport", 0)]
    limits.append(("grpc.max_send_message_length", -1))
    with ThreadPoolExecutor(_THREADS, "qdrant-grpc") as threads:
        listening = server(threads, options=limits)
        for service, rpcs in SERVICES.items():
            servicer = getattr(grpc, f"{service}Servicer")()
            for name, rpc in rpcs.items():
                setattr(servicer, name, partial(gateway.answer, f"{service}.{name}", rpc))
            getattr(grpc, f"add_{service}Servicer_to_server")(servicer, listening)
        address = f"127.0.0.1:{port}"
        if tls is None:
            gateway.port = listening.add_insecure_port(address)
        else:
            gateway.port = listening.add_secure_port(address, _credentials(tls))
        listening.start()
        try:
            yield gateway
        finally:
            listening.stop(None).wait()


def _credentials(tls: Tls) -> Any:
    pair = (tls.key.read_bytes(), tls.certificate.read_bytes())
    authority = None if tls.client_ca is None else tls.client_ca.read_bytes()
    return ssl_server_credentials([pair], authority, require_client_auth=authority is not None)
