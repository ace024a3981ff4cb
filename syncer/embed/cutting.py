"""Cuts a text that is too long into pieces that are not.

Where to cut is the library's choice: between paragraphs, else lines, sentences, words, graphemes.
What is promised about the pieces does not depend on it: each is measured here, and one that is
still too long is halved until it is not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from semantic_text_splitter import TextSplitter

from syncer.model import Piece

Measure = Callable[[Sequence[str]], list[int]]
"""Returns how much of a chunk each text would fill by itself, prefix and special tokens counted."""

# The library would ask for a measure some eight times per chunk, each time of all the chunk, and
# look over the whole rest of the text before (43 s for 200,000 Chinese characters). So the number
# of characters that fit is found first, and the library cuts by characters, shown little more.
_SHOWN = 2  # times what fits
_FIRST_GUESS = 4  # characters by unit
_NEARLY = 32  # a chunk is full when less than this part of it is left
_PROPORTIONAL = 4  # tries in proportion, before halving

_ZERO_WIDTH_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class _Span:
    """Where a piece lies in its text, and how much it measures."""

    start: int
    end: int
    units: int = 0


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts into pieces of at most `size` units, each repeating up to `overlap` of the one before.

    `size` and `overlap` are in the units of `measure`. `fixed` is what an empty text measures: the
    prefix and the special tokens. Two threads may use one cutter if they may use its `measure`.
    """

    measure: Measure
    size: int
    overlap: int
    fixed: int

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """Return the pieces of `text` in order, none blank, with what each measures.

        They end and start further on, each than the one before. Without overlap, nothing but
        white space where a piece begins or ends is missing from them. Only a single character
        that measures more than `size` by itself makes a piece that is too long.
        """
        spans = self._with_ends(text, self._capped(text, self._proposed(text)))
        if self.overlap:
            spans = self._overlapping(text, spans)
        return tuple(Piece(text[span.start : span.end], span.units) for span in spans)

    @property
    def _new(self) -> int:
        """What a piece may measure before it repeats something of the one before it."""
        return self.size - self.overlap

    def _proposed(self, text: str) -> list[_Span]:
        """Return where the library would cut if every chunk held as many characters as fit."""
        spans: list[_Span] = []
        start, guess = 0, _FIRST_GUESS * self._new
        while start < len(text):
            if text[start].isspace():
                start += 1
                continue
            fitting = self._fitting(text, start, guess)
            shown = text[start : start + _SHOWN * fitting]
            first = next(iter(TextSplitter(fitting).chunks(shown)), shown[:fitting])
            end = start + max(1, len(first))
            spans.append(_Span(start, end))
            start, guess = end, fitting
        return spans

    def _fitting(self, text: str, start: int, guess: int) -> int:
        """Return how many characters from `start` fit a chunk and nearly fill it, or all the rest.

        What a text measures grows almost in proportion to its length, so that two or three tries
        are enough. At least one character is returned, even if it does not fit.
        """
        rest = len(text) - start
        room = self._new - self.fixed
        low, high = 0, rest + 1  # `low` characters fit, `high` do not or are not there
        tries = 0
        while high - low > 1:
            guess = min(max(guess, low + 1), high - 1)
            (units,) = self.measure([text[start : start + guess]])
            low, high = (guess, high) if units <= self._new else (low, guess)
            if low == guess and units >= self._new - room // _NEARLY:
                break
            tries += 1
            if tries <= _PROPORTIONAL:
                guess = guess * (room - room // (2 * _NEARLY)) // max(1, units - self.fixed)
            else:
                guess = 2 * guess if high > rest else (low + high) // 2
        return max(low, 1)

    def _capped(self, text: str, spans: Sequence[_Span]) -> list[_Span]:
        """Return `spans` measured, trimmed, none blank, and those too long cut into halves.

        This ends: halves are shorter, and a single character is not halved.
        """
        spans = [_trimmed(text, span) for span in spans]
        spans = [span for span in spans if span.start < span.end]
        measured = self._measured(text, spans)
        capped: list[_Span] = []
        for span in measured:
            if span.units <= self._new or span.end - span.start == 1:
                capped.append(span)
            else:
                capped += self._capped(text, _halves(text, span))
        return capped

    def _measured(self, text: str, spans: Sequence[_Span]) -> list[_Span]:
        units = self.measure([text[span.start : span.end] for span in spans])
        return [replace(span, units=count) for span, count in zip(spans, units, strict=True)]

    def _with_ends(self, text: str, spans: list[_Span]) -> list[_Span]:
        """Return `spans` with the white space at the ends of `text` where it fits: it is no cut."""
        for place, ends in ((0, {"start": 0}), (-1, {"end": len(text)})):
            for span in spans[place:][:1]:
                wider = replace(span, **ends)
                if (wider.start, wider.end) != (span.start, span.end):
                    (wider,) = self._measured(text, [wider])
                    spans[place] = wider if wider.units <= self._new else span
        return spans

    def _overlapping(self, text: str, spans: Sequence[_Span]) -> list[_Span]:
        """Return `spans` beginning earlier, at a word if there is one, else at a character."""
        overlapping = list(spans[:1])
        for span in spans[1:]:
            places = range(overlapping[-1].start + 1, span.start)
            words = [place for place in places if _begins_word(text, place)]
            wider = self._widest(text, span, words)
            if wider == span:
                characters = [place for place in places if _begins_character(text, place)]
                wider = self._widest(text, span, characters)
            overlapping.append(wider)
        return overlapping

    def _widest(self, text: str, span: _Span, places: Sequence[int]) -> _Span:
        """Return `span` from the first of `places` from which it fits, if there is one."""
        low, high = 0, len(places)
        while low < high:
            middle = (low + high) // 2
            (repeated,) = self.measure([text[places[middle] : span.start]])
            if repeated - self.fixed <= self.overlap:
                high = middle
            else:
                low = middle + 1
        for start in places[low:]:  # the first fits, unless tokens do not add up
            (units,) = self.measure([text[start : span.end]])
            if units <= self.size:
                return _Span(start, span.end, units)
        return span


def _trimmed(text: str, span: _Span) -> _Span:
    """Return `span` without white space at its ends, as Python sees it; the library sees less."""
    part = text[span.start : span.end]
    start = span.start + len(part) - len(part.lstrip())
    return _Span(start, max(start, span.start + len(part.rstrip())))


def _halves(text: str, span: _Span) -> list[_Span]:
    """Return `span` in parts, none longer than half of it in characters."""
    part = text[span.start : span.end]
    found = TextSplitter(len(part) // 2).chunk_indices(part)
    return [_Span(span.start + at, span.start + at + len(half)) for at, half in found]


def _begins_word(text: str, place: int) -> bool:
    """Say whether a word begins there; where words have no spaces between them, every character."""
    return _begins_character(text, place) and (
        text[place - 1].isspace() or unicodedata.east_asian_width(text[place]) in "WF"
    )


def _begins_character(text: str, place: int) -> bool:
    """Say whether something visible begins there that does not belong to what stands before."""
    return not (
        text[place].isspace()
        or text[place] == _ZERO_WIDTH_JOINER
        or text[place - 1] == _ZERO_WIDTH_JOINER
        or unicodedata.category(text[place]).startswith("M")
    )
