"""Generations that are there and may lend vectors to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from syncer.cli import compose
from syncer.errors import RefusedError
from syncer.state import kept_ones

if TYPE_CHECKING:
    from syncer.cli.ready import Ready
    from syncer.model import Description, Recipe
    from syncer.ports import Donor


_GLANCE = 100  # chunks that show whether texts have become much longer or shorter
_UNSURE = 0.2  # share by which so few may miss the mean


def measuring(found: Ready, measure: Callable[[], Recipe] | None) -> Callable[[], Recipe]:
    """Return what measures a new recipe; a length close to that of a lender's stays as it is."""
    from syncer.reuse import with_length_of

    sides, embedder = found.sides, found.embedder

    def measured() -> Recipe:
        lenders = [theirs.recipe for _, theirs in _lenders(found, "")]
        if any(theirs.sparse for theirs in lenders):
            texts = compose.texts(sides, compose.layout(sides, embedder.recipe))
            glance = embedder.measured(texts, _GLANCE)
            for theirs in lenders:
                if (kept := with_length_of(theirs, glance, _UNSURE)) is not glance:
                    return kept
        recipe = measure() if measure else embedder.recipe
        for theirs in lenders:
            recipe = with_length_of(theirs, recipe)
        return recipe

    return measured


def _lenders(found: Ready, but: str) -> Iterator[tuple[str, Description]]:
    """Yield the generations that may lend vectors, and what they are: the serving one first."""
    from syncer.target import Catalog

    catalog = Catalog(found.connection)
    ours = found.sides.store.generations(found.sides.alias)
    serving = [each for each in ours if each.serving]
    for each in (*serving, *kept_ones(ours)):
        if each.generation != but and found.retry(catalog.exists, each.generation):
            try:
                yield each.generation, found.retry(catalog.describe, each.generation)
            except RefusedError:  # somebody has changed it: nothing of it is used
                continue


def donors(found: Ready, generation: str, recipe: Recipe) -> tuple[Donor, ...]:
    """Return the other generations that have vectors which `recipe` would make too."""
    lenders = (
        compose.donor(found.connection, name, theirs, recipe)
        for name, theirs in _lenders(found, generation)
    )
    return tuple(donor for donor in lenders if donor.vectors)
