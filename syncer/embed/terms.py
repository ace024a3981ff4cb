"""Prepares a text for BM25: one spelling of every character, and terms where no blanks are written.

BM25's tokenizer splits at blanks and punctuation. Chinese, Japanese, Thai, Lao, Khmer and Burmese
write no blanks, and Korean glues particles to its words, so that a whole sentence would be one
term. Their runs become single characters and pairs of neighbours instead. Only a run itself
changes: in "Python协程" and "第3章" the Latin word and the number stay whole.

Documents and queries go through the same function; nothing here depends on the language.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

VERSION = 1  # part of the recipe; raise it when `separate` changes what it returns

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff"
_RARE_HAN = "\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_RARE_KANA = "\U0001aff0-\U0001afff\U0001b000-\U0001b16f"
_BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
_HANGUL = "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff"
_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_LAO = "\u0e81-\u0ece\u0edc-\u0edf"
_KHMER = "\u1780-\u17d3\u17d7\u17dc\u17dd"
_MYANMAR = "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
_UNSPACED = (
    _HAN + _RARE_HAN + _KANA + _RARE_KANA + _BOPOMOFO + _HANGUL + _THAI + _LAO + _KHMER + _MYANMAR
)
_MARKS_OF_ALL = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f\ufe20-\ufe2f"
_RUN = re.compile(f"[{_UNSPACED}][{_UNSPACED}{_MARKS_OF_ALL}]*")
_TRADE_MARKS = "\u2120\u2122"  # NFKC would glue them to the name as the letters SM and TM
_IGNORED = (
    "\u00ad\u034f\u200d\u2060\ufeff"  # soft hyphen, joiners: how a word is set, not which it is
    "\u180b\u180c\u180d\u180f"  # and the selectors of a character's shape
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
_BEFORE = dict.fromkeys(map(ord, _IGNORED)) | dict.fromkeys(map(ord, _TRADE_MARKS), " ")

# The tokenizer takes combining marks for punctuation and would tear words apart at them. Each is
# carried as a rare ideograph, which it takes for a letter; ids are hashes, so any letter will do.
_CARRIER = 0x20000
_CARRIED = range(0xA6E0)  # as many ideographs as that block has


class _Carriers(dict[int, "int | None"]):
    """Carriers of combining marks; what encloses another character is left out."""

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        carried = category in {"Mn", "Mc"} and code in _CARRIED
        self[code] = None if category == "Me" else code + _CARRIER * carried
        return self[code]


_CARRIERS = _Carriers()


def separate(text: str) -> str:
    """Return `text` as BM25's tokenizer shall read it: lower case, terms apart.

    The text comes out in NFKC, so that composed, decomposed and full-width forms are the same.
    Takes time in proportion to the text, however long a run is.
    """
    text = unicodedata.normalize("NFKC", text.translate(_BEFORE)).lower()
    text = text.replace("i\u0307", "i")  # what Python makes of the Turkish capital
    return _RUN.sub(_cut, text).translate(_CARRIERS)


def is_unspaced(term: str) -> bool:
    """Say whether `term` was cut from a run of a script without blanks."""
    return _RUN.match(term) is not None


def spelled(term: str) -> str:
    """Return `term` with its combining marks as such again, as a stemmer knows them."""
    if term.isascii():
        return term
    return "".join(map(_mark_of, term))


def _mark_of(character: str) -> str:
    code = ord(character) - _CARRIER
    if code in _CARRIED and unicodedata.category(chr(code)) in {"Mn", "Mc"}:
        return chr(code)
    return character


def _cut(run: re.Match[str]) -> str:
    """Return a run's characters and pairs of neighbours, apart from each other and the rest."""
    characters = _characters(run[0])
    pairs = (first + second for first, second in pairwise(characters))
    return f" {' '.join(characters)} {' '.join(pairs)} "


def _characters(run: str) -> list[str]:
    """Return the characters of `run`, each with the marks that stand on it, in one order.

    Marks are sorted because keyboards let them be typed in any order, and not every script has a
    canonical one.
    """
    if run.isalnum():  # no marks, as nearly always in Chinese, Japanese and Korean
        return list(run)
    found: list[list[str]] = []
    for character in run:
        if found and unicodedata.category(character).startswith("M"):
            found[-1].append(character)
        else:
            found.append([character])
    return ["".join([base, *sorted(marks)]) for base, *marks in found]
