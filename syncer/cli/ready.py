"""Everything that a run needs, open: sides, connection, embedder; and one generation, locked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import compose, opening, specs
from syncer.cli.opening import Sides
from syncer.errors import EmbedderError, RecipeError

if TYPE_CHECKING:
    from syncer.cli.counted import Count
    from syncer.cli.report import Report
    from syncer.embed.encoder import Encoder
    from syncer.model import Recipe
    from syncer.ports import Pipeline
    from syncer.retry import Retry
    from syncer.target import Connection
    from syncer.worker import Stop

Settling = Callable[[Sides, "Connection", "Encoder"], str]
"""What finds or makes the generation to write to, with the alias locked; returns its name."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything that a run needs, open; `embedder` is the one that the settings ask for."""

    sides: Sides
    connection: Connection
    embedder: Encoder
    retry: Retry
    stop: Stop
    others: dict[str, Encoder] | None = None
    """Embedders by other recipes, by generation, where they are kept for the next run."""

    @contextmanager
    def settled(self, *settlings: Settling) -> Iterator[tuple[str, int]]:
        """Give the generation that the last of `settlings` returns, locked, and its dead holders.

        The alias is locked while they look, so that nobody moves it meanwhile, and until the
        generation is: what is found is what is written to.
        """
        with ExitStack() as stack:
            with opening.locked(self.sides, self.sides.alias):
                for settling in settlings:
                    found = self.retry(settling, self.sides, self.connection, self.embedder)
                deaths = stack.enter_context(opening.locked(self.sides, found))
            yield found, deaths

    @contextmanager
    def pipeline(
        self, generation: str, report: Report, *, fewer: bool = False
    ) -> Iterator[Pipeline]:
        """Give what ``sync_once`` works with on a generation that is locked, by its own recipe.

        What is in it is checked against the state before, and counted afterwards; `fewer` points
        than were counted may be there before if what is missing is to be put back.
        """
        with self.counted(generation, report, fewer=fewer) as (found, _):
            yield found

    @contextmanager
    def counted(
        self, generation: str, report: Report, *, fewer: bool = False
    ) -> Iterator[tuple[Pipeline, Count]]:
        """Give what ``pipeline`` gives, and the count of points that is kept meanwhile."""
        from syncer.cli.counted import keeping_count
        from syncer.target import Catalog, GenerationTarget
        from syncer.write import check_token

        sides, retry, catalog = self.sides, self.retry, Catalog(self.connection)
        recipe = retry(catalog.describe, generation).recipe
        for difference in retry(catalog.differences, generation, recipe):
            report.warn(f"{generation} is stored otherwise than the settings ask: {difference}")
        retry(sides.store.see_schema, generation, sides.schema)
        with self.embedder_by(generation, recipe) as embedder:
            found = compose.pipeline(sides, self.connection, embedder, generation, retry)
            target, state = found.target, sides.store.bind(generation)
            assert isinstance(target, GenerationTarget)  # noqa: S101 - it counts, too
            retry(check_token, state, target)
            with keeping_count(state, target, generation, retry, fewer=fewer) as count:
                report.uncounted(generation, count.more)
                yield found, count
                retry(check_token, state, target)

    @contextmanager
    def embedder_by(self, generation: str, recipe: Recipe) -> Iterator[Encoder]:
        """Give the embedder that makes the vectors of `recipe`, the settings' own if it does.

        Raises RecipeError if there is none any more: the generation stays as it is then.
        """
        from syncer.recipes import differences

        if not differences(recipe, self.embedder.recipe):
            yield self.embedder.by(recipe)  # with what was measured when it was made
            return
        if self.others is not None:
            if generation not in self.others:
                self.others[generation] = by_recipe(self.sides, generation, recipe)
            yield self.others[generation]
            return
        with closing(by_recipe(self.sides, generation, recipe)) as embedder:
            yield embedder


@contextmanager
def ready(sides: Sides, report: Report, stop: Stop) -> Iterator[Ready]:
    """Open target and embedder; in smaller portions if the last runs were killed."""
    from syncer.target import connect

    known = sides.store.serving(sides.alias)
    deaths = lock.deaths(sides.lock_path(known.generation)) if known else 0
    retry = compose.retry_policy(sides.settings, stop.sleep, report.retrying)
    with (
        connect(specs.target_spec(sides.settings)) as connection,
        closing(compose.build_embedder(sides.settings, deaths)) as embedder,
    ):
        retry(connection.check_version)
        if version := connection.version:
            report.connected(connection.spec.name, version)
        yield Ready(sides, connection, embedder, retry, stop)


@contextmanager
def ready_by(
    sides: Sides,
    connection: Connection,
    retry: Retry,
    stop: Stop,
    generation: str,
    recipe: Recipe,
) -> Iterator[Ready]:
    """Open the embedder that made a generation, whatever the settings ask for."""
    with closing(by_recipe(sides, generation, recipe)) as embedder:
        yield Ready(sides, connection, embedder, retry, stop)


def by_recipe(sides: Sides, generation: str, recipe: Recipe) -> Encoder:
    """Return what made a generation; raise RecipeError if its vectors would be others by now."""
    from syncer import embed
    from syncer.recipes import check_same

    try:
        encoder = embed.by_recipe(recipe, specs.embed_spec(sides.settings))
    except EmbedderError as error:
        raise _frozen(generation, error.message) from error
    try:
        check_same(generation, recipe, encoder.recipe)
    except RecipeError as error:
        encoder.close()
        raise _frozen(generation, error.message) from error
    return encoder


def _frozen(generation: str, why: str) -> RecipeError:
    return RecipeError(
        f"{generation} stays as it is, since what it was made with cannot be had: {why}",
        hint="Searches go on, and see no change, until `syncer rebuild` has put a new generation "
        "in its place. To let it go on until then, put back what it was made with.",
    )
