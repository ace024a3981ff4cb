"""Sparse vectors: BM25 over words, and over characters where a script writes no blanks."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from syncer.embed import stopwords, terms
from syncer.embed.spec import SparseSpec
from syncer.errors import EmbedderError, RecipeError, SettingsError, SyncerError
from syncer.keys import canonical_json
from syncer.model import SparseVector

if TYPE_CHECKING:
    from fastembed.sparse.bm25 import Bm25
    from fastembed.sparse.sparse_embedding_base import SparseEmbedding

NAME = "bm25"
TOKEN_MAX_LENGTH = 64  # characters; longer ones are left out. A SHA-256 in hex still fits.
MAX_K = 100.0  # at 10 already, a term's weight grows nearly in step with its count
LENGTHS = (1.0, 1e9)  # terms; a text that counts at all has one, and SQLite's texts end at 2 GB

# Something of every script and stemmer, so that whatever a library changes shows in the ids.
CANARY = (
    "The seven boats were carrying letters_2 across the bays: Python协程 第3章 データベースを検索 "
    "데이터베이스를 ที่นี่ Erinnerungen größere mémoires canciones воспоминаниями θάλασσες "
    "الذكريات நினைவுகள் görüşmeler"
)
_CANARY_LENGTH = 32.0
_DECIMALS = 5  # of the canary's weights
_LENGTH_DECIMALS = 3  # of avg_len: any JSON parser reads so short a number back as it was
_HERE = str(Path(__file__).parent)  # any folder that exists: fastembed then fetches nothing
_UNMEASURED = 1.0  # stands for avg_len in a model that only queries use


class SparseEncoder:
    """Makes BM25's sparse vectors for passages and queries.

    A passage's weights are BM25's term frequencies, saturated and set against the text's length;
    a query has weight 1 for each of its terms. Qdrant multiplies by the inverse document frequency
    (the vector's modifier), and the dot product is then the BM25 score.

    Works in this thread, starts no other and no process, and reaches for no network. Raises
    SettingsError for an unknown language and for numbers out of bounds.
    """

    recipe: Mapping[str, object]
    """All that decides a vector, as JSON has it."""

    def __init__(self, spec: SparseSpec) -> None:
        stopwords.check_language(spec.language)
        _check_numbers(spec)
        if spec.avg_len is not None:
            spec = replace(spec, avg_len=round(float(spec.avg_len), _LENGTH_DECIMALS))
        self._spec = spec
        words = stopwords.load(spec.language)
        self._model = _load(spec, words)
        self.recipe = {
            "model": NAME,
            "language": spec.language,
            "stemmer": _stemmer_name(spec.language),
            "stopwords": {"list": words.name, "sha256": words.sha256},
            "k": float(spec.k),
            "b": float(spec.b),
            "avg_len": spec.avg_len,
            "token_max_length": TOKEN_MAX_LENGTH,
            "terms": terms.VERSION,
            **self._canary(),
        }

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, object]) -> SparseEncoder:
        """Return the encoder that a generation's metadata describes.

        Raises RecipeError, both sides shown, if today's libraries would make other vectors.
        """
        encoder = cls._as_described(recipe)
        if differences := _differences(recipe, encoder.recipe):
            raise RecipeError(
                "the generation's sparse vectors were made in another way than this installation"
                f" makes them: {'; '.join(differences)}",
                hint="Install the versions that it was made with, or run `syncer "
                "rebuild`: it makes a new generation by what is here.",
            )
        return encoder

    @classmethod
    def _as_described(cls, recipe: Mapping[str, object]) -> SparseEncoder:
        language, length = recipe.get("language"), recipe.get("avg_len")
        try:
            return cls(
                SparseSpec(
                    language=language if isinstance(language, str) else repr(language),
                    k=_number(recipe, "k"),
                    b=_number(recipe, "b"),
                    avg_len=None if length is None else _number(recipe, "avg_len"),
                )
            )
        except SettingsError as error:
            raise RecipeError(
                f"the generation's sparse recipe cannot be used: {error.message}",
                hint="`syncer rebuild` makes its vectors anew.",
            ) from error

    def passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return a vector for each of `texts`, in their order; no indices where no term counts.

        Raises EmbedderError if the library returns something else than that, and SyncerError if
        `avg_len` has not been measured.
        """
        if self._spec.avg_len is None:
            raise SyncerError("sparse vectors of passages need the texts' average length first")
        return _checked(self._model.embed([*map(terms.separate, texts)]), len(texts))

    def query(self, text: str) -> SparseVector:
        """Return the vector to search with for `text`: weight 1 for each of its terms."""
        return _checked(self._model.query_embed([terms.separate(text)]), 1)[0]

    def length(self, text: str) -> int:
        """Return how many terms of `text` count, repetitions included, stop words left out."""
        model = copy.copy(self._model)
        counting = _Counting(model.stemmer)
        model.stemmer = counting
        for _ in model.embed([terms.separate(text)]):
            pass
        return counting.count

    def with_length(self, avg_len: float) -> SparseEncoder:
        """Return an encoder that differs in `avg_len`: the mean `length` where it is not 0."""
        other = copy.copy(self)  # loading another model takes half a second
        other._set_length(avg_len)  # noqa: SLF001 - it is one of this class
        return other

    def _set_length(self, avg_len: float) -> None:
        length = round(float(avg_len), _LENGTH_DECIMALS)
        self._spec = replace(self._spec, avg_len=length)
        _check_numbers(self._spec)
        self._model = copy.copy(self._model)
        self._model.avg_len = length
        self.recipe = {**self.recipe, "avg_len": length}

    def _canary(self) -> dict[str, object]:
        """Return the ids that a fixed sentence's terms have today, and their weights."""
        model = copy.copy(self._model)
        model.avg_len = _CANARY_LENGTH
        (vector,) = _checked(model.embed([terms.separate(CANARY)]), 1)
        return {
            "canary": list(vector.indices),
            "canary_weights": [round(value, _DECIMALS) for value in vector.values],
        }


class _Stemmer(Protocol):
    def stem_word(self, word: str) -> str: ...


class _WordStemmer:
    """Stems words with their marks in place, and nothing that was cut into characters."""

    def __init__(self, stemmer: _Stemmer) -> None:
        self._stemmer = stemmer

    def stem_word(self, word: str) -> str:
        if terms.is_unspaced(word):
            return word
        return self._stemmer.stem_word(terms.spelled(word))


class _Counting:
    """Counts the terms that come out of a stemmer."""

    def __init__(self, stemmer: _Stemmer | None) -> None:
        self._stemmer = stemmer
        self.count = 0

    def stem_word(self, word: str) -> str:
        stem = word if self._stemmer is None else self._stemmer.stem_word(word)
        self.count += bool(stem)
        return stem


def _load(spec: SparseSpec, words: stopwords.StopWords) -> Bm25:
    # onnxruntime, which comes along, looks at this when it is imported; see loading.py.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    from fastembed.sparse.bm25 import Bm25  # noqa: PLC0415 - takes a second to import

    model = Bm25(
        "Qdrant/bm25",
        cache_dir=_HERE,  # fastembed creates its cache even when it needs none
        specific_model_path=_HERE,
        language=spec.language,
        disable_stemmer=spec.language == stopwords.NO_LANGUAGE,
        stopwords=set(words.words),
        k=float(spec.k),
        b=float(spec.b),
        avg_len=_UNMEASURED if spec.avg_len is None else spec.avg_len,
        token_max_length=TOKEN_MAX_LENGTH,
    )
    if model.stemmer is not None:
        model.stemmer = _WordStemmer(model.stemmer)
    return model


def _stemmer_name(language: str) -> str:
    return language if language == stopwords.NO_LANGUAGE else f"snowball/{language}"


def _checked(vectors: Iterable[SparseEmbedding], count: int) -> list[SparseVector]:
    """Return fastembed's vectors with ascending indices.

    Raises EmbedderError if there are more or fewer than `count`, or one cannot be stored.
    """
    found = [_ascending(vector) for vector in vectors]
    if len(found) != count:
        raise EmbedderError(f"{NAME} returned {len(found)} vectors for {count} texts")
    return found


def _ascending(vector: SparseEmbedding) -> SparseVector:
    indices, values = vector.indices.tolist(), vector.values.tolist()
    if len(indices) != len(values) or len(set(indices)) != len(indices):
        raise EmbedderError(f"{NAME} returned a vector whose indices are not one for each weight")
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise EmbedderError(f"{NAME} returned a weight that is not a number above 0")
    order = sorted(range(len(indices)), key=indices.__getitem__)
    return SparseVector(
        tuple(int(indices[place]) for place in order),
        tuple(float(values[place]) for place in order),
    )


def _check_numbers(spec: SparseSpec) -> None:
    _check_bounds("sparse.k", spec.k, 0.0, MAX_K)
    _check_bounds("sparse.b", spec.b, 0.0, 1.0)
    if spec.avg_len is not None:
        _check_bounds("sparse.avg_len", spec.avg_len, *LENGTHS)


def _check_bounds(name: str, value: float, lowest: float, highest: float) -> None:
    if not lowest <= value <= highest:  # NaN is never within
        raise SettingsError(f"{name} is {value}, but must be from {lowest:g} to {highest:g}")


def _number(recipe: Mapping[str, object], name: str) -> float:
    value = recipe.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SettingsError(f"{name} is {value!r}, which is not a number")
    return float(value)


def _differences(theirs: Mapping[str, object], ours: Mapping[str, object]) -> list[str]:
    """Return what differs between a generation's recipe and this installation's, both sides."""
    here = json.loads(canonical_json(ours))
    return [
        f"{name} is {_shown(theirs.get(name), here.get(name))} in the generation and"
        f" {_shown(here.get(name), theirs.get(name))} here"
        for name in sorted(theirs.keys() | here.keys())
        if theirs.get(name) != here.get(name)
    ]


def _shown(side: object, other: object) -> str:
    """Return one side; of two lists only what the other one has not."""
    if isinstance(side, Sequence) and isinstance(other, Sequence) and not isinstance(side, str):
        only = [item for item in side if item not in other]
        return f"{len(side)} long with {canonical_json(only)}"
    return canonical_json(side)
