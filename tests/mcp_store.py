"""Starts the server named by its first argument and lets it store texts with their metadata.

Runs in the server's own environment. The second argument is a JSON object: metadata by text.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping

from mcp import ClientSession, StdioServerParameters  # type: ignore[import-not-found]
from mcp.client.stdio import stdio_client  # type: ignore[import-not-found]


async def store(server: str, texts: Mapping[str, object]) -> None:
    """Store the texts, one call each."""
    parameters = StdioServerParameters(command=sys.executable, args=[server], env=dict(os.environ))
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for text, metadata in texts.items():
            arguments = {"information": text} | ({"metadata": metadata} if metadata else {})
            done = await session.call_tool("qdrant-store", arguments)
            if done.isError:
                raise SystemExit(str(done.content))


if __name__ == "__main__":
    asyncio.run(store(sys.argv[1], json.loads(sys.argv[2])))
