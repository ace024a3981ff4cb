"""Starts mcp-memory-service, calls its tools over MCP, and prints their answers as JSON.

Runs in the service's own environment: ``memory_service.py '[["memory_store", {…}], …]'``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters  # type: ignore[import-not-found]
from mcp.client.stdio import stdio_client  # type: ignore[import-not-found]

SERVER = Path(__file__).with_name("memory_service_server.py")


async def call(calls: list[tuple[str, dict[str, object]]]) -> list[str]:
    """Return what the tools answer; an answer that says it is an error raises ValueError."""
    parameters = StdioServerParameters(
        command=sys.executable, args=[str(SERVER)], env=dict(os.environ)
    )
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        answers = [await session.call_tool(name, words) for name, words in calls]
    if failed := [answer for answer in answers if answer.isError]:
        raise ValueError(failed)
    return [part.text for answer in answers for part in answer.content]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(call(json.loads(sys.argv[1])))))  # noqa: T201
