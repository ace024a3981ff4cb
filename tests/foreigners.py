"""Points that somebody writes past SQLite, for the tests of what becomes of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import memory
import on_the_wire
from qdrant_client import models

from syncer.keys import PointId
from syncer.settings import Settings

UUID = "0d5f9d0e-4b0b-4f4e-9a53-6a3c1b1f2e11"

Payloads = Mapping[PointId, Mapping[str, Any]]


def settings_on(kind: str, folder: Path, url: str) -> Settings:
    """Return settings for the memory in `folder`: in local mode, or on a server that is shared."""
    options = {"sparse.enabled": False, "target.collection": f"m{abs(hash(folder))}"}
    if kind == "local":
        return memory.settings_for(folder, **options)
    return on_the_wire.settings(folder, url, **options)


def put(settings: Settings, payloads: Payloads, collection: str = "memory") -> None:
    """Write points as another tool does, without a word to SQLite."""
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        connection.client.upsert(
            collection,
            [
                models.PointStruct(id=identifier, payload=dict(payload), vector={})
                for identifier, payload in payloads.items()
            ],
        )


def make_plain(settings: Settings, payloads: Payloads, name: str = "memory") -> None:
    """Make a collection as another tool does, under the name that the alias should have."""
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        vector = models.VectorParams(size=3, distance=models.Distance.COSINE)
        connection.client.create_collection(name, vectors_config={"theirs": vector})
        connection.client.upsert(
            name,
            [
                models.PointStruct(
                    id=identifier, payload=dict(payload), vector={"theirs": [1.0, 0.0, 0.0]}
                )
                for identifier, payload in payloads.items()
            ],
        )


def rows(database: Path, sql: str = "SELECT id, content FROM memory_events") -> list[Any]:
    """Return what a query finds."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def texts(database: Path) -> list[str]:
    """Return all rows' texts, sorted."""
    return sorted(text for _, text in rows(database))


def sorted_texts(found: Iterable[object]) -> list[str]:
    """Return texts that points hold, sorted."""
    return sorted(map(str, found))
