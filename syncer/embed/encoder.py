"""All that turns a text into vectors: where it is cut, the dense vector, and the sparse one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from syncer.embed.sparse import SparseEncoder
from syncer.model import Embedded, Piece, Question, Recipe, SparseVector, Vector

SAMPLE = 500  # chunks whose lengths are measured when a generation is made: some 5 % sure
_USUAL_LENGTH = 64.0  # terms of a chunk, taken where there is nothing to measure yet


class Dense(Protocol):
    """A provider of dense vectors; `recipe` has its own parts alone."""

    recipe: Recipe

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Return the vectors of `texts`; see ``syncer.ports.Embedder``."""

    def query(self, text: str) -> Vector:
        """Return the vector of a question."""

    def close(self) -> None:
        """Let go of threads and memory."""


class Chunker(Protocol):
    """What cuts texts into pieces that fit the model."""

    @property
    def recipe(self) -> Mapping[str, object]:
        """Return all that decides where it cuts."""

    def split(self, texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        """Return the pieces of each text."""


class Encoder:
    """Satisfies ``syncer.ports.Embedder``; `text` is the recipe's part for what happens before."""

    def __init__(
        self,
        dense: Dense,
        chunker: Chunker,
        sparse: SparseEncoder | None,
        text: Mapping[str, object],
    ) -> None:
        self._dense = dense
        self._chunker = chunker
        self._sparse = sparse
        self._text = text

    @property
    def recipe(self) -> Recipe:
        """Return what decides the vectors."""
        return replace(
            self._dense.recipe,
            text={**self._text, **self._chunker.recipe},
            sparse=self._sparse.recipe if self._sparse else {},
        )

    def split(self, texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        """Return the pieces of each text, none longer than the model takes."""
        return self._chunker.split(texts)

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Return the vectors of `texts`, dense and sparse."""
        embedded = self._dense.embed(texts, counts)
        if self._sparse is None or not texts:
            return embedded
        return replace(embedded, sparse=self.sparse(texts))

    def sparse(self, texts: Sequence[str]) -> Sequence[SparseVector]:
        """Return the sparse vectors of `texts`; none at all where the recipe has no such part."""
        return self._sparse.passages(texts) if self._sparse and texts else ()

    def query(self, text: str) -> Vector:
        """Return the dense vector of a question."""
        return self._dense.query(text)

    def ask(self, text: str, *, dense: bool = True, sparse: bool = True) -> Question:
        """Return a question by the dense vector, the sparse one, or both."""
        return Question(
            dense=self._dense.query(text) if dense else None,
            sparse=self._sparse.query(text) if sparse and self._sparse else None,
        )

    def measured(self, texts: Iterable[str], most: int = SAMPLE) -> Recipe:
        """Return the recipe with the mean length of the chunks of `texts`, in terms; of `most`.

        BM25 weighs a term by the length of its chunk against that mean; it is measured once, when
        a generation is made, and stays with it.
        """
        if self._sparse is None:
            return self.recipe
        lengths: list[int] = []
        for text in texts:
            if len(lengths) >= most:
                break
            counted = (self._sparse.length(piece.text) for piece in self.split([text])[0])
            lengths += [count for count in counted if count]
        mean = sum(lengths) / len(lengths) if lengths else _USUAL_LENGTH
        return replace(self.recipe, sparse=self._sparse.with_length(mean).recipe)

    def by(self, recipe: Recipe) -> Encoder:
        """Return this encoder with what `recipe` says was measured when its generation was made."""
        length = recipe.sparse.get("avg_len")
        if self._sparse is None or not isinstance(length, (int, float)):
            return self
        return Encoder(
            self._dense, self._chunker, self._sparse.with_length(float(length)), self._text
        )

    def close(self) -> None:
        """Let go of threads and memory."""
        self._dense.close()
