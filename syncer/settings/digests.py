"""Digests of settings: an idle run compares them to see that nothing else was asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from syncer.settings.base import Section
from syncer.settings.sections import Settings

_DIGITS = 16  # hexadecimal; 64 bits are plenty to tell two versions of one file apart

_TARGET = {"url", "path", "collection", "document_key", "metadata_key", "vector"}
_NOT_IN_VECTORS = {
    *("threads", "devices", "token_budget", "batch_timeout", "cache_dir", "tokenizer"),
    *("api_key", "api_key_file", "allow_insecure_key"),
    *("concurrency", "batch_items", "timeout", "retry_budget"),
}
_ROWS = {
    *("table", "key", "content", "metadata", "where", "expires_at", "deleted"),
    "max_content_bytes",
    "invalid_utf8",
    "json_columns",
    "joined",
    "changes",
    "updated_at",
}
_PAYLOAD = {"document_key", "metadata_key"}


def digest(settings: Settings) -> str:
    """Return 16 hex digits over all that decides rows, texts, target and vectors; no secrets."""
    return _hash(
        {
            "source": _plain(settings.source, exclude={"busy_timeout", "repair_triggers"}),
            "target": _plain(settings.target, include=_TARGET),
            "embed": _plain(settings.embed, exclude=_NOT_IN_VECTORS),
            "sparse": _plain(settings.sparse),
        }
    )


def mapping_digest(settings: Settings, metadata: Sequence[str] | None = None) -> str:
    """Return 16 hex digits over what decides which rows and texts there are: the mapping.

    `metadata` are the columns that stand for ``*``: another column is another mapping.
    """
    source = _plain(settings.source, include=_ROWS)
    if metadata is not None and "*" in settings.source.metadata:
        source["metadata"] = sorted(metadata)
    return _hash(
        {
            "source": source,
            "target": _plain(settings.target, include=_PAYLOAD),
        }
    )


def _plain(
    section: Section, *, include: set[str] | None = None, exclude: set[str] | None = None
) -> dict[str, object]:
    values = section.model_dump(include=include, exclude=exclude)
    plain = {name: _resolved(value) for name, value in values.items()}
    if "metadata" in plain:
        plain["metadata"] = sorted(values["metadata"])  # a payload has no order
    if plain.pop("joined", None):  # none is as if there were no such setting
        plain["joined"] = sorted(values["joined"], key=lambda one: str(one["name"]))
    return plain


def _resolved(value: object) -> object:
    return str(value.resolve()) if isinstance(value, Path) else value


def _hash(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
