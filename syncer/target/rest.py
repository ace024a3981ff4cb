"""Asking Qdrant over REST without the client's models: they take twice as long."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel
from qdrant_client import models

from syncer.target.connection import Connection

T = TypeVar("T", bound=BaseModel)


class _Upserted(BaseModel):
    result: models.UpdateResult | None = None


class _Updated(BaseModel):
    result: list[models.UpdateResult]


def ask(connection: Connection, generation: str, path: str, asked: BaseModel, form: type[T]) -> T:
    """Return what `path` below a collection answers, as far as `form` looks at it.

    Raises the client's errors, which are for the caller to translate.
    """
    body = asked.model_dump_json(exclude_none=True, by_alias=True).encode()
    return _sent(connection, generation, "POST", path, body, form)


def upsert(connection: Connection, generation: str, body: bytes) -> models.UpdateResult | None:
    """Return what Qdrant says of an upsert that it was to wait for; raises the client's errors."""
    path = "/points?wait=true"
    return _sent(connection, generation, "PUT", path, body, _Upserted).result


def update(connection: Connection, generation: str, body: bytes) -> list[models.UpdateResult]:
    """Return what Qdrant says of each operation of a batch; raises the client's errors."""
    path = "/points/batch?wait=true"
    return _sent(connection, generation, "POST", path, body, _Updated).result


def _sent(
    connection: Connection, generation: str, method: str, path: str, body: bytes, form: type[T]
) -> T:
    return connection.client.http.client.request(
        type_=form,
        method=method,
        url="/collections/{collection_name}" + path,
        path_params={"collection_name": generation},
        headers={"Content-Type": "application/json"},
        content=body,
    )
