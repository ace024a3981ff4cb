"""``syncer search``: ask the collection, to see that it works."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from syncer.cli import specs
from syncer.errors import IdentityError, SettingsError
from syncer.model import Hit, Mode, Question, Recipe
from syncer.recipes import check_same
from syncer.settings import Settings
from syncer.text import normalise

if TYPE_CHECKING:
    from syncer.embed.encoder import Encoder

_WIDTH = 78  # columns of an excerpt

Ask = Callable[[str, int, Mapping[str, object]], list[Hit]]
"""A question to an open collection: text, how many hits, and which metadata they must have."""


def search(
    settings: Settings,
    text: str,
    limit: int,
    where: Mapping[str, object],
    mode: Mode | None = None,
) -> list[Hit]:
    """Return the best `limit` hits for `text` among those whose metadata are as `where` says.

    Without a `mode` it is hybrid where the collection has a sparse vector, else dense.
    """
    with asking(settings, mode) as ask:
        return ask(text, limit, where)


@contextmanager
def asking(settings: Settings, mode: Mode | None = None) -> Iterator[Ask]:
    """Open the collection and load what it was made with, for any number of questions.

    How a question becomes a vector is told by the collection alone; the settings say where it is
    and where models lie. Raises IdentityError if there is no collection, RecipeError if its model
    cannot be had as it was.
    """
    from syncer.target import Catalog, connect, query

    with ExitStack() as stack:
        connection = stack.enter_context(connect(specs.target_spec(settings), to_write=False))
        catalog = Catalog(connection)
        alias = settings.target.collection
        generation = catalog.resolve(alias)
        if generation is None:
            raise IdentityError(
                f"there is no collection {alias} at {connection.spec.name}",
                hint="Run `syncer once` to build it.",
            )
        described = catalog.describe(generation)
        question = _asker(settings, generation, described.recipe, mode, stack)

        def ask(text: str, limit: int, where: Mapping[str, object]) -> list[Hit]:
            asked = question(normalise(text))  # as the rows' texts are
            return query(connection, generation, described, asked, limit, where)

        yield ask


def _asker(
    settings: Settings, generation: str, recipe: Recipe, mode: Mode | None, stack: ExitStack
) -> Callable[[str], Question]:
    """Return what makes a question of a text; only what the mode needs is loaded."""
    from syncer import embed

    mode = mode or (Mode.HYBRID if recipe.sparse else Mode.DENSE)
    if mode is not Mode.DENSE and not recipe.sparse:
        raise SettingsError(
            f"{generation} has no sparse vector, which --mode {mode} needs",
            hint="Search with --mode dense.",
        )
    if mode is Mode.SPARSE:
        words = embed.sparse_by_recipe(recipe)
        assert words is not None  # noqa: S101 - there is a sparse part
        return lambda text: Question(sparse=words.query(text))
    needed = recipe if mode is Mode.HYBRID else replace(recipe, sparse={})
    encoder = stack.enter_context(closing(_encoder(settings, generation, needed)))
    return lambda text: encoder.ask(text, sparse=mode is Mode.HYBRID)


def _encoder(settings: Settings, generation: str, recipe: Recipe) -> Encoder:
    """Return what made a generation; raise RecipeError if a question's vector is another by now."""
    from syncer import embed

    encoder = embed.by_recipe(recipe, specs.embed_spec(settings))
    try:
        check_same(generation, _for_questions(recipe), _for_questions(encoder.recipe))
    except BaseException:
        encoder.close()
        raise
    return encoder


def _for_questions(recipe: Recipe) -> Recipe:
    """Return a recipe without what decides where texts are cut: a question is not."""
    text = {name: value for name, value in recipe.text.items() if not name.startswith("chunk")}
    return replace(recipe, text=text)


def in_words(hits: Sequence[Hit]) -> str:
    """Return the hits as lines for people: score, row and an excerpt."""
    if not hits:
        return "nothing found"
    lines = []
    for hit in hits:
        excerpt = textwrap.shorten(hit.document, _WIDTH, placeholder=" …")
        lines.append(f"{hit.score:.3f}  row {hit.row}  {excerpt}")
    return "\n".join(lines)


def as_json(hits: Sequence[Hit]) -> str:
    """Return the hits as one JSON array."""
    return json.dumps([asdict(hit) for hit in hits], ensure_ascii=False)
