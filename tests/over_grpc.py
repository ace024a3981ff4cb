"""A target over gRPC, and what came in at the server."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import on_the_wire as wire
from qdrant_http import Server

from syncer.keys import PointId
from syncer.settings import Settings


def fresh(server: Server, **spec: Any) -> AbstractContextManager[wire.Wire]:
    """Make a generation over gRPC."""
    return wire.fresh(server.url, grpc=True, grpc_port=server.rpc.port, **spec)


def settings_for(folder: Path, server: Server, **options: object) -> Settings:
    """Return settings for the memory in `folder` and gRPC."""
    given = {"target.grpc": True, "target.grpc_port": server.rpc.port}
    return wire.settings(folder, server.url, **{**given, **options})


def client_settings(server: Server) -> dict[str, Any]:
    """Return what lets a client of somebody else's speak gRPC."""
    return {"prefer_grpc": True, "grpc_port": server.rpc.port}


def upserts(server: Server) -> list[Any]:
    """Return the upserts that came in."""
    return [one.message for one in server.rpc.calls if one.name == "Points.Upsert"]


def ids(message: Any) -> list[PointId]:
    """Return the ids of the points that an upsert carries."""
    return [one.id.num for one in message.points]
