"""One request and its answer, as a fault sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qdrant_http.answers import Reply
from qdrant_http.connections import Connections

_KEYS = {b"api-key", b"authorization", b"host"}  # of the headers, what a request of ours carries


@dataclass(slots=True)
class Exchange:
    """What came in, the application behind, and the ways to answer."""

    app: ASGIApp
    scope: Scope
    receive: Receive
    send: Send
    connections: Connections
    prefix: str = ""
    read: bytes | None = field(default=None)

    @property
    def method(self) -> str:
        """The request's method."""
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        """The request's path, without the server's prefix."""
        return str(self.scope["path"]).removeprefix(self.prefix)

    @property
    def collection(self) -> str:
        """The collection or alias that the path names; empty if it names none."""
        parts = self.path.split("/")
        return parts[2] if len(parts) > 2 and parts[1] == "collections" else ""

    async def body(self) -> bytes:
        """Return the request's body."""
        if self.read is None:
            parts = []
            while (message := await self.receive())["type"] == "http.request":
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    break
            self.read = b"".join(parts)
        return self.read

    async def forward(self, body: bytes | None = None) -> None:
        """Let the application answer as it does, to the body that came or to another."""
        if body is None and self.read is None:
            await self.app(self.scope, self.receive, self.send)
            return
        given = await self.body() if body is None else body
        await self.app(_with_length(self.scope, len(given)), _once(given), self.send)

    async def result(self, body: bytes | None = None) -> Reply:
        """Return the application's answer, unsent."""
        given = await self.body() if body is None else body
        return await _ask(self.app, _with_length(self.scope, len(given)), given)

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """Ask the application something else with the same key, and return the result."""
        given = b"" if body is None else json.dumps(body).encode()
        full = self.prefix + path
        headers = [one for one in self.scope["headers"] if one[0] in _KEYS]
        scope = {
            **self.scope,
            "method": method,
            "path": full,
            "raw_path": full.encode(),
            "query_string": b"wait=true",
            "headers": headers,
        }
        reply = await _ask(self.app, _with_length(scope, len(given)), given)
        return json.loads(reply.body).get("result")

    async def answer(self, reply: Reply) -> None:
        """Send a finished answer."""
        await self.start(reply)
        await self.send({"type": "http.response.body", "body": reply.body})

    async def start(self, reply: Reply) -> None:
        """Send a finished answer's status and headers."""
        headers = {"content-type": reply.media_type, "content-length": str(len(reply.body))}
        headers |= reply.headers
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": reply.status, "headers": pairs})

    async def close(self) -> None:
        """Close the connection, and wait until it is closed."""
        self.connections.close(tuple(self.scope["client"]))
        while (await self.receive())["type"] != "http.disconnect":
            pass


def _with_length(scope: Scope, length: int) -> Scope:
    """Return the scope with the length of another body."""
    headers = [one for one in scope["headers"] if one[0] != b"content-length"]
    return {**scope, "headers": [*headers, (b"content-length", str(length).encode())]}


def _once(body: bytes) -> Receive:
    messages: list[Mapping[str, object]] = [{"type": "http.request", "body": body}]

    async def receive() -> MutableMapping[str, Any]:
        return dict(messages.pop() if messages else {"type": "http.disconnect"})

    return receive


async def _ask(app: ASGIApp, scope: Scope, body: bytes) -> Reply:
    """Return what the application answers."""
    status, parts, kind = 0, [], ""

    async def keep(message: Message) -> None:
        nonlocal status, kind
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = dict(message.get("headers", []))
            kind = headers.get(b"content-type", b"").decode()
        else:
            parts.append(message.get("body", b""))

    await app(scope, _once(body), keep)
    return Reply(status, b"".join(parts), media_type=kind)
