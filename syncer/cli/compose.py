"""The composition root: settings in, adapters out. The heavy ones are imported when needed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from syncer import lock
from syncer.cli import opening, specs
from syncer.cli.opening import Sides
from syncer.errors import SourceBusyError, SyncerError
from syncer.settings import Settings, digest
from syncer.state import StateStore, utc_now

if TYPE_CHECKING:
    from syncer.embed.encoder import Encoder
    from syncer.generations import Wanted
    from syncer.guard import Limit
    from syncer.keys import Key
    from syncer.model import Description, Recipe, Row
    from syncer.plan import Layout
    from syncer.ports import Donor, Embedder, Pipeline, Target
    from syncer.retry import Retry
    from syncer.target import Catalog, Connection
    from syncer.worker import Stop, Terms

ROW_INDEX = "_sync.row"

T = TypeVar("T")


def build_embedder(settings: Settings, deaths: int = 0) -> Encoder:
    """Return the embedder that the settings ask for, its model loaded.

    Each of the last runs in a row that died halves the tokens of an inference.
    """
    from dataclasses import replace

    from syncer import embed
    from syncer.text import NORMALISER

    spec = specs.embed_spec(settings)
    spec = replace(spec, token_budget=max(1, spec.token_budget >> deaths))
    found = embed.build(spec, {"normaliser": NORMALISER})
    _spare_the_collector()
    return found


def _spare_the_collector() -> None:
    """Keep what is loaded by now, some 300,000 objects, out of the garbage collector's walks.

    All of it lives to the end of the process; going through it again and again takes 7 % of the
    time of a sync that computes no vectors. Once a process: what comes later may be garbage.
    """
    if not gc.get_freeze_count():
        gc.freeze()


def wanted(sides: Sides, embedder: Encoder) -> Wanted:
    """Return the generation that the settings ask for."""
    from syncer.generations import Wanted
    from syncer.model import Description

    def measure() -> Recipe:
        return embedder.measured(texts(sides, layout(sides, embedder.recipe)))

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
        measure=measure,
    )


def whole_table(sides: Sides) -> Iterator[tuple[Row, ...]]:
    """Yield the rows of the whole table in key order, in windows."""
    after: Key | None = None
    while True:
        read = partial(sides.source.walk, after, utc_now())
        window, after = opening.patiently(sides.settings, read)
        yield window
        if after is None:
            return


def texts(sides: Sides, layout: Layout) -> Iterator[str]:
    """Yield the texts of rows from the beginning of the table, as they will be embedded."""
    from syncer.plan import text_of

    for window in whole_table(sides):
        yield from (text for row in window if (text := text_of(row, layout)))


def layout(sides: Sides, recipe: Recipe) -> Layout:
    """Return how rows become points."""
    from syncer.plan import Layout

    target = sides.settings.target
    return Layout(
        table=sides.settings.source.table,
        vector=recipe.vector,
        sparse=recipe.sparse_vector,
        document_key=target.document_key,
        metadata_key=target.metadata_key,
        prefix=str(recipe.dense.get("passage_prefix", "")),
        json_columns=sides.source.json_columns,
        max_content_bytes=sides.settings.source.max_content_bytes,
        replace_invalid=sides.settings.source.invalid_utf8 == "replace",
    )


def settle(sides: Sides, connection: Connection, embedder: Encoder) -> str:
    """Return the generation to write to, found and checked or newly made."""
    from syncer import generations

    return generations.settle(*_parties(sides, connection, embedder))


def start_over(sides: Sides, connection: Connection, embedder: Encoder) -> str:
    """Make a new generation, whatever was there, and return its name."""
    from syncer import generations

    return generations.start_over(*_parties(sides, connection, embedder))


def reconcile(sides: Sides, connection: Connection, embedder: Encoder) -> str:
    """Let state and collection agree on a new beginning, and return the generation's name."""
    from syncer import generations

    return generations.reconcile(*_parties(sides, connection, embedder))


def _parties(
    sides: Sides, connection: Connection, embedder: Encoder
) -> tuple[StateStore, Catalog, Wanted, Callable[[], str]]:
    from syncer.target import Catalog

    return sides.store, Catalog(connection), wanted(sides, embedder), namer(sides)


def namer(sides: Sides) -> Callable[[], str]:
    """Return what gives a new generation its name."""
    from syncer.target import generation_name

    return lambda: generation_name(sides.alias, datetime.now(UTC))


def pipeline(
    sides: Sides, connection: Connection, embedder: Embedder, generation: str, retry: Retry
) -> Pipeline:
    """Return what ``sync_once`` works with on a generation, which lends vectors to itself."""
    from syncer.ports import Donor, Pipeline
    from syncer.reuse import lends
    from syncer.target import GenerationTarget, StoredPoints

    recipe = embedder.recipe
    document_key = sides.settings.target.document_key
    lender = StoredPoints(connection, generation, recipe.dimension, document_key)
    return Pipeline(
        source=sides.source,
        state=sides.store.bind(generation),
        embedder=embedder,
        target=GenerationTarget(connection, generation),
        layout=layout(sides, recipe),
        chunker=embedder.split,
        retry=retry,
        donors=(Donor(lender, lends(recipe, recipe), itself=True),),
    )


def donor(connection: Connection, generation: str, theirs: Description, ours: Recipe) -> Donor:
    """Return a generation that describes itself so, as far as its vectors are those of `ours`."""
    from syncer.ports import Donor
    from syncer.reuse import lends
    from syncer.target import StoredPoints

    recipe = theirs.recipe
    lender = StoredPoints(connection, generation, recipe.dimension, theirs.document_key)
    return Donor(lender, lends(recipe, ours), cuts_alike=recipe.text == ours.text)


def null_target() -> Target:
    """Return a target that holds nothing."""
    from syncer.target import NullTarget

    return NullTarget()


def preview_pipeline(sides: Sides, target: Target) -> Pipeline:
    """Return what a dry run works with: no model is loaded."""
    from dataclasses import replace

    from syncer import embed
    from syncer.ports import Pipeline
    from syncer.retry import never

    asked = specs.embed_spec(sides.settings)
    whole = replace(asked, chunk_tokens=None, chunk_overlap=0)
    spec = replace(whole, provider="hash", dimension=None, sparse=None)
    embedder = embed.build(spec, {})
    return Pipeline(
        source=sides.source,
        state=sides.store.bind(sides.alias),
        embedder=embedder,
        target=target,
        layout=layout(sides, embedder.recipe),
        chunker=embedder.split,
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
    from syncer.worker import Terms

    return Terms(utc_now, stop, limit(settings), page=settings.sync.window_rows)


def limit(settings: Settings) -> Limit:
    """Return how many deletes are too many."""
    from syncer.guard import Limit

    return Limit(settings.sync.max_deletes, settings.sync.max_delete_share)


def seconds_since_target_was_seen(sides: Sides, generation: str, now: float) -> float:
    """Return how long ago a run last looked at the target, by the generation's lock file."""
    return now - lock.touched(sides.lock_path(generation))
