"""The `fastembed` provider: a local model, run on batches that are packed by length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from syncer.embed import canary
from syncer.embed.catalogue import TOKENIZER_FILE, find_entry
from syncer.embed.checks import Rows, as_rows, as_vectors
from syncer.embed.loading import ONNX_ERRORS, load, mixes_batches
from syncer.embed.offline import file_sha256
from syncer.embed.packing import Batch, distinct, pack, shared_budget
from syncer.embed.tokens import TokenCounter, set_limit
from syncer.errors import EmbedderError, SettingsError
from syncer.model import Embedded, Recipe, Vector

if TYPE_CHECKING:
    from fastembed import TextEmbedding

    from syncer.embed.spec import EmbedSpec


class FastEmbedEmbedder:
    """Embeds with one model that several threads share, one single-threaded inference in each.

    `alone` gives each text an inference of its own, for models whose vectors depend on the batch;
    without padding, that costs next to nothing.
    """

    def __init__(
        self,
        model: TextEmbedding,
        spec: EmbedSpec,
        recipe: Recipe,
        counter: TokenCounter,
        *,
        alone: bool,
    ) -> None:
        self.recipe = recipe
        self._model = model
        self._name = spec.model
        self._passage = spec.passage_prefix or ""
        self._query = spec.query_prefix or ""
        self._budget = 1 if alone else spec.token_budget
        self._workers = spec.workers
        self._counter = counter
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="embed")

    @classmethod
    def load(cls, spec: EmbedSpec, text: Mapping[str, object]) -> FastEmbedEmbedder:
        """Return an embedder for the model of `spec`, with the dimension that the model has.

        Raises SettingsError for an unknown model or a bound out of range, EmbedderError for a
        model that is not there, is damaged, or gives no usable vector.
        """
        _check_bounds(spec)
        entry = find_entry(spec.model)
        model, folder = load(spec, entry)
        tokenizer = model.model.tokenizer  # type: ignore[attr-defined] # every class has one
        counter = TokenCounter(tokenizer, set_limit(tokenizer, spec.max_tokens))
        probe = _probe(model, (spec.passage_prefix or "") + canary.SENTENCE, entry.model)
        files = (*entry.weights, TOKENIZER_FILE)
        recipe = Recipe(
            vector=spec.vector_name,
            dimension=len(probe),
            dense={
                "provider": "fastembed",
                "model": entry.model,
                "files": {name: file_sha256(folder.path / name) for name in files},
                "pooling": type(model.model).__name__,
                "passage_prefix": spec.passage_prefix or "",
                "query_prefix": spec.query_prefix or "",
                "max_tokens": counter.limit,
            },
            text=dict(text),
            canary=canary.rounded(probe),
        )
        alone = mixes_batches(folder.path / entry.weights[0])
        return cls(model, spec, recipe, counter, alone=alone)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return a vector for each of `texts`, in their order; repeated texts are computed once.

        A vector that is not finite or has no direction comes back empty. Raises EmbedderError if
        the model fails, or returns another number or size of vectors than it should.
        """
        if not texts:
            return Embedded(())
        unique = distinct([self._passage + text for text in texts])
        counts = self._counter.count(unique.texts)
        rows = self._rows(unique.texts, [min(count, self._counter.limit) for count in counts])
        truncated = frozenset(
            index
            for index, place in enumerate(unique.places)
            if counts[place] > self._counter.limit
        )
        return Embedded(as_vectors(rows, unique.places), truncated)

    def query(self, text: str) -> Vector:
        """Return the vector to search with for `text`; raises EmbedderError if there is none."""
        try:
            vectors = list(self._model.query_embed([self._query + text]))
        except ONNX_ERRORS as error:
            raise _failed(self._name, error) from error
        rows = as_rows(vectors, 1, self.recipe.dimension, self._name)
        return _usable(as_vectors(rows, [0])[0], self._name)

    def close(self) -> None:
        """Stop the threads after the inference each is in; to be called once, at the end."""
        self._pool.shutdown(cancel_futures=True)

    def _rows(self, texts: Sequence[str], lengths: Sequence[int]) -> Rows:
        def run(batch: Batch) -> Rows:
            return _passages(
                self._model, [texts[i] for i in batch], self.recipe.dimension, self._name
            )

        budget = shared_budget(lengths, self._budget, self._workers)
        batches = pack(lengths, budget)
        rows = np.empty((len(texts), self.recipe.dimension), np.float32)
        for batch, vectors in zip(batches, self._pool.map(run, batches), strict=True):
            rows[list(batch)] = vectors
        return rows


def _passages(model: TextEmbedding, texts: Sequence[str], dimension: int, name: str) -> Rows:
    try:
        vectors = list(model.passage_embed(list(texts), batch_size=len(texts)))
    except ONNX_ERRORS as error:
        raise _failed(name, error) from error
    return as_rows(vectors, len(texts), dimension, name)


def _probe(model: TextEmbedding, sentence: str, name: str) -> Vector:
    """Return the vector of a `sentence`, which also tells the dimension."""
    try:
        vectors = list(model.passage_embed([sentence], batch_size=1))
    except ONNX_ERRORS as error:
        raise _failed(name, error) from error
    rows = as_rows(vectors, 1, int(np.size(vectors[0])) if vectors else 0, name)
    return _usable(as_vectors(rows, [0])[0], name)


def _usable(vector: Vector, name: str) -> Vector:
    if len(vector) == 0:
        raise EmbedderError(
            f"{name} returned a vector that is zero or not finite",
            hint="The model's files may be damaged: fetch or install them again.",
        )
    return vector


def _failed(name: str, error: Exception) -> EmbedderError:
    return EmbedderError(f"{name} failed: {type(error).__name__}: {error}")


def _check_bounds(spec: EmbedSpec) -> None:
    for key, value in (("token_budget", spec.token_budget), ("threads", spec.workers)):
        if value < 1:
            raise SettingsError(f"embed.{key} is {value}, but must be at least 1")
