"""The ASGI application: routes, keys, limits, and the envelope round each answer."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from qdrant_http import answers, point_routes
from qdrant_http import collection_routes as collections
from qdrant_http.answers import RefusedError, Reply
from qdrant_http.bodies import Call
from qdrant_http.store import Store

VERSION = "1.20.0"  # that of the client, which warns of a server too far from its own
MOST_BYTES = 32 * 2**20  # of a body; the server's default
Handler = Callable[[Call], object]
Endpoint = Callable[[Request], Awaitable[Response]]

_NAME = "/collections/{name}"
_POINTS = f"{_NAME}/points"
_ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/collections", collections.list_collections),
    ("GET", "/aliases", collections.list_aliases),
    ("POST", "/collections/aliases", collections.change_aliases),
    ("GET", _NAME, collections.info),
    ("PUT", _NAME, collections.create),
    ("PATCH", _NAME, collections.update),
    ("DELETE", _NAME, collections.delete),
    ("GET", f"{_NAME}/exists", collections.exists),
    ("GET", f"{_NAME}/aliases", collections.collection_aliases),
    ("PUT", f"{_NAME}/index", collections.create_index),
    ("DELETE", _NAME + "/index/{field}", collections.delete_index),
    ("PUT", _NAME + "/vectors/{vector}", collections.create_vector),
    ("DELETE", _NAME + "/vectors/{vector}", collections.delete_vector),
    ("PUT", _POINTS, point_routes.upsert),
    ("POST", _POINTS, point_routes.retrieve),
    ("POST", f"{_POINTS}/scroll", point_routes.scroll),
    ("POST", f"{_POINTS}/count", point_routes.count),
    ("POST", f"{_POINTS}/delete", point_routes.delete),
    ("POST", f"{_POINTS}/batch", point_routes.batch),
    ("POST", f"{_POINTS}/payload", point_routes.set_payload),
    ("PUT", f"{_POINTS}/payload", point_routes.overwrite_payload),
    ("POST", f"{_POINTS}/payload/delete", point_routes.delete_payload),
    ("POST", f"{_POINTS}/payload/clear", point_routes.clear_payload),
    ("PUT", f"{_POINTS}/vectors", point_routes.update_vectors),
    ("POST", f"{_POINTS}/vectors/delete", point_routes.delete_vectors),
    ("POST", f"{_POINTS}/query", point_routes.query),
    ("POST", f"{_POINTS}/query/batch", point_routes.query_batch),
    ("POST", f"{_POINTS}/query/groups", point_routes.query_groups),
    ("GET", _POINTS + "/{id}", point_routes.retrieve_one),
]
_OPEN_TO_ALL = ("/", "/healthz", "/readyz", "/livez")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the server is set up; `prefix` is a path like ``/qdrant``."""

    folder: Path
    api_key: str | None = field(default=None, repr=False)
    prefix: str = ""
    version: str = VERSION
    most_bytes: int = MOST_BYTES


def make(options: Options) -> tuple[Starlette, Store]:
    """Return the application and the store that it serves; the store is to be closed after it."""
    store = Store(options.folder)
    routes: list[BaseRoute] = [
        Route("/", _root(options), methods=["GET"]),
        *(Route(path, _healthy, methods=["GET"]) for path in _OPEN_TO_ALL[1:]),
        *(
            Route(path, _endpoint(options, store, handler), methods=[method])
            for method, path, handler in _ROUTES
        ),
    ]
    if options.prefix:
        routes = [Mount(options.prefix, routes=routes)]
    served = Starlette(routes=routes)
    served.router.redirect_slashes = False  # the server knows no path by another
    return served, store


def _root(options: Options) -> Endpoint:
    async def root(_: Request) -> Response:
        said = {"title": "qdrant - vector search engine", "version": options.version}
        return _response(Reply(200, to_json({**said, "commit": None})))

    return root


async def _healthy(_: Request) -> Response:
    return Response("healthz check passed", media_type="text/plain")


def _endpoint(options: Options, store: Store, handler: Handler) -> Endpoint:
    """Return the endpoint that reads a body and lets a thread answer it.

    The engine blocks; each collection has a lock of its own, so a long write holds up no other.
    """

    async def endpoint(request: Request) -> Response:
        begun = time.perf_counter()
        unauthorised = _unauthorised(options, request)
        if unauthorised is not None:
            return unauthorised
        try:
            body = await _body(request, options.most_bytes)
        except RefusedError as error:
            return _response(answers.refusal(error, begun))
        call = Call(store, request.path_params, dict(request.query_params), body)
        return _response(await run_in_threadpool(_answer, handler, call, begun))

    return endpoint


def _answer(handler: Handler, call: Call, begun: float) -> Reply:
    try:
        return answers.result(handler(call), begun)
    except RefusedError as error:
        return answers.refusal(error, begun)


def _unauthorised(options: Options, request: Request) -> Response | None:
    """Return the refusal of a request without the right key; like the server's, no JSON."""
    if options.api_key is None:
        return None
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    given = request.headers.get("api-key", bearer)
    if hmac.compare_digest(given.encode(), options.api_key.encode()):
        return None
    said = (
        "Invalid API key or JWT"
        if given
        else ("Must provide an API key or an Authorization bearer token")
    )
    return Response(said, 401, media_type="text/plain")


async def _body(request: Request, most: int) -> bytes:
    """Return the body; one that is too large is read to its end and thrown away.

    The server answers while the client still sends, and whether the client then sees the answer
    or a closed connection is chance; see ``faults`` for the latter.
    """
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= most:
            chunks.append(chunk)
    if size > most:
        raise RefusedError(
            400,
            f"Payload error: JSON payload ({size} bytes) is larger than allowed "
            f"(limit: {most} bytes).",
        )
    return b"".join(chunks)


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, dict(reply.headers), reply.media_type)
