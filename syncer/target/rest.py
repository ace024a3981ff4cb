"""Asking Qdrant over REST without the client's models for the answer: they take twice as long."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from syncer.target.connection import Connection

T = TypeVar("T", bound=BaseModel)


def ask(connection: Connection, generation: str, path: str, asked: BaseModel, form: type[T]) -> T:
    """Return what `path` below a collection answers, as far as `form` looks at it.

    Raises the client's errors, which are for the caller to translate.
    """
    return connection.client.http.client.request(
        type_=form,
        method="POST",
        url="/collections/{collection_name}" + path,
        path_params={"collection_name": generation},
        headers={"Content-Type": "application/json"},
        content=asked.model_dump_json(exclude_none=True, by_alias=True),
    )
