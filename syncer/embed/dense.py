"""The `fastembed` provider: a local model, run on batches that are packed by length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from syncer.embed import canary
from syncer.embed.catalogue import TOKENIZER_FILE, find_entry
from syncer.embed.checks import Rows, as_rows, as_vectors, usable
from syncer.embed.fingerprints import HASH_BOOK, file_hashes
from syncer.embed.halving import by_halving
from syncer.embed.loading import INFERENCE_ERRORS, MODEL_ERRORS, check_devices, load, mixes_batches
from syncer.embed.packing import Batch, Distinct, distinct, pack, shared_budget
from syncer.embed.tokens import TokenCounter
from syncer.errors import EmbedderError, EmbedderStuckError, SettingsError
from syncer.model import Embedded, Recipe, Vector

if TYPE_CHECKING:
    from fastembed import TextEmbedding

    from syncer.embed.spec import EmbedSpec


_DAMAGED = "The model's files may be damaged: fetch or install them again."
_LONGEST = 400  # characters of a library's message
Computed = tuple[int, NDArray[np.float32] | EmbedderError]
"""A text's index with its row, or with why there is none."""


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
        self._timeout = spec.batch_timeout
        self._stuck = False
        self.counter = counter
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="embed")

    @classmethod
    def load(cls, spec: EmbedSpec) -> FastEmbedEmbedder:
        """Return an embedder for the model of `spec`, with the dimension that the model has.

        Raises SettingsError for an unknown model or a bound out of range, EmbedderError for a
        model that is not there, is damaged, or gives no usable vector.
        """
        _check_bounds(spec)
        check_devices(spec.devices)
        entry = find_entry(spec.model)
        model, folder = load(spec, entry)
        counter = TokenCounter(model.model.tokenizer)  # type: ignore[attr-defined] # all have one
        probe = _probe(model, (spec.passage_prefix or "") + canary.SENTENCE, entry.model)
        files = [folder.path / name for name in (*entry.weights, TOKENIZER_FILE)]
        hashes = file_hashes(files, spec.models_dir / HASH_BOOK)
        recipe = Recipe(
            vector=spec.vector_name,
            dimension=len(probe),
            dense={
                "provider": "fastembed",
                "model": entry.model,
                "files": {path.name: hashes[path] for path in files},
                "pooling": type(model.model).__name__,
                "passage_prefix": spec.passage_prefix or "",
                "query_prefix": spec.query_prefix or "",
                "max_tokens": counter.limit,
            },
            text={},
            canary=canary.rounded(probe),
        )
        alone = mixes_batches(folder.path / entry.weights[0])
        return cls(model, spec, recipe, counter, alone=alone)

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Return a vector for each of `texts`, in their order; repeated texts are computed once.

        `counts` are the texts' tokens with prefix and special ones, where they are known. A vector
        that is not finite or has no direction comes back empty, and so does that of a text that
        fails alone. Raises EmbedderError if the model fails altogether, or returns another number
        or size of vectors than it should.
        """
        if not texts:
            return Embedded(())
        unique = distinct([self._passage + text for text in texts])
        lengths = self._lengths(unique, counts)
        rows, refused = self._rows(unique.texts, [min(n, self.counter.limit) for n in lengths])
        truncated = frozenset(
            index
            for index, place in enumerate(unique.places)
            if lengths[place] > self.counter.limit
        )
        return Embedded(
            as_vectors(rows, unique.places),
            truncated,
            {index: refused[at] for index, at in enumerate(unique.places) if at in refused},
        )

    def query(self, text: str) -> Vector:
        """Return the vector to search with for `text`; raises EmbedderError if there is none."""
        try:
            vectors = list(self._model.query_embed([self._query + text]))
        except INFERENCE_ERRORS as error:
            raise _failed(self._name, error) from error
        rows = as_rows(vectors, 1, self.recipe.dimension, self._name)
        return usable(as_vectors(rows, [0])[0], self._name, _DAMAGED)

    def close(self) -> None:
        """Stop the threads after the inference each is in; to be called once, at the end."""
        self._pool.shutdown(wait=not self._stuck, cancel_futures=True)

    def _lengths(self, unique: Distinct, counts: Sequence[int]) -> list[int]:
        """Return the tokens of each unique text; those that were counted already are not again."""
        known = dict(zip(unique.places, counts, strict=True)) if counts else {}
        unknown = [at for at in range(len(unique.texts)) if not known.get(at)]
        found = self.counter.count([unique.texts[at] for at in unknown])
        known |= dict(zip(unknown, found, strict=True))
        return [known[at] for at in range(len(unique.texts))]

    def _rows(self, texts: Sequence[str], lengths: Sequence[int]) -> tuple[Rows, dict[int, str]]:
        """Return a row for each text, zero for those that fail alone, and why these do."""

        def run(batch: Sequence[int]) -> Rows:
            return _passages(
                self._model, [texts[i] for i in batch], self.recipe.dimension, self._name
            )

        budget = shared_budget(lengths, self._budget, self._workers)
        batches = pack(lengths, budget)
        rows = np.zeros((len(texts), self.recipe.dimension), np.float32)
        refused: dict[int, str] = {}
        for found in self._computed(batches, run):
            for index, row in found:
                if isinstance(row, EmbedderError):
                    refused[index] = row.message
                else:
                    rows[index] = row
        return rows, refused

    def _computed(
        self, batches: Sequence[Batch], run: Callable[[Sequence[int]], Rows]
    ) -> Iterator[list[Computed]]:
        """Yield what each batch came to; raise if the model fails at the canary as well."""

        def work(batch: Batch) -> list[Computed]:
            found = list(by_halving(batch, run))
            if any(isinstance(row, EmbedderError) for _, row in found):
                _probe(self._model, self._passage + canary.SENTENCE, self._name)
            return found

        waiting = [self._pool.submit(work, batch) for batch in batches]
        try:
            for future in waiting:
                yield future.result(timeout=self._timeout)
        except TimeoutError:
            self._stuck = True
            raise EmbedderStuckError(
                f"{self._name} has not answered for {self._timeout:.0f} s",
                hint="The process is given up; the position is where it was. If the machine is "
                "that slow, raise embed.batch_timeout.",
            ) from None
        finally:
            for future in waiting:
                future.cancel()


def _passages(model: TextEmbedding, texts: Sequence[str], dimension: int, name: str) -> Rows:
    try:
        vectors = list(model.passage_embed(list(texts), batch_size=len(texts)))
    except INFERENCE_ERRORS as error:
        raise _failed(name, error) from error
    return as_rows(vectors, len(texts), dimension, name)


def _probe(model: TextEmbedding, sentence: str, name: str) -> Vector:
    """Return the vector of a `sentence`, which also tells the dimension."""
    try:
        vectors = list(model.passage_embed([sentence], batch_size=1))
    except INFERENCE_ERRORS as error:
        raise _failed(name, error) from error
    rows = as_rows(vectors, 1, int(np.size(vectors[0])) if vectors else 0, name)
    return usable(as_vectors(rows, [0])[0], name, _DAMAGED)


def _failed(name: str, error: Exception) -> EmbedderError:
    """Return what to say of a failure; only onnxruntime's messages are sure to hold no text."""
    detail = f": {error}"[:_LONGEST] if isinstance(error, MODEL_ERRORS) else ""
    return EmbedderError(f"{name} failed: {type(error).__name__}{detail}")


def _check_bounds(spec: EmbedSpec) -> None:
    for key, value in (("token_budget", spec.token_budget), ("threads", spec.workers)):
        if value < 1:
            raise SettingsError(f"embed.{key} is {value}, but must be at least 1")
