"""The words that BM25 leaves out, by language, and what languages there are."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from syncer.embed import terms
from syncer.errors import SettingsError

NO_LANGUAGE = "none"

# What fastembed has a stemmer for; a test compares the two.
LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil",
    "turkish",
)  # fmt: skip

# The package's English list is 1,300 words long and holds "computer", "number" and "test": with
# it, recall@5 over the standard library's docstrings was 0.49, without any list 0.52, and with
# these, the words that have only a grammatical role, 0.52 too, at the best MRR of the three.
_ENGLISH = """
a about above after again against all am among an and any are as at be because been before being
below between both but by can could did do does doing during each either else ever for from had
has have having he her here hers herself him himself his how i if in into is it its itself just
may me might mine more most must my myself neither no nor not now of off on once only or other our
ours ourselves out over own shall she should since so some such than that the their theirs them
themselves then there these they this those though through to too under until up upon us very was
we were what when where whether which while who whom whose why will with within without would yet
you your yours yourself yourselves
aren couldn didn doesn hadn hasn isn ll mustn needn s shouldn t ve wasn weren wouldn
"""
_ENGLISH_LIST = "syncer/english"
_PACKAGE = "stop-words"
# The package has no Tamil; its Greek is the ancient language, its Turkish was read in the wrong
# encoding. No list costs next to nothing: what stands in every text weighs little anyway.
_WITHOUT_LIST = frozenset({NO_LANGUAGE, "greek", "tamil", "turkish"})

_CUT_LANGUAGES = frozenset(
    {"burmese", "chinese", "japanese", "khmer", "korean", "lao", "mandarin", "cantonese", "thai"}
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class StopWords:
    """A list's name, and its words as they are compared with a text's."""

    name: str
    words: frozenset[str]

    @property
    def sha256(self) -> str:
        """The SHA-256 of the sorted words, one per line."""
        return hashlib.sha256("\n".join(sorted(self.words)).encode()).hexdigest()


def check_language(language: str) -> None:
    """Raise SettingsError, with the closest match, for a language that BM25 has no stemmer for."""
    known = (*LANGUAGES, NO_LANGUAGE)
    if language not in known:
        raise SettingsError(
            f"sparse.language is {language!r}, but must be one of: {', '.join(known)}",
            hint=_suggestion(language.strip().lower(), known),
        )


def load(language: str) -> StopWords:
    """Return the stop words of a language that `check_language` accepts."""
    if language in _WITHOUT_LIST:
        return StopWords("none", frozenset())
    if language == "english":
        return StopWords(_ENGLISH_LIST, _comparable(_ENGLISH.split()))
    import stop_words  # noqa: PLC0415 - only where it is needed

    return StopWords(f"{_PACKAGE}/{language}", _comparable(stop_words.get_stop_words(language)))


def _comparable(words: Iterable[str]) -> frozenset[str]:
    """Return `words` as a text's words look when they are compared with them.

    An entry of several words is left out, since its words may mean more elsewhere. What is cut
    into characters is never a stop word: its characters make other words, too.
    """
    split = [_WORD.findall(terms.separate(word)) for word in words]
    single = (parts[0] for parts in split if len(parts) == 1)
    return frozenset(word for word in single if not terms.is_unspaced(word))


def _suggestion(language: str, known: tuple[str, ...]) -> str:
    if language in _CUT_LANGUAGES:
        return (
            "Text in this language is cut into characters and pairs whatever the language is"
            f" set to: use {NO_LANGUAGE!r}, or the language of the other texts."
        )
    begun = [name for name in known if language and name.startswith(language)]
    close = begun or difflib.get_close_matches(language, known, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Use {NO_LANGUAGE!r} for any other language: no stemmer and no stop words."
