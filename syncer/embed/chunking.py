"""Chunkers: texts that fit stay as they are, the others become pieces that fit the model."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from syncer.embed.cutting import Cutter, Measure
from syncer.embed.tokens import TokenCounter
from syncer.errors import SettingsError
from syncer.keys import canonical_json
from syncer.model import Piece
from syncer.text import digest, is_blank

CHUNKER = "semantic-1"  # part of the recipe; to be raised when texts are cut otherwise

# Texts are measured at most so many characters at a time: a character can be a token, and an
# encoding takes some 100 bytes per token.
_GROUP = 2**18
# A text this many times longer in characters than a chunk is in units is judged by its beginning,
# so that no encoding is as large as a text can be. English has 4 to 5 characters per token.
_BEGINNING = 32

# Characters that take many tokens or bytes: syllables that tokenizers take apart, a ligature of
# 18 letters, one outside the basic plane. Each must fit in a chunk by itself.
_EXPENSIVE = ("\uac01", "\ufdfa", "\u1f82", "\u9f98", "\U0001f9ff", "\U0010ffff")

_CANARY = (
    "The harbour master wrote: three boats are late, none is lost. Nobody had asked him!\n"
    "He kept a list of names (Ines, Òscar, Zoë) and added https://harbour.example/list?id=42.\n\n"
    "港口的负责人写道:三艘船晚点,没有一艘失踪。没有人问过他。他保存着一份名单。\n"
    "港の責任者は、三隻の船が遅れていると書いた。배 세 척이 늦었다. เรือสามลำมาสาย\r\n\r\n\r\n"
    "Q2h1bmtzIGFyZSBjdXQgd2hlcmUgYSByZWFkZXIgd291bGQgcGF1c2UsIGlmIHRoZXkgY2FuIGJlLg0KDQo0Mg\n"
    "\t- 👩\u200d👩\u200d👧\u200d👦 and e\u0301 stay whole;\n\t- so does 3.14\n   \n"
    "Последняя строка без точки"
)
_CANARY_UNITS = 24  # what a chunk of the canary holds: it is cut for any size in the settings
_CANARY_OVERLAP = 8

_WORD = re.compile(rb"[0-9a-z\x80-\xff]+")  # what the hash provider takes for a word
_UNSEEN_TOKENS = 3  # that a tokenizer adds by itself: a beginning, an end, a leading blank


@dataclass(frozen=True, slots=True)
class ChunkSpec:
    """What the settings say about chunks.

    `size` is the most tokens of one, prefix and special tokens counted; None is the model's limit.
    `overlap` is how many tokens of a chunk the next one may repeat.
    """

    size: int | None = None
    overlap: int = 0


class Unit(StrEnum):
    """What chunks are measured in where there is no tokenizer."""

    WORDS = "words"  # of the hash provider
    BYTES = "bytes"  # of UTF-8: no text has more tokens than that


class Chunker:
    """Cuts texts by a measure; the pieces of a text depend on nothing but the text and the recipe.

    `recipe` holds what decides how texts are cut, its names beginning with ``chunk``. Several
    threads may use one chunker.
    """

    def __init__(self, measure: Measure, unit: str, spec: ChunkSpec, limit: int) -> None:
        self._measure = measure
        fixed, *characters = measure(("", *_EXPENSIVE))
        least = max(fixed + 1, *characters)
        size = _checked_size(spec.size, fixed, least, limit)
        _check_overlap(spec.overlap, size - least)
        self._cutter = Cutter(self._measure_groups, size, spec.overlap, fixed)
        self.recipe: Mapping[str, object] = {
            "chunker": CHUNKER,
            "chunk_unit": unit,
            "chunk_size": size if size < sys.maxsize else None,
            "chunk_overlap": spec.overlap,
            "chunk_canary": self._canary(least),
        }

    def split(self, texts: Sequence[str]) -> list[tuple[Piece, ...]]:
        """Return the pieces of each text, in order; a blank text has none.

        A text that fits is one piece, unchanged. No piece is blank, and none measures more than
        the size that was set. Without overlap, the pieces hold all of the text but white space
        at the cuts.
        """
        beginning = _BEGINNING * self._cutter.size
        counts = self._measure_groups([text[:beginning] for text in texts])
        unsure = [
            index
            for index, text in enumerate(texts)
            if len(text) > beginning and counts[index] <= self._cutter.size
        ]
        for index, count in zip(
            unsure, self._measure_groups([texts[index] for index in unsure]), strict=True
        ):
            counts[index] = count
        return [self._pieces(text, count) for text, count in zip(texts, counts, strict=True)]

    def _pieces(self, text: str, count: int) -> tuple[Piece, ...]:
        if is_blank(text):
            return ()
        return (Piece(text, count),) if count <= self._cutter.size else self._cutter.pieces(text)

    def _measure_groups(self, texts: Sequence[str]) -> list[int]:
        return [count for group in _groups(texts) for count in self._measure(group)]

    def _canary(self, least: int) -> str:
        """Return a digest of how a fixed text is cut: a library that cuts otherwise is noticed."""
        fixed = self._cutter.fixed
        size = min(self._cutter.size, max(fixed + _CANARY_UNITS, least))
        overlap = min(self._cutter.overlap, _CANARY_OVERLAP, size - least)
        cutter = Cutter(self._measure, size, overlap, fixed)
        return digest(canonical_json([piece.text for piece in cutter.pieces(_CANARY)]))


class TokenChunker(Chunker):
    """Cuts texts by the tokens that the model will see, `prefix` and special tokens counted.

    Raises SettingsError if a chunk would be larger than the model takes or too small for a
    character, or if the overlap does not leave room for one.
    """

    def __init__(self, counter: TokenCounter, spec: ChunkSpec, prefix: str = "") -> None:
        def measure(texts: Sequence[str]) -> list[int]:
            return counter.count([prefix + text for text in texts])

        super().__init__(measure, "tokens", spec, counter.limit)


class WordChunker(Chunker):
    """Cuts texts for embedders without a tokenizer: by the hash provider's words, or by bytes.

    A chunk in bytes is sure to have no more tokens than its size, but may have far fewer; the
    bytes stand in for the tokens of its pieces. Without a `limit`, only `spec` limits a chunk.
    Raises SettingsError as TokenChunker does.
    """

    def __init__(
        self, spec: ChunkSpec, limit: int | None = None, prefix: str = "", unit: Unit = Unit.WORDS
    ) -> None:
        count: Callable[[str], int] = _words if unit is Unit.WORDS else _bytes

        def measure(texts: Sequence[str]) -> list[int]:
            return [count(prefix + text) for text in texts]

        super().__init__(measure, unit.value, spec, sys.maxsize if limit is None else limit)


def _words(text: str) -> int:
    return len(_WORD.findall(text.encode("utf-8", "surrogatepass").lower()))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + _UNSEEN_TOKENS


def _groups(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield consecutive groups of `texts` that hold `_GROUP` characters or a single text."""
    start, characters = 0, 0
    for index, text in enumerate(texts):
        if start < index and characters + len(text) > _GROUP:
            yield texts[start:index]
            start, characters = index, 0
        characters += len(text)
    if texts:
        yield texts[start:]


def _checked_size(size: int | None, fixed: int, least: int, limit: int) -> int:
    """Return the size of a chunk; raises if it is none, or if no chunk could be made."""
    if least > limit:
        raise SettingsError(
            f"embed.passage_prefix and special tokens take {fixed} of the {limit} tokens that the"
            " embedder takes, which leaves no room for text",
            hint="Shorten embed.passage_prefix, or choose a model that takes more.",
        )
    if size is None:
        return limit
    if size < least or size > limit:
        bound = f"from {least} to {limit}" if limit < sys.maxsize else f"at least {least}"
        raise SettingsError(
            f"embed.chunk_tokens is {size}, but must be {bound} for this embedder",
            hint=f"Prefix and special tokens take {fixed} of a chunk's tokens.",
        )
    return size


def _check_overlap(overlap: int, most: int) -> None:
    if not 0 <= overlap <= most:
        raise SettingsError(
            f"embed.chunk_overlap is {overlap}, but must be from 0 to {most}",
            hint="A chunk must hold prefix, special tokens, the overlap and something new.",
        )
