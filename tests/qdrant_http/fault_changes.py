"""Faults that lie in what is there: collections changed by another, or told of wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from qdrant_http.answers import Reply
from qdrant_http.exchange import Exchange
from qdrant_http.fault import Fault


async def unindexed(_: Fault, exchange: Exchange) -> None:
    """Put the collection into strict mode, for good, then do it: filters need an index now."""
    settings = {
        "enabled": True,
        "unindexed_filtering_retrieve": False,
        "unindexed_filtering_update": False,
    }
    path = f"/collections/{exchange.collection}"
    await exchange.ask("PATCH", path, {"strict_mode_config": settings})
    await exchange.forward()


async def dropped(_: Fault, exchange: Exchange) -> None:
    """Delete the collection, then do it."""
    await exchange.ask("DELETE", f"/collections/{await _real_name(exchange)}")
    await exchange.forward()


async def emptied(_: Fault, exchange: Exchange) -> None:
    """Delete the collection's points, then do it."""
    path = f"/collections/{exchange.collection}/points/delete"
    await exchange.ask("POST", path, {"filter": {}})
    await exchange.forward()


async def swapped(_: Fault, exchange: Exchange) -> None:
    """Put a new, empty collection with the same vectors, and no metadata, in the other's place."""
    name = await _real_name(exchange)
    found = await exchange.ask("GET", f"/collections/{name}")
    if found is None:  # it is gone already
        await exchange.forward()
        return
    aliases = await exchange.ask("GET", f"/collections/{name}/aliases")
    await exchange.ask("DELETE", f"/collections/{name}")
    params = found["config"]["params"]
    vectors = {key: params[key] for key in ("vectors", "sparse_vectors")}
    await exchange.ask("PUT", f"/collections/{name}", vectors)
    actions = [{"create_alias": one} for one in aliases["aliases"]]
    await exchange.ask("POST", "/collections/aliases", {"actions": actions})
    await exchange.forward()


async def alias_moved(fault: Fault, exchange: Exchange) -> None:
    """Let all aliases point at `target`, then do it."""
    aliases = await exchange.ask("GET", "/aliases")
    actions = [
        {"create_alias": {"alias_name": one["alias_name"], "collection_name": fault.target}}
        for one in aliases["aliases"]
    ]
    await exchange.ask("POST", "/collections/aliases", {"actions": actions})
    await exchange.forward()


async def old_version(_: Fault, exchange: Exchange) -> None:
    """Say that the server is an old one."""
    await _altered(exchange, lambda answer: answer.update(version="1.9.7"))


async def wrong_dimension(_: Fault, exchange: Exchange) -> None:
    """Say that the collection's vectors have one number more."""

    def alter(answer: dict[str, Any]) -> None:
        for params in _params(answer)["vectors"].values():
            params["size"] += 1

    await _altered(exchange, alter)


async def missing_vector(_: Fault, exchange: Exchange) -> None:
    """Say that the collection has no vectors."""
    await _altered(exchange, lambda answer: _params(answer).update(vectors={}, sparse_vectors=None))


async def missing_modifier(_: Fault, exchange: Exchange) -> None:
    """Say that the collection's sparse vectors have no modifier."""

    def alter(answer: dict[str, Any]) -> None:
        for params in (_params(answer)["sparse_vectors"] or {}).values():
            params["modifier"] = None

    await _altered(exchange, alter)


async def _real_name(exchange: Exchange) -> str:
    """Return the name of the collection that the path names, by its name or an alias."""
    aliases = (await exchange.ask("GET", "/aliases"))["aliases"]
    names = {one["alias_name"]: str(one["collection_name"]) for one in aliases}
    return names.get(exchange.collection, exchange.collection)


async def _altered(exchange: Exchange, alter: Callable[[dict[str, Any]], None]) -> None:
    """Answer, with something in the answer changed; a refusal is passed on as it is."""
    reply = await exchange.result()
    answer = json.loads(reply.body)
    if reply.status == HTTPStatus.OK:
        alter(answer)
    await exchange.answer(Reply(reply.status, json.dumps(answer).encode()))


def _params(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["result"]["config"]["params"]
    return found
