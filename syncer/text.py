"""Text on its way to the embedder and to the payload: one form, one hash.

Everything is normalised here, once, before it is hashed, embedded or stored, so that hash, vector
and payload always speak of the same characters.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping

from syncer.keys import RawText, canonical_json

NORMALISER = 1  # part of the recipe; raise it when `normalise` changes what it returns

_HASH_CHARACTERS = 16  # 64 bits: one accidental match in 2**64 edits of the same row
_SURROGATES = re.compile("[\ud800-\udfff]")
_DEEPEST = 24  # levels of nesting in metadata; over gRPC each takes up to 3 of the 100 there are
_INT64 = range(-(2**63), 2**63)


def normalise(text: str) -> str:
    """Return `text` in NFC, without NUL and without lone surrogates.

    Pairs of surrogates become the character they mean, unpaired ones U+FFFD; NUL becomes a
    space, since SQLite's own functions take it for the end of the text.
    """
    if text.isascii():  # as it is, NUL apart; most of what goes along as metadata
        return text.replace("\0", " ")
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return unicodedata.normalize("NFC", text.replace("\0", " "))


def as_text(value: object) -> str | None:
    """Return a value of SQLite's as normalised text, or None where it holds no text at all.

    Integers and reals are written out. A blob counts as text if it is UTF-8, else it raises
    ValueError; TEXT that is not UTF-8 is read with U+FFFD for what cannot be decoded.
    """
    if value is None:
        return None
    if isinstance(value, RawText):
        return normalise(value.data.decode("utf-8", "replace"))
    if isinstance(value, bytes):
        return normalise(value.decode("utf-8"))
    return normalise(value if isinstance(value, str) else str(value))


def is_blank(text: str | None) -> bool:
    """Say whether there is nothing in `text` to embed."""
    return text is None or not text.strip()


def digest(text: str) -> str:
    """Return the first 16 hex digits of the SHA-256 of `text` in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARACTERS]


def payload_digest(payload: Mapping[str, object]) -> str:
    """Return the digest of a payload that ``as_json`` has made."""
    return digest(canonical_json(payload))


def parse_json(value: object) -> object:
    """Return the object or array that a JSON column holds, or the value itself if it is none.

    What is nested deeper than 24 levels stays text: Qdrant's own parsers have a limit, too.
    """
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if isinstance(text, str) and text.lstrip()[:1] in ("{", "["):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return value
        return parsed if _is_flat_enough(parsed) else value
    return value


def _is_flat_enough(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        if not level:
            return True
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return not level


def as_json(value: object) -> object:
    """Return `value` as every transport of Qdrant's carries it alike, nested values included.

    Text is normalised; NaN and infinities become None; integers beyond 64 bits become text, never
    a float; a blob becomes text if it is UTF-8, else base64.
    """
    if isinstance(value, str):
        return normalise(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value in _INT64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _composite_as_json(value)


def _composite_as_json(value: object) -> object:
    if isinstance(value, (dict, Mapping)):  # the first is found faster
        return {normalise(str(name)): as_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, RawText):
        return normalise(value.data.decode("utf-8", "replace"))
    if isinstance(value, bytes):
        try:
            return normalise(value.decode("utf-8"))
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    raise TypeError(f"no JSON for {type(value).__name__}")
