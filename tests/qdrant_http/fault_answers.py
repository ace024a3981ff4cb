"""Faults of the network, and answers other than they should be."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

from qdrant_http.answers import Reply, refused
from qdrant_http.exchange import Exchange
from qdrant_http.fault import Fault

_HTML = "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center></body></html>"
_DISK_FULL = (
    "Service internal error: No space left on device: WAL buffer size exceeds available disk space"
)


def _page(status: int, title: str) -> Reply:
    return Reply(status, _HTML.format(title).encode(), media_type="text/html")


async def slow(fault: Fault, exchange: Exchange) -> None:
    """Wait, then do it; or, if `applied`, do it, then wait and answer."""
    if fault.applied:
        reply = await exchange.result()
        await asyncio.sleep(fault.seconds)
        await exchange.answer(reply)
        return
    await exchange.body()
    await asyncio.sleep(fault.seconds)
    await exchange.forward()


async def closed_before(_: Fault, exchange: Exchange) -> None:
    """Close the connection and do nothing, as with an idle one."""
    await exchange.body()
    await exchange.close()


async def closed_during(_: Fault, exchange: Exchange) -> None:
    """Do it, and close the connection in the midst of the answer."""
    reply = await exchange.result()
    await exchange.start(reply)
    half = reply.body[: len(reply.body) // 2]
    await exchange.send({"type": "http.response.body", "body": half, "more_body": True})
    await exchange.close()


async def closed_after(_: Fault, exchange: Exchange) -> None:
    """Do it, and close the connection without an answer."""
    await exchange.result()
    await exchange.close()


async def cut_upload(fault: Fault, exchange: Exchange) -> None:
    """Close the connection once `size` bytes of the body have come; do what is smaller."""
    parts, size = [], 0
    while (message := await exchange.receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > fault.size:
            await exchange.close()
            return
        if not message.get("more_body", False):
            break
    exchange.read = b"".join(parts)
    await exchange.forward()


async def too_many(fault: Fault, exchange: Exchange) -> None:
    """Answer 429, with Retry-After in seconds or as a date."""
    await _carry_out(fault, exchange)
    headers = {}
    if fault.form == "date":
        again = datetime.now(UTC) + timedelta(seconds=fault.seconds)
        headers["retry-after"] = format_datetime(again, usegmt=True)
    elif fault.form != "none":
        headers["retry-after"] = str(round(fault.seconds))
    said = "Rate limiting exceeded: Write rate limit exceeded, retry later"
    await exchange.answer(refused(429, fault.said or said, headers=headers))


async def error(fault: Fault, exchange: Exchange) -> None:
    """Answer with an error of the server's, or of a proxy before it."""
    await _carry_out(fault, exchange)
    if fault.form == "html":
        title = f"{fault.status} {HTTPStatus(fault.status).phrase}"
        await exchange.answer(_page(fault.status, title))
        return
    said = fault.said or f"Service internal error: {HTTPStatus(fault.status).phrase}"
    await exchange.answer(refused(fault.status, said))


async def disk_full(_: Fault, exchange: Exchange) -> None:
    """Refuse a change for want of space; reads are answered."""
    await exchange.body()
    await exchange.answer(refused(500, _DISK_FULL))


async def not_qdrant(_: Fault, exchange: Exchange) -> None:
    """Answer as another server does: with a page, whatever was asked."""
    await exchange.body()
    await exchange.answer(_page(200, "It works!"))


async def acknowledged(fault: Fault, exchange: Exchange) -> None:
    """Say of a write that it was taken, not that it was done; it is done only if `applied`."""
    status = {"operation_id": 0, "status": "acknowledged"}
    body = json.loads(await exchange.body() or b"{}")
    if fault.applied:
        reply = await exchange.result()
        if reply.status != HTTPStatus.OK:
            await exchange.answer(reply)
            return
    several = exchange.path.endswith("/points/batch")
    result: object = [status] * len(body["operations"]) if several else status
    await exchange.answer(_ok(result))


async def half_applied(_: Fault, exchange: Exchange) -> None:
    """Do the first half of what a write holds, then refuse it."""
    body: dict[str, Any] = json.loads(await exchange.body())
    for key in ("points", "operations"):
        if isinstance(body.get(key), list):
            body[key] = body[key][: (len(body[key]) + 1) // 2]
    await exchange.result(json.dumps(body).encode())
    said = "Wrong input: Vector dimension error: expected dim: 3, got 2"
    await exchange.answer(refused(400, said))


async def _carry_out(fault: Fault, exchange: Exchange) -> None:
    if fault.applied:
        await exchange.result()
    else:
        await exchange.body()


def _ok(result: object) -> Reply:
    return Reply(200, json.dumps({"result": result, "status": "ok", "time": 0.0}).encode())
