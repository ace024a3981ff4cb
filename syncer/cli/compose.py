"""The composition root: settings in, adapters out. The heavy ones are imported when needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import syncer
from syncer import lock, migrate
from syncer.errors import SourceBusyError, SyncerError
from syncer.schema import SETS
from syncer.settings import Settings, digest, mapping_digest
from syncer.settings.sections import CANONICAL_TABLE
from syncer.source import BUSY_SLICE, Limits, LogSource, TableSpec, open_readonly
from syncer.state import StateStore

if TYPE_CHECKING:
    from syncer.embed import EmbedSpec
    from syncer.generations import Wanted
    from syncer.plan import Layout
    from syncer.ports import Embedder, Pipeline, Target
    from syncer.retry import Retry
    from syncer.target import Connection, TargetSpec

ROW_INDEX = "_sync.row"

T = TypeVar("T")


def whole_text(text: str) -> Sequence[str]:
    """Return the text as its only chunk; what is too long is cut by the embedder and reported."""
    return (text,)


@dataclass(frozen=True, slots=True)
class Sides:
    """The two light adapters: the source, and the state beside it."""

    settings: Settings
    source: LogSource
    store: StateStore
    schema: str  # as what the schema was found whole when they were opened

    @property
    def alias(self) -> str:
        """The name under which readers find the collection."""
        return self.settings.target.collection

    def lock_path(self, name: str) -> Path:
        """Return the lock file of a generation, or of the alias while there is none."""
        database = self.settings.source.database.resolve()  # one lock, by whatever link it goes
        return database.with_name(f"{database.name}-{name}.lock")


@contextmanager
def opened(settings: Settings) -> Iterator[Sides]:
    """Open source and state, the schema checked; both are closed in the end.

    The state goes last: a connection that may write leaves no write-ahead log behind.
    """
    with ExitStack() as stack:
        source = patiently(settings, lambda: _open_source(settings))
        stack.callback(source.close)
        store = patiently(settings, lambda: _open_store(settings))
        stack.callback(store.close)
        stack.callback(source.close)
        schema = patiently(settings, lambda: check_schema(settings, store))
        yield Sides(settings, source, store, schema)


def patiently(settings: Settings, function: Callable[[], T]) -> T:
    """Call `function`, again for as long as the settings wait for a locked database."""
    try:
        return function()
    except SourceBusyError:
        return retry_policy(settings)(function)  # imported only now, for the sake of idle runs


def _open_source(settings: Settings) -> LogSource:
    limits = Limits(settings.sync.window_rows, settings.sync.window_bytes)
    database = settings.source.database
    return LogSource(database, table_spec(settings), limits, _busy_slice(settings))


def _open_store(settings: Settings) -> StateStore:
    return StateStore(settings.source.database, busy=_busy_slice(settings))


def _busy_slice(settings: Settings) -> float:
    return min(BUSY_SLICE, settings.source.busy_timeout)


def check_schema(settings: Settings, store: StateStore) -> str:
    """Raise SchemaError unless tables and triggers are as they should be.

    Returns a mark of the schema as it is. While a generation bears it, nothing has changed since
    a run looked at everything, and the look is spared.
    """
    mark = f"{syncer.__version__}:{store.schema_version()}:{digest(settings)}"
    known = store.serving(settings.target.collection)
    if known is None or known.schema_seen != mark:
        canonical = settings.source.table == CANONICAL_TABLE
        with closing(open_readonly(settings.source.database)) as connection:
            migrate.check(connection, SETS if canonical else ("state",))
    return mark


def table_spec(settings: Settings) -> TableSpec:
    """Return what the settings say about the table."""
    source = settings.source
    return TableSpec(
        table=source.table,
        key=source.key,
        content=source.content,
        metadata=source.metadata,
        where=source.where,
        deleted=source.deleted,
        expires_at=source.expires_at,
    )


def target_spec(settings: Settings) -> TargetSpec:
    """Return what the settings say about Qdrant."""
    from syncer.target import TargetSpec

    target = settings.target
    return TargetSpec(
        path=target.path,
        url=target.url,
        api_key=target.api_key.get_secret_value() if target.api_key else None,
        grpc=target.grpc,
        timeout=target.timeout,
        batch_points=target.batch_points,
        batch_bytes=target.batch_bytes,
        lock_wait=target.lock_wait,
    )


def embed_spec(settings: Settings) -> EmbedSpec:
    """Return what the settings say about the model."""
    from syncer.embed import EmbedSpec

    embed = settings.embed
    return EmbedSpec(
        provider=embed.provider,
        model=embed.model,
        model_path=embed.model_path,
        cache_dir=embed.cache_dir,
        threads=embed.threads,
        token_budget=embed.token_budget,
        max_tokens=embed.max_tokens,
        passage_prefix=embed.passage_prefix or None,
        query_prefix=embed.query_prefix or None,
        dimension=embed.dimension,
        vector=settings.target.vector,
    )


def build_embedder(settings: Settings) -> Embedder:
    """Return the embedder that the settings ask for, its model loaded."""
    from syncer import embed
    from syncer.text import NORMALISER

    return embed.build(embed_spec(settings), {"normaliser": NORMALISER, "chunker": "whole"})


def wanted(sides: Sides, embedder: Embedder) -> Wanted:
    """Return the generation that the settings ask for."""
    from syncer.generations import Wanted
    from syncer.model import Description

    target = sides.settings.target
    return Wanted(
        alias=target.collection,
        description=Description(
            recipe=embedder.recipe,
            source_id=sides.store.source_id(),
            table=sides.settings.source.table,
            mapping=mapping_digest(sides.settings),
            document_key=target.document_key,
            metadata_key=target.metadata_key,
        ),
        settings_digest=digest(sides.settings),
        indexes=tuple(dict.fromkeys((ROW_INDEX, *target.payload_indexes))),
    )


def layout(sides: Sides, vector: str) -> Layout:
    """Return how rows become points."""
    from syncer.plan import Layout

    target = sides.settings.target
    return Layout(
        table=sides.settings.source.table,
        vector=vector,
        document_key=target.document_key,
        metadata_key=target.metadata_key,
        prefix=sides.settings.embed.passage_prefix,
        json_columns=sides.source.json_columns,
    )


def locked(sides: Sides, name: str) -> AbstractContextManager[None]:
    """Hold the lock of a generation, or of the alias while it is looked for or made."""
    path = sides.lock_path(name)
    return lock.held(path, f"the lock on {name}", sides.settings.target.lock_wait)


def settle(
    sides: Sides, connection: Connection, embedder: Embedder, *, start_over: bool = False
) -> str:
    """Return the generation to write to, found and checked or newly made."""
    from syncer import generations
    from syncer.target import Catalog, generation_name

    connection.check_version()
    settle = generations.start_over if start_over else generations.settle
    return settle(
        sides.store,
        Catalog(connection),
        wanted(sides, embedder),
        lambda: generation_name(sides.alias, datetime.now(UTC)),
    )


def pipeline(
    sides: Sides, connection: Connection, embedder: Embedder, generation: str, retry: Retry
) -> Pipeline:
    """Return what ``sync_once`` works with."""
    from syncer.ports import Pipeline
    from syncer.target import GenerationTarget

    return Pipeline(
        source=sides.source,
        state=sides.store.bind(generation),
        embedder=embedder,
        target=GenerationTarget(connection, generation),
        layout=layout(sides, embedder.recipe.vector),
        chunker=whole_text,
        retry=retry,
    )


def null_target() -> Target:
    """Return a target that holds nothing."""
    from syncer.target import NullTarget

    return NullTarget()


def preview_pipeline(sides: Sides, target: Target) -> Pipeline:
    """Return what a dry run works with: no model is loaded."""
    from syncer.embed.hashing import HashEmbedder
    from syncer.ports import Pipeline
    from syncer.retry import never

    spec = embed_spec(sides.settings)
    return Pipeline(
        source=sides.source,
        state=sides.store.bind(sides.alias),
        embedder=HashEmbedder(spec, {}),
        target=target,
        layout=layout(sides, spec.vector_name),
        chunker=whole_text,
        retry=never,
    )


def retry_policy(
    settings: Settings,
    sleep: Callable[[float], None] = time.sleep,
    on_retry: Callable[[SyncerError], None] = lambda _: None,
) -> Retry:
    """Return the policy for trying again, by the settings' budgets."""
    from syncer.retry import within

    def budget(error: SyncerError) -> float:
        busy = isinstance(error, SourceBusyError)
        return settings.source.busy_timeout if busy else settings.target.retry_budget

    return within(budget, sleep=sleep, on_retry=on_retry)


def seconds_since_target_was_seen(sides: Sides, generation: str, now: float) -> float:
    """Return how long ago a run last looked at the target, by the generation's lock file."""
    return now - lock.touched(sides.lock_path(generation))
