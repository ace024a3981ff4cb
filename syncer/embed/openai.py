"""The `openai` provider: an endpoint that speaks OpenAI's protocol for embeddings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Self

import numpy as np

from syncer.embed import canary
from syncer.embed.checks import Rows, as_vectors, usable
from syncer.embed.http_batches import Batch, Bounds, halved
from syncer.embed.http_endpoint import Endpoint, Sleep
from syncer.embed.http_faults import TextsRefusedError
from syncer.embed.http_spec import HttpSpec
from syncer.embed.packing import distinct
from syncer.errors import EmbedderError
from syncer.model import Embedded, Recipe, Vector

__all__ = ["HttpEmbedder", "HttpSpec"]


class HttpEmbedder:
    """Embeds through an endpoint, in batches, several requests at once.

    A batch that is refused is halved until the refused text stands alone; the rest is embedded.
    """

    def __init__(self, spec: HttpSpec, recipe: Recipe, endpoint: Endpoint) -> None:
        self.recipe = recipe
        self._spec = spec
        self._endpoint = endpoint
        self._bounds = Bounds(spec.batch_items, spec.batch_bytes)
        self._pool = ThreadPoolExecutor(spec.concurrency, thread_name_prefix="embed")

    @classmethod
    def load(cls, spec: HttpSpec, *, sleep: Sleep = time.sleep) -> Self:
        """Return an embedder for the endpoint of `spec`, with the dimension that it gives.

        One request tells the dimension and the canary's vector. `sleep` waits for so many seconds
        before a request is tried again. Raises SettingsError before any request for an address,
        key or bound that cannot be, EmbedderUnavailableError if the endpoint does not answer, and
        EmbedderError if it refuses to, or gives no usable vector.
        """
        spec.check()
        endpoint = Endpoint(spec, sleep)
        try:
            recipe = _recipe(spec, _canary_vector(spec, endpoint))
        except EmbedderError:
            endpoint.close()
            raise
        return cls(spec, recipe, endpoint)

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Return a vector for each of `texts`, in their order; repeated texts are sent once.

        A vector that is not finite or has no direction comes back empty; so does that of a text
        that the endpoint refuses, with the reason under its index in ``refused``. Raises
        EmbedderUnavailableError if the endpoint does not answer within the budget for trying
        again, and EmbedderError if it answers to nothing, not even the canary's sentence.
        """
        del counts  # the endpoint counts for itself
        if not texts:
            return Embedded(())
        unique = distinct(texts)
        work = _Work(unique.texts, self._spec.passage_prefix, self.recipe.dimension)
        list(self._pool.map(lambda batch: self._start(batch, work), self._bounds.pack(work.sizes)))
        if work.errors:
            raise work.errors[0]
        refused = {
            index: work.refused[place]
            for index, place in enumerate(unique.places)
            if place in work.refused
        }
        return Embedded(as_vectors(work.rows, unique.places), refused=refused)

    def query(self, text: str) -> Vector:
        """Return the vector to search with for `text`; raises EmbedderError if there is none."""
        sentence = self._spec.passage_prefix + canary.SENTENCE
        prefix, dimension = self._spec.query_prefix, self.recipe.dimension
        try:
            rows = self._endpoint.ask([text], dimension, prefix=prefix, probe=sentence)
        except TextsRefusedError as refusal:
            raise EmbedderError(
                f"{self._spec.name} refuses this question: {refusal}",
                hint="Ask in other or fewer words.",
            ) from None
        return _usable(rows, self._spec)

    def close(self) -> None:
        """Wait for the requests under way, then stop the threads and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._endpoint.close()

    def _start(self, batch: Batch, work: _Work) -> None:
        try:
            self._run(batch, work)
        except EmbedderError as error:
            work.errors.append(error)
            work.stop.set()  # the others need not go on: their vectors would not be used

    def _run(self, batch: Batch, work: _Work) -> bool:
        """Embed a batch; say whether all of it was taken."""
        if work.stop.is_set():
            return False
        parts = self._bounds.cut(batch, work.sizes)
        if len(parts) > 1:  # the bounds have become smaller since it was packed
            taken = [self._run(part, work) for part in parts]
            return all(taken)
        try:
            work.rows[list(batch)] = self._endpoint.ask(
                [work.texts[index] for index in batch],
                self.recipe.dimension,
                prefix=self._spec.passage_prefix,
                probe=self._spec.passage_prefix + canary.SENTENCE,
                stop=work.stop,
            )
        except TextsRefusedError as refusal:
            return self._halve(batch, refusal, work)
        self._bounds.took(len(batch))
        return True

    def _halve(self, batch: Batch, refusal: TextsRefusedError, work: _Work) -> bool:
        if len(batch) == 1:
            _canary_vector(self._spec, self._endpoint)  # raises if it is not about the text
            work.refused[batch[0]] = refusal.reason
            return False
        middle = halved(len(batch))
        taken = [self._run(half, work) for half in (batch[:middle], batch[middle:])]
        if all(taken):
            self._bounds.too_much(len(batch), sum(work.sizes[index] for index in batch))
        return all(taken)


@dataclass(slots=True)
class _Work:
    """One call's texts and what has become of them; each thread writes its own rows."""

    texts: Sequence[str]
    prefix: str
    dimension: int
    sizes: list[int] = field(init=False)  # bytes
    rows: Rows = field(init=False)
    refused: dict[int, str] = field(default_factory=dict)
    errors: list[EmbedderError] = field(default_factory=list)
    stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.sizes = [len((self.prefix + text).encode("utf-8", "replace")) for text in self.texts]
        self.rows = np.zeros((len(self.texts), self.dimension), np.float32)


def _canary_vector(spec: HttpSpec, endpoint: Endpoint) -> Vector:
    """Return the canary's vector; raises EmbedderError if the endpoint refuses even that."""
    try:
        rows = endpoint.ask([canary.SENTENCE], None, prefix=spec.passage_prefix)
    except TextsRefusedError as refusal:
        raise EmbedderError(
            f"{spec.name} refuses any text: {refusal}",
            hint="Check embed.url, embed.model and embed.dimension.",
        ) from None
    got = rows.shape[1]
    if spec.dimension not in (None, got):
        raise EmbedderError(
            f"{spec.name} returned a vector of {got} numbers, where embed.dimension asks for"
            f" {spec.dimension}",
            hint="Not every model can do that: leave embed.dimension out.",
        )
    return _usable(rows, spec)


def _usable(rows: Rows, spec: HttpSpec) -> Vector:
    hint = "Check embed.model, and what the server's own log says."
    return usable(as_vectors(rows, [0])[0], spec.name, hint)


def _recipe(spec: HttpSpec, probe: Vector) -> Recipe:
    """Return what decides the vectors; not the address, for an endpoint may move."""
    return Recipe(
        vector=spec.vector_name,
        dimension=len(probe),
        dense={
            "provider": "openai",
            "model": spec.model,
            "dimension": spec.dimension,
            "passage_prefix": spec.passage_prefix,
            "query_prefix": spec.query_prefix,
        },
        text={},
        canary=canary.rounded(probe),
    )
