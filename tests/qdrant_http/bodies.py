"""Requests as they come off the wire."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import orjson
from pydantic import Field, TypeAdapter, ValidationError
from qdrant_client.http import models

from qdrant_http.answers import invalid, malformed

if TYPE_CHECKING:
    from qdrant_http.store import Store

# In this order, not by the best fit: a list of points is what nearly always comes, and trying
# every form of a large body costs as much again.
Upsert = Annotated[
    models.PointsList | models.PointsBatch, Field(union_mode="left_to_right", description="")
]
T = TypeVar("T")
UPSERT: TypeAdapter[models.PointsList | models.PointsBatch] = TypeAdapter(Upsert)
SELECTOR: TypeAdapter[models.PointsSelector] = TypeAdapter(models.PointsSelector)
VECTOR_NAME: TypeAdapter[models.VectorNameConfig] = TypeAdapter(models.VectorNameConfig)
_BEFORE_VALUES = frozenset({b"", b":", b",", b"[", b"-", b" ", b"\t", b"\n", b"\r"})


@dataclass(frozen=True, slots=True)
class Call:
    """One request: where it goes, what it says, and the store it is about."""

    store: Store
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def wait(self) -> bool:
        """Whether the answer waits until the write is applied."""
        return self.query.get("wait") == "true"

    def read(self, form: TypeAdapter[T]) -> T:
        """Return the body in its form; raises RefusedError if it does not have it."""
        if _may_hold_constants(self.body):
            _refuse_constants(self.body)
        try:
            return form.validate_json(self.body)
        except ValidationError as error:
            raise malformed(_first(error)) from error


def _may_hold_constants(body: bytes) -> bool:
    """Say whether NaN or Infinity may be a value; a text may hold the same, after a blank."""
    for word in (b"NaN", b"Infinity"):
        place = body.find(word)
        while place >= 0:
            if body[max(0, place - 1) : place] in _BEFORE_VALUES:
                return True
            place = body.find(word, place + 1)
    return False


def _refuse_constants(body: bytes) -> None:
    """Raise RefusedError for what is no JSON, which pydantic would take."""
    try:
        orjson.loads(body)
    except ValueError as error:
        raise malformed(str(error)) from error


def _first(error: ValidationError) -> str:
    """Return the first problem, without what it may quote of a payload."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{first['msg']} at {place or 'the whole'}"


def check_sparse(sparse: models.SparseVector, place: str) -> None:
    """Raise RefusedError if a sparse vector's indices are not unique, or values are missing."""
    if len(sparse.indices) != len(sparse.values):
        raise invalid(f"{place}.values: must be the same length as indices")
    if len(set(sparse.indices)) != len(sparse.indices):
        raise invalid(f"{place}.indices: must be unique")


def at_least_one(number: int | None, default: int, name: str = "limit") -> int:
    """Return a number that must be positive, or its default."""
    if number is None:
        return default
    if number < 1:
        raise invalid(f"{name}: value {number} invalid, must be 1 or larger")
    return number


def check_ids(ids: Iterable[object]) -> None:
    """Raise RefusedError if one of the ids is neither an unsigned integer nor a UUID."""
    for one in ids:
        if not _is_id(one):
            raise malformed(
                f"value {one} is not a valid point ID, valid values are either an unsigned "
                "integer or a UUID"
            )


def _is_id(one: object) -> bool:
    if isinstance(one, int):
        return 0 <= one < 2**64
    try:
        uuid.UUID(str(one))
    except ValueError:
        return False
    return True
