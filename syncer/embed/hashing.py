"""The `hash` provider: vectors from word counts, for tests and dry runs; it has no model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import cast
from zlib import crc32

import numpy as np

from syncer.embed import canary
from syncer.embed.checks import Rows
from syncer.embed.spec import EmbedSpec
from syncer.errors import SettingsError
from syncer.model import Embedded, Recipe, Vector

MIN_DIMENSION = 8
MAX_DIMENSION = 65_536  # what Qdrant takes

# Bytes, not characters: what counts as a letter changes with Python's Unicode tables.
_WORD = re.compile(rb"[0-9a-z\x80-\xff]+")
_TEXT_SLOTS = 8


class HashEmbedder:
    """Counts each word of a text in a slot chosen by the word's hash, then scales to length one.

    Texts that share words are near each other, so that a search has something to find. The whole
    text counts in a few slots too: another order or spelling gives another vector, and no vector
    is zero. The same on every machine and Python version.
    """

    def __init__(self, spec: EmbedSpec) -> None:
        dimension = spec.hash_dimension
        if not MIN_DIMENSION <= dimension <= MAX_DIMENSION:
            raise SettingsError(
                f"embed.dimension is {dimension}, but must be from {MIN_DIMENSION} to"
                f" {MAX_DIMENSION}"
            )
        self._dimension = dimension
        self._passage = spec.passage_prefix or ""
        self._query = spec.query_prefix or ""
        self.recipe = Recipe(
            vector=spec.vector_name,
            dimension=dimension,
            dense={
                "provider": "hash",
                "version": 1,
                "passage_prefix": self._passage,
                "query_prefix": self._query,
            },
            text={},
            canary=canary.rounded(self._rows([self._passage + canary.SENTENCE])[0]),
        )

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Return a vector for each of `texts`, in their order."""
        del counts
        rows = self._rows([self._passage + text for text in texts])
        return Embedded([cast("Vector", row) for row in rows])

    def query(self, text: str) -> Vector:
        """Return the vector to search with for `text`."""
        return cast("Vector", self._rows([self._query + text])[0])

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _rows(self, texts: Sequence[str]) -> Rows:
        rows = np.empty((len(texts), self._dimension), np.float32)
        for index, text in enumerate(texts):
            data = text.encode("utf-8", "surrogatepass")
            words = _WORD.findall(data.lower())
            counts = np.bincount(list(self._slots(data, words)), minlength=self._dimension)
            # Whole numbers up to the square root: no rounding that a machine could do otherwise.
            rows[index] = counts / np.sqrt(np.float64(np.dot(counts, counts)))
        return rows

    def _slots(self, data: bytes, words: Sequence[bytes]) -> Iterator[int]:
        digest = blake2b(data, digest_size=4 * _TEXT_SLOTS).digest()
        for start in range(0, len(digest), 4):
            yield int.from_bytes(digest[start : start + 4], "big") % self._dimension
        for word in words:
            yield crc32(word) % self._dimension
