"""The connections of a server, so that a fault can close the one that it happens on."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connections:
    """The open connections by the client's address."""

    def __init__(self) -> None:
        self.made = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: dict[tuple[str, int], asyncio.Transport] = {}

    def add(self, client: tuple[str, int], transport: asyncio.Transport) -> None:
        """Count a new connection."""
        self.made += 1
        self._loop = asyncio.get_running_loop()
        self._open[client] = transport

    def remove(self, client: tuple[str, int]) -> None:
        """Forget a connection that is closed."""
        self._open.pop(client, None)

    def close(self, client: tuple[str, int]) -> None:
        """Close a connection once what was written is sent."""
        if client in self._open:
            self._open[client].close()

    def close_all(self) -> None:
        """Close all connections, as a proxy does to idle ones; from any thread but the server's."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._close_all(), self._loop).result()

    async def _close_all(self) -> None:
        for transport in list(self._open.values()):
            transport.close()
        await asyncio.sleep(0)  # the loop closes the sockets in its next round

    def protocol(self) -> type[H11Protocol]:
        """Return the protocol that tells of its connections here."""
        owner = self

        class Told(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if self.client is not None:
                    owner.add(self.client, transport)

            def connection_lost(self, exc: Exception | None) -> None:
                if self.client is not None:
                    owner.remove(self.client)
                super().connection_lost(exc)

        return Told
