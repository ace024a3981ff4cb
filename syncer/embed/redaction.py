"""Takes keys and texts out of what an endpoint said, before anything is cut."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from syncer.redaction import HIDDEN, LONGEST, shortened

_READ = 16_384  # characters of an answer that are looked at
_KEY_PIECE = 6  # characters in a row that tell something of a key
_TEXT_PIECE = 12  # ... of a text; shorter pieces of it are plain words
_FOREIGN_PIECE = 4  # ... of a text without letters of ASCII, where a character says more
_MASKED = "***"  # in a key as endpoints show it: its first and last characters
_ESCAPE = re.compile(r"""\\+(?:u([0-9a-fA-F]{4})|([nrt"'/]))""")
_WORD = re.compile(r"\S+")
_BLANKS = re.compile(r"\s+")


def redacted(said: bytes | str, secrets: Iterable[str], texts: Sequence[str]) -> str:
    """Return the words of an answer in one line, at most ``LONGEST`` bytes.

    Nothing is left of `secrets`, nor of `texts`, which endpoints quote, whole or in part.
    """
    words = _plain(_words(said))
    for secret in secrets:
        words = _without(words, [secret], _KEY_PIECE, HIDDEN)
    words = _WORD.sub(lambda word: HIDDEN if _MASKED in word[0] else word[0], words)
    words = _without(words, [text for text in texts if len(text) >= _TEXT_PIECE], _TEXT_PIECE, "…")
    words = _without(words, texts, _FOREIGN_PIECE, "…", lambda piece: not _has_ascii(piece))
    words = _without_short(words, texts)
    words = _BLANKS.sub(" ", words).strip()
    return shortened(words, LONGEST)


def _words(said: bytes | str) -> str:
    """Return the texts in a JSON answer with their names; another answer as it is."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    try:
        return ", ".join(_leaves("", json.loads(text)))[:_READ]
    except (ValueError, RecursionError):
        return html.unescape(text[:_READ])


def _leaves(name: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(str(key), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(name, inner)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def _plain(words: str) -> str:
    """Return `words` without the escapes of JSON or Python, which would hide a text."""

    def character(match: re.Match[str]) -> str:
        code, sign = match.groups()
        return chr(int(code, 16)) if code else {"n": "\n", "r": "\r", "t": "\t"}.get(sign, sign)

    plain = _ESCAPE.sub(character, words)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_short(words: str, texts: Sequence[str]) -> str:
    """Take out whole texts that are too short to have pieces, where they stand as a word."""
    for text in {text.strip() for text in texts}:
        if 0 < len(text) < _TEXT_PIECE:
            words = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "…", words)
    return words


def _without(
    words: str,
    sources: Sequence[str],
    size: int,
    mark: str,
    counts: Callable[[str], bool] = lambda _: True,
) -> str:
    """Replace by `mark` each run of `words` that is made of pieces of `sources`.

    A piece has `size` characters (a shorter source is one) and is one that `counts`.
    """
    hidden = bytearray(len(words))
    for width in {min(size, len(source)) for source in sources if source}:
        pieces: dict[str, list[int]] = {}
        for start in range(len(words) - width + 1):
            piece = words[start : start + width]
            if counts(piece):
                pieces.setdefault(piece, []).append(start)
        for source in sources:
            if min(size, len(source)) == width:
                for start in range(len(source) - width + 1):
                    for place in pieces.pop(source[start : start + width], ()):
                        hidden[place : place + width] = b"\1" * width
    return _marked(words, hidden, mark)


def _marked(words: str, hidden: bytearray, mark: str) -> str:
    """Return `words` with one `mark` for each run of characters that are `hidden`."""
    runs = re.finditer(rb"\x01+|\x00+", hidden)
    return "".join(mark if run[0][0] else words[run.start() : run.end()] for run in runs)


def _has_ascii(piece: str) -> bool:
    return any(character.isascii() for character in piece)
