"""The composition root: settings in, adapters out. The heavy ones are imported when needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from syncer import lock
from syncer.cli.opening import Sides
from syncer.errors import SourceBusyError, SyncerError
from syncer.settings import Settings, digest
from syncer.state import StateStore, utc_now

if TYPE_CHECKING:
    from syncer.embed import EmbedSpec
    from syncer.generations import Wanted
    from syncer.plan import Layout
    from syncer.ports import Embedder, Pipeline, Target
    from syncer.retry import Retry
    from syncer.target import Catalog, Connection, TargetSpec
    from syncer.worker import Stop, Terms

ROW_INDEX = "_sync.row"

T = TypeVar("T")


def whole_text(text: str) -> Sequence[str]:
    """Return the text as its only chunk; what is too long is cut by the embedder and reported."""
    return (text,)


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
            mapping=sides.mapping,
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
        max_content_bytes=sides.settings.source.max_content_bytes,
        replace_invalid=sides.settings.source.invalid_utf8 == "replace",
    )


def settle(sides: Sides, connection: Connection, embedder: Embedder) -> str:
    """Return the generation to write to, found and checked or newly made."""
    from syncer import generations

    return generations.settle(*_parties(sides, connection, embedder))


def start_over(sides: Sides, connection: Connection, embedder: Embedder) -> str:
    """Make a new generation, whatever was there, and return its name."""
    from syncer import generations

    return generations.start_over(*_parties(sides, connection, embedder))


def reconcile(sides: Sides, connection: Connection, embedder: Embedder) -> str:
    """Let state and collection agree on a new beginning, and return the generation's name."""
    from syncer import generations

    return generations.reconcile(*_parties(sides, connection, embedder))


def _parties(
    sides: Sides, connection: Connection, embedder: Embedder
) -> tuple[StateStore, Catalog, Wanted, Callable[[], str]]:
    from syncer.target import Catalog, generation_name

    connection.check_version()

    def new_name() -> str:
        return generation_name(sides.alias, datetime.now(UTC))

    return sides.store, Catalog(connection), wanted(sides, embedder), new_name


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


def terms(settings: Settings, stop: Stop) -> Terms:
    """Return on what terms a run works."""
    from syncer.guard import Limit
    from syncer.worker import Terms

    sync = settings.sync
    limit = Limit(sync.max_deletes, sync.max_delete_share)
    return Terms(utc_now, stop, limit, page=sync.window_rows)


def seconds_since_target_was_seen(sides: Sides, generation: str, now: float) -> float:
    """Return how long ago a run last looked at the target, by the generation's lock file."""
    return now - lock.touched(sides.lock_path(generation))
