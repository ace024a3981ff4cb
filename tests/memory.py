"""Databases and pipelines for the tests: real files, the real local mode, the hash provider."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from qdrant_client import models

from syncer import migrate
from syncer.cli import compose, opening, specs
from syncer.guard import Limit
from syncer.model import Piece
from syncer.plan import Chunker
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.retry import never
from syncer.settings import Settings, load
from syncer.state import utc_now
from syncer.target import Catalog, Connection, connect
from syncer.worker import Stop, Terms, catch_up
from syncer.write import check_token

CHUNK = 12  # characters

__all__ = [
    "Points",
    "all_points",
    "by_characters",
    "compose",
    "connect",
    "execute",
    "head_of",
    "make_memory",
    "models",
    "opening",
    "pipeline_for",
    "points_in",
    "settings_for",
    "specs",
    "sqlite3",
    "sync",
    "sync_memory",
    "write",
]

Points = dict[object, tuple[object, dict[str, list[float]]]]
"""Payload and vectors by point id."""


def settings_for(folder: Path, **options: object) -> Settings:
    """Return settings for a memory in `folder` with the hash provider; options by dotted key."""
    given = {
        "source.database": str(folder / "memory.db"),
        "target.path": str(folder / "qdrant"),
        "target.lock_wait": 0,
        "embed.provider": "hash",
        "embed.dimension": 8,
        "log.format": "json",
        "sparse.b": 0.0,  # vectors that do not depend on when the mean length was measured
    }
    return load(None, environ={}, options={**given, **options})


def make_memory(folder: Path, contents: Sequence[str] = ()) -> Path:
    """Make a canonical database in `folder` with these memories, ids from 1 on."""
    path = folder / "memory.db"
    migrate.init_database(path)
    with closing(write(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', ?)",
            [(content,) for content in contents],
        )
    return path


def write(path: Path) -> sqlite3.Connection:
    """Return a connection as any application opens one."""
    return sqlite3.connect(path)


def execute(path: Path, sql: str, values: Sequence[object] = ()) -> None:
    """Run one statement and commit it."""
    with closing(write(path)) as connection, connection:
        connection.execute(sql, values)


def by_characters(texts: Sequence[str], size: int = CHUNK) -> list[list[Piece]]:
    """Cut each text every `size` characters."""
    return [
        [Piece(text[start : start + size]) for start in range(0, len(text), size)] for text in texts
    ]


@contextmanager
def pipeline_for(
    settings: Settings, *, chunker: Chunker | None = None
) -> Iterator[tuple[Pipeline, Connection]]:
    """Open a pipeline as ``syncer once`` does, with a chunker of the test's choice."""
    with ExitStack() as stack:
        sides = stack.enter_context(opening.opened(settings, to_write=True))
        connection = stack.enter_context(connect(specs.target_spec(settings)))
        embedder = stack.enter_context(closing(compose.build_embedder(settings)))
        generation = compose.settle(sides, connection, embedder)
        embedder = embedder.by(Catalog(connection).describe(generation).recipe)
        pipeline = compose.pipeline(sides, connection, embedder, generation, never)
        check_token(pipeline.state, pipeline.target)
        yield replace(pipeline, chunker=chunker or pipeline.chunker), connection


def sync(
    pipeline: Pipeline,
    *,
    now: Callable[[], str] = utc_now,
    head: int | None = None,
    limit: Limit | None = None,
) -> SyncResult:
    """Catch up with everything that is committed now, without a limit on deletes by default."""
    terms = Terms(now, Stop(), limit or Limit(rows=10**9))
    head = head_of(pipeline) if head is None else head
    return catch_up(pipeline, terms, head=head, report=lambda _: None)


def head_of(pipeline: Pipeline) -> int:
    """Return the head of the pipeline's change log."""
    return pipeline.source.head()  # type: ignore[attr-defined,no-any-return]


def sync_memory(settings: Settings, *, chunker: Chunker | None = None) -> SyncResult:
    """Open, catch up, close."""
    with pipeline_for(settings, chunker=chunker) as (pipeline, _):
        return sync(pipeline)


def all_points(connection: Connection, alias: str = "memory") -> Points:
    """Return everything that the collection behind `alias` holds."""
    records, _ = connection.client.scroll(alias, limit=10_000, with_vectors=True)
    return {record.id: (record.payload, record.vector) for record in records}  # type: ignore[misc]


def points_in(settings: Settings) -> Points:
    """Open the target and return everything that it holds."""
    with connect(specs.target_spec(settings)) as connection:
        return all_points(connection, settings.target.collection)
