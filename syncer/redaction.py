"""Takes secrets out of words before anything of them is cut, logged or shown.

It knows secrets by their value, where it is told them, and by where they stand: before the ``@`` of
an address, in a query, behind a header's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

HIDDEN = "**********"
LONGEST = 4096  # bytes of one text in a message or an event

_NAMES = (
    r"(?:[\w-]*api[_-]?key|[\w-]*access[_-]?key|authorization|[\w-]*token|[\w-]*secret|password"
    r"|passwd|pwd|signature|sig|(?:set-)?cookie)"
)
_USER_INFO = re.compile(r"(?<=://)[^\s\"'<>]*@")
_SCHEME = re.compile(r"(?i:\b(bearer|basic))\s+(?=[\w.~+/=-]*[A-Z0-9=])[\w.~+/=-]{6,}")
_SET_APART = r"(?:[\"']?\s*[=:]\s*[\"']?|[\"']\s*,\s*[\"'])"  # name=value, "name": "value", (…, …)
_NAMED = re.compile(
    rf"(\b{_NAMES}\b{_SET_APART}(?:(?:bearer|basic)\s+)?)(?!\*)[^\s\"'&,;)}}\]]+",
    re.IGNORECASE,
)
_KNOWN_SHAPES = re.compile(
    r"\bsk-[\w-]{12,}|\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"  # keys of OpenAI's kind, JSON web tokens
)
_SECRET_FIELD = re.compile(_NAMES, re.IGNORECASE)


def without_secrets(words: str, secrets: Iterable[str] = ()) -> str:
    """Return `words` with everything hidden that is one of `secrets`, or stands where one does."""
    for secret in secrets:
        for written in {secret, quote(secret, safe=""), repr(secret)[1:-1]} - {""}:
            words = words.replace(written, HIDDEN)
    words = _USER_INFO.sub(f"{HIDDEN}@", words)
    words = _NAMED.sub(lambda found: found[1] + HIDDEN, words)
    words = _SCHEME.sub(lambda found: f"{found[1]} {HIDDEN}", words)
    return _KNOWN_SHAPES.sub(HIDDEN, words)


def names_a_secret(field: str) -> bool:
    """Say whether a field of this name holds a secret, whatever its value looks like."""
    return bool(_SECRET_FIELD.fullmatch(field))


def shortened(words: str, most: int = LONGEST) -> str:
    """Return `words`, cut to at most `most` bytes of UTF-8."""
    data = words.encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode()
    return data[: most - 4].decode("utf-8", "ignore") + " …"
