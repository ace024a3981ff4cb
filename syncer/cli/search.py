"""``syncer search``: ask the collection, to see that it works."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict

from syncer.cli import compose
from syncer.errors import IdentityError
from syncer.generations import check_recipe
from syncer.model import Hit
from syncer.settings import Settings

_WIDTH = 78  # columns of an excerpt

Ask = Callable[[str, int, Mapping[str, object]], list[Hit]]
"""A question to an open collection: text, how many hits, and which metadata they must have."""


def search(settings: Settings, text: str, limit: int, where: Mapping[str, object]) -> list[Hit]:
    """Return the best `limit` hits for `text` among those whose metadata are as `where` says."""
    with asking(settings) as ask:
        return ask(text, limit, where)


@contextmanager
def asking(settings: Settings) -> Iterator[Ask]:
    """Open the collection and load its model, for any number of questions.

    Raises IdentityError if there is no collection, RecipeError if its vectors are of another make.
    """
    from syncer.target import Catalog, connect, query

    with connect(compose.target_spec(settings), to_write=False) as connection:
        catalog = Catalog(connection)
        alias = settings.target.collection
        generation = catalog.resolve(alias)
        if generation is None:
            raise IdentityError(
                f"there is no collection {alias} at {connection.spec.name}",
                hint="Run `syncer once` to build it.",
            )
        described = catalog.describe(generation)
        with closing(compose.build_embedder(settings)) as embedder:
            check_recipe(generation, described.recipe, embedder.recipe)

            def ask(text: str, limit: int, where: Mapping[str, object]) -> list[Hit]:
                return query(connection, alias, described, embedder.query(text), limit, where)

            yield ask


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
