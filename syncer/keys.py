"""A row's key: as a value, as text and as point ids.

The encodings here are final: points already written can only be found again if the same key
always leads to the same text and to the same ids.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid5

MAX_INTEGER_ID = 2**63 - 1  # SQLite's largest integer; Qdrant's ids reach to 2**64 - 1
POINT_NAMESPACE = UUID(
    "72e83cc3-effd-48c0-b35b-2cc296f2f06a"
)  # made once for syncer, never changed

_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
)


@dataclass(frozen=True, slots=True)
class RawText:
    """A TEXT value whose bytes are not UTF-8, kept as they are."""

    data: bytes


KeyPart = int | str | bytes | float | RawText | None
Key = tuple[KeyPart, ...]
"""A key's values in the order of its columns; nearly always one integer."""

PointId = int | str
"""What Qdrant takes for an id: an unsigned integer, or a UUID as text."""


def encode_key(key: Key) -> str:
    """Return the key as canonical JSON: ``42``, ``"42"``, ``{"blob": …}``, ``["a", 1]``.

    Types stay apart, so that 42 and "42" can live in one table. Blobs and text that is not
    UTF-8 become base64 in an object that names their type.
    """
    if len(key) == 1 and type(key[0]) is int:  # nearly every key, several times for each row
        return str(key[0])
    parts = [_part_to_json(part) for part in key]
    return canonical_json(parts[0] if len(parts) == 1 else parts)


def decode_key(text: str) -> Key:
    """Return the key that ``encode_key`` turned into `text`."""
    value = json.loads(text)
    parts = value if isinstance(value, list) else [value]
    return tuple(_part_from_json(part) for part in parts)


def is_indexable(key: Key) -> bool:
    """Say whether a row with this key can have a point: no part is NULL or a real number."""
    return bool(key) and all(part is not None and not isinstance(part, float) for part in key)


def point_id(table: str, key: Key, chunk: int = 0) -> PointId:
    """Return the id of a row's point for `chunk`.

    A single integer from 0 to 2**63 - 1 is its own id for chunk 0. Everything else is a UUIDv5
    over table, type and value of the key, and chunk number.
    """
    if chunk == 0 and len(key) == 1:
        part = key[0]
        if isinstance(part, int) and 0 <= part <= MAX_INTEGER_ID:
            return part
    return str(uuid5(POINT_NAMESPACE, canonical_json([table, encode_key(key), chunk])))


def canonical_json(value: object) -> str:
    """Return JSON that is the same for the same value: sorted keys, no spaces, plain UTF-8.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return _CANONICAL.encode(value)


def _part_to_json(part: KeyPart) -> object:
    if isinstance(part, RawText):
        return {"text": base64.b64encode(part.data).decode()}
    if isinstance(part, bytes):
        return {"blob": base64.b64encode(part).decode()}
    if isinstance(part, float) and not math.isfinite(part):
        return {"real": repr(part)}
    return part


_FROM_OBJECT: dict[str, Callable[[str], KeyPart]] = {
    "text": lambda value: RawText(base64.b64decode(value)),
    "blob": base64.b64decode,
    "real": float,
}


def _part_from_json(part: object) -> KeyPart:
    if isinstance(part, dict):
        ((kind, value),) = part.items()
        return _FROM_OBJECT[kind](value)
    if part is None or isinstance(part, (int, str, float)):
        return part
    raise ValueError(f"not a part of a key: {part!r}")
