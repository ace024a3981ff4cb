"""One line for each thing that is wrong with the settings, without any secret in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from pydantic import SecretStr

from syncer.settings.sections import FIELDS, SECTIONS

PREFIX = "SYNCER_"
REDACTED = "***"
MAX_SHOWN = 80  # characters of a value; a line should stay one

_SECRET = re.compile(r"api_?key", re.IGNORECASE)
_ADDRESSES = frozenset({"target.url", "source.database"})


def line(subject: str, what: str, origin: str | None = None) -> str:
    """Return a problem as one line: what it is about, where that was given, what is wrong."""
    text = f"{subject} ({origin}): {what}" if origin else f"{subject}: {what}"
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def shown(key: str, value: object) -> str:
    """Return `value` as it may be shown: secrets redacted first, then cut to a line's length."""
    if isinstance(value, SecretStr) or _SECRET.search(key):
        return REDACTED
    text = json.dumps(_showable(key, value), ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def unknown_key(key: str, origin: str) -> str:
    """Return the line for a key that is none; never its value, which may be a secret."""
    section, _, name = key.partition(".")
    known = f"there are the sections {', '.join(SECTIONS)}"
    if section in SECTIONS:
        known = f"there is {section}.{{{', '.join(SECTIONS[section].model_fields)}}}"
    near = _nearest(key, FIELDS if name else SECTIONS)
    return line(key, _unknown(near, known), origin)


def unknown_variable(variable: str, reserved: Iterable[str]) -> str:
    """Return the line for a ``SYNCER_…`` variable that is none; never its value."""
    key = variable.removeprefix(PREFIX).lower().replace("__", ".")
    section = key.partition(".")[0]
    known = [variable_name(f"{part}.…") for part in SECTIONS]
    if section in SECTIONS:
        known = [variable_name(f"{section}.{other}") for other in SECTIONS[section].model_fields]
    near = get_close_matches(variable.upper(), reserved, n=1, cutoff=0.8)
    near = near or [variable_name(found) for found in _nearest(key, FIELDS)]
    return line(f"variable {variable}", _unknown(near, f"there is {', '.join(known)}"))


def unknown_entry(name: str, others: Iterable[str]) -> str:
    """Return what is wrong with a setting of an entry that is none."""
    there = tuple(others)
    return _unknown(get_close_matches(name, there, n=1), f"there is {', '.join(there)}")


def variable_name(key: str) -> str:
    """Return the variable of a setting: ``SYNCER_TARGET__URL`` for ``target.url``."""
    return PREFIX + key.replace(".", "__").upper()


def _nearest(key: str, others: Iterable[str]) -> list[str]:
    """Return the likeliest key: by name in the same section, in any, or the closest of `others`."""
    section, _, name = key.partition(".")
    if section in SECTIONS:
        near = get_close_matches(name, SECTIONS[section].model_fields, n=1)
        return [f"{section}.{found}" for found in near] or _with_name(name)
    return _with_name(name or section) or get_close_matches(key, others, n=1)


def _unknown(near: list[str], known: str) -> str:
    return f"is unknown; did you mean {near[0]}?" if near else f"is unknown; {known}"


def _with_name(name: str) -> list[str]:
    return [key for key in FIELDS if key.partition(".")[2] == name]


def _showable(key: str, value: object) -> object:
    """Return what may be shown of `value`: no table's content, no user or query of an address."""
    if isinstance(value, (list, tuple)):
        return [_showable(key, item) for item in value]
    if isinstance(value, dict):
        return "(a table)"
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not (key in _ADDRESSES or "://" in value):
        return value
    # Greedy up to the last @: a password may itself contain "/", "?" or "@".
    no_user = re.sub(r"^(\w+://)?.*@", rf"\g<1>{REDACTED}@", value, flags=re.DOTALL)
    return re.sub(r"[?#].*", f"?{REDACTED}", no_user, flags=re.DOTALL)
