"""The embedder of the schedules: cheap, and it may refuse a text for a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from syncer.embed.hashing import HashEmbedder
from syncer.embed.spec import EmbedSpec
from syncer.model import Embedded, Piece, Recipe, SparseVector, Vector

CHUNK = 4  # characters
_INNER = HashEmbedder(EmbedSpec(provider="hash", dimension=8))
RECIPE = replace(_INNER.recipe, text={"chunker": f"{CHUNK} characters"})


def by_characters(text: str) -> Sequence[str]:
    """Cut a text every few characters."""
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]


@cache
def vector_of(text: str) -> tuple[float, ...]:
    """Return the vector of this very text."""
    (vector,) = _INNER.embed([text]).vectors
    return tuple(float(number) for number in vector)


class MoodyEmbedder:
    """Gives no vector for texts that it `refuses`; see ``syncer.ports.Embedder``."""

    def __init__(self) -> None:
        self.refuses: frozenset[str] = frozenset()

    @property
    def recipe(self) -> Recipe:
        """Return what decides the vectors."""
        return RECIPE

    def split(self, texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        """Return the pieces of each text."""
        return [[Piece(piece) for piece in by_characters(text)] for text in texts]

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:  # noqa: ARG002
        """Return the vectors of the texts, empty ones where it refuses."""
        return Embedded([() if text in self.refuses else vector_of(text) for text in texts])

    def sparse(self, texts: Sequence[str]) -> Sequence[SparseVector]:  # noqa: ARG002
        """Return nothing: there is no sparse part."""
        return ()

    def query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return vector_of(text)

    def close(self) -> None:
        """Let go of nothing."""

    def refuses_any(self, text: str) -> bool:
        """Say whether it refuses a piece of a text."""
        return not self.refuses.isdisjoint(by_characters(text))
