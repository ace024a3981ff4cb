"""Points that syncer did not write, and the row that one of them becomes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from syncer.keys import PointId, canonical_json, decode_key, encode_key
from syncer.model import SYNC_KEY, Payload
from syncer.text import is_blank, normalise

DOCUMENT_KEY = "document"
"""Where mcp-server-qdrant keeps a text, and syncer by default."""

COLUMNS = ("agent", "scope", "source", "importance", "created_at", "expires_at")
"""The columns of the canonical table that a point's metadata may fill."""

_UNSAID = {"scope": "recovered", "source": "recovered"}  # of columns that must say something
_ORIGIN = "recovered"  # where a row's metadata says which point it was


@dataclass(frozen=True, slots=True)
class Foreign:
    """A point that syncer did not write; `vectors` by name, where they were asked for."""

    id: PointId
    payload: Payload
    vectors: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its id as JSON, which tells 42 from "42"."""
        return canonical_json(self.id)

    @property
    def hash(self) -> str:
        """SHA-256 of its payload, in hexadecimal. Raises ValueError if that is no JSON."""
        return hashlib.sha256(_written(self.payload).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Memory:
    """What a foreign point becomes: the columns of a row, `metadata` as JSON text."""

    point: Foreign
    hash: str
    content: str
    metadata: str
    columns: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Unfit:
    """A foreign point that cannot become a row, and why."""

    point: Foreign
    why: str


@dataclass(frozen=True, slots=True)
class Form:
    """Where a collection's points keep what, how much of it a row may have, and what time it is."""

    collection: str
    now: str
    document_key: str = DOCUMENT_KEY
    metadata_key: str = "metadata"
    max_content_bytes: int = 2**20
    max_payload_bytes: int = 2**22


def is_foreign(payload: Payload) -> bool:
    """Say whether a point with this payload, its ``_sync`` at least, was not written by syncer."""
    record = payload.get(SYNC_KEY)
    row = record.get("row") if isinstance(record, dict) else None
    if not isinstance(row, str):
        return True
    try:
        return encode_key(decode_key(row)) != row
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return True


def memory_of(point: Foreign, form: Form) -> Memory | Unfit:
    """Return the row that a foreign point becomes, or why it cannot be one."""
    key = text_key(point.payload, form)
    if key is None:
        return Unfit(point, "it has no text")
    content = str(point.payload[key])
    try:
        size, hashed = len(_written(point.payload).encode()), point.hash
        columns, metadata = _columns(point, form, key)
        written = _written(metadata)
        length = len(content.encode())
    except ValueError as error:
        return Unfit(point, f"its payload is no JSON: {type(error).__name__}")
    if length > form.max_content_bytes:
        return Unfit(point, f"its text has {length} bytes, more than source.max_content_bytes")
    if size > form.max_payload_bytes:
        return Unfit(point, f"its payload has {size} bytes, half of target.batch_bytes is the most")
    return Memory(point, hashed, content, written, columns)


def text_key(payload: Payload, form: Form) -> str | None:
    """Return under which key a point has its text, or None if it has none."""
    for key in (form.document_key, DOCUMENT_KEY):
        value = payload.get(key)
        if isinstance(value, str) and not is_blank(normalise(value)):
            return key
    return None


def _columns(point: Foreign, form: Form, text: str) -> tuple[dict[str, object], dict[str, object]]:
    """Return what of a payload fits the columns, and all that is left of it as metadata."""
    said = point.payload.get(form.metadata_key)
    metadata = dict(said) if isinstance(said, Mapping) else {}
    known = {text} | ({form.metadata_key} if isinstance(said, Mapping) or said is None else set())
    others = {name: value for name, value in point.payload.items() if name not in known}
    columns: dict[str, object] = dict(_UNSAID)
    for name in COLUMNS:
        fitting = _fitting(name, metadata.get(name), form.now)
        if fitting is not None:
            columns[name] = fitting
            del metadata[name]
    inner = metadata.get("metadata")
    if isinstance(inner, dict) and not (inner.keys() & metadata.keys()):
        metadata = {**inner, **{k: v for k, v in metadata.items() if k != "metadata"}}
    origin: dict[str, object] = {"point": point.id, "collection": form.collection}
    if _ORIGIN in metadata:
        origin["before"] = metadata[_ORIGIN]
    if others:
        origin["payload"] = others
    return columns, {**metadata, _ORIGIN: origin}


def _fitting(name: str, value: object, now: str) -> object:
    """Return a value as its column takes it, or None if it does not."""
    if name in {"agent", "scope", "source"}:
        return value if isinstance(value, str) and value else None
    if name == "importance":
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if number and 0 <= value <= 1 else None  # type: ignore[operator]
    stamp = _stamp(value)
    if name == "expires_at" and stamp is not None and stamp <= now:
        return None  # a row that has expired would never be seen again
    return stamp


def _stamp(value: object) -> str | None:
    """Return a time in the table's own form, UTC with milliseconds; None if it is no time."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        found = found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _written(payload: Payload) -> str:
    """Return canonical JSON that UTF-8 can hold; raise ValueError if there is none."""
    try:
        written = canonical_json(payload)
    except (TypeError, RecursionError) as error:
        raise ValueError(type(error).__name__) from error
    written.encode()
    return written
