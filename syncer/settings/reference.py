"""What each setting takes, in words: for error lines and for the reference in the docs."""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType
from typing import Annotated, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from syncer.settings.base import CANONICAL_DEFAULTS, CANONICAL_TABLE
from syncer.settings.sections import ENTRIES, SECTIONS

_NOUNS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list of texts",
    Path: "a path",
    SecretStr: "text",
}
_ELSEWHERE = {
    "target.path": "folder `qdrant` beside the database",
    "source.state": "`NAME.syncer.db` beside the database",
}


def requirement(info: FieldInfo) -> str:
    """Return type and bound in words, to follow "must be": "a whole number from 1 to 256"."""
    return f"{kind(info)} {bound(info)}".strip()


def kind(info: FieldInfo) -> str:
    """Return the type in words; the values themselves where they are few."""
    options = types_of(info.annotation)
    literal = [value for value in options if not isinstance(value, type)]
    if literal:
        names = [json.dumps(value) for value in literal]
        return names[0] if len(names) == 1 else "one of " + ", ".join(names)
    if any(get_args(info.annotation)[:1] == (entry,) for entry in ENTRIES.values()):
        return "a list of tables"
    return ", or ".join(_NOUNS[option] for option in options)


def bound(info: FieldInfo) -> str:
    """Return the bounds in words: "from 1 to 256", or nothing."""
    low = [rule.ge for rule in info.metadata if hasattr(rule, "ge")]
    high = [rule.le for rule in info.metadata if hasattr(rule, "le")]
    return f"from {low[0]} to {high[0]}" if low and high else ""


def types_of(annotation: object) -> list[object]:
    """Return the types in an annotation: a union's parts without None, a Literal's values.

    A tuple counts as ``tuple``, whatever is in it.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        return types_of(get_args(annotation)[0])
    if origin is tuple:
        return [tuple]
    if origin is Literal:
        return list(get_args(annotation))
    parts = [part for part in get_args(annotation) if part is not NoneType]
    return [found for part in parts for found in types_of(part)] if parts else [annotation]


def table(section: str) -> str:
    """Return a section's part of the reference as a Markdown table, a row for each setting.

    The entries of a list of tables have one of their own, by the list's name.
    """
    head = ["| name | type | default | bound | meaning |", "|---|---|---|---|---|"]
    model, prefix = SECTIONS.get(section), section
    if model is None:
        model, prefix = ENTRIES[section], f"{section}[]"
    fields = model.model_fields.items()
    return "\n".join(head + [_row(f"{prefix}.{name}", info) for name, info in fields])


def _row(key: str, info: FieldInfo) -> str:
    noun = kind(info).removeprefix("a ")
    return f"| `{key}` | {noun} | {_default(key, info)} | {bound(info)} | {info.description} |"


def _default(key: str, info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if key in _ELSEWHERE:
        return _ELSEWHERE[key]
    section, _, name = key.partition(".")
    if section == "source" and name in CANONICAL_DEFAULTS:
        return f"`{_json(CANONICAL_DEFAULTS[name])}` for `{CANONICAL_TABLE}`, else nothing"
    return "" if info.default is None else f"`{_json(info.default)}`"


def _json(value: object) -> str:
    return json.dumps(value[0] if isinstance(value, tuple) and len(value) == 1 else value)
