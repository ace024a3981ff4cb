"""Starts the server named by its first argument and asks it the questions that follow, over MCP.

Runs in the server's own environment. Prints one JSON object: the names of the tools, and for each
question the texts that ``qdrant-find`` answers with.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters  # type: ignore[import-not-found]
from mcp.client.stdio import stdio_client  # type: ignore[import-not-found]


async def ask(server: str, questions: list[str]) -> dict[str, list[object]]:
    """Return what the server offers and answers."""
    parameters = StdioServerParameters(command=sys.executable, args=[server], env=dict(os.environ))
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        found = [await session.call_tool("qdrant-find", {"query": one}) for one in questions]
    return {"tools": tools, "answers": [[part.text for part in one.content] for one in found]}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ask(sys.argv[1], sys.argv[2:]))))  # noqa: T201
