"""Generations and their alias: made, described, found."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from qdrant_client import models

from syncer.errors import IdentityError, RecipeError, SchemaError
from syncer.model import Description, Recipe
from syncer.target.connection import Connection

FORMAT = 1  # of the collection's metadata; raise it when old readers would misunderstand
DESCRIPTION = "syncer"
TOKEN = "syncer_token"  # noqa: S105 - the name of a key, no secret


def generation_name(alias: str, now: datetime) -> str:
    """Return a name that no other generation has: ``<alias>--<utc time>-<4 random hex>``."""
    return f"{alias}--{now:%Y%m%dt%H%M%S}-{secrets.token_hex(2)}"


class Catalog:
    """The collections and aliases of one Qdrant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = connection.client

    def resolve(self, alias: str) -> str | None:
        """Return the generation that `alias` points at, or None if there is none.

        Raises SchemaError if `alias` is the name of a real collection.
        """
        with self._connection.translated("looking up the alias"):
            for entry in self._client.get_aliases().aliases:
                if entry.alias_name == alias:
                    return str(entry.collection_name)
            if self._client.collection_exists(alias):
                raise SchemaError(
                    f"{alias} is a collection of its own at {self._connection.spec.name}, not "
                    "made by syncer; nothing was changed",
                    hint="syncer serves through an alias of that name. Choose another "
                    "target.collection, or move that collection's points first.",
                )
        return None

    def exists(self, generation: str) -> bool:
        """Say whether the collection is there."""
        with self._connection.translated(f"looking for {generation}"):
            return bool(self._client.collection_exists(generation))

    def create(
        self, generation: str, alias: str, description: Description, indexes: Sequence[str]
    ) -> None:
        """Create the generation and let the alias point at it. May be repeated after a kill.

        `indexes` names the payload fields to be indexed as keywords.
        """
        recipe = description.recipe
        with self._connection.translated(f"creating {generation}"):
            if not self._client.collection_exists(generation):
                self._client.create_collection(
                    generation,
                    vectors_config={
                        recipe.vector: models.VectorParams(
                            size=recipe.dimension, distance=models.Distance(recipe.distance)
                        )
                    },
                    metadata={DESCRIPTION: _to_metadata(description)},
                )
            for name in indexes:
                self._client.create_payload_index(
                    generation, name, models.PayloadSchemaType.KEYWORD, wait=True
                )
            self._client.update_collection_aliases(self._pointing(alias, generation))

    def _pointing(self, alias: str, generation: str) -> list[models.AliasOperations]:
        """Return the operations that let `alias` point at `generation`, for one request."""
        operations: list[models.AliasOperations] = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
            for entry in self._client.get_aliases().aliases
            if entry.alias_name == alias
        ]
        operations.append(
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=generation, alias_name=alias)
            )
        )
        return operations

    def describe(self, generation: str) -> Description:
        """Return what the generation says of itself, its vectors checked against it.

        Raises IdentityError if it is gone, SchemaError if syncer did not make it.
        """
        if not self.exists(generation):
            raise IdentityError(
                f"collection {generation} is not there any more at {self._connection.spec.name}",
                hint="Check target.url or target.path. If it is gone for good, "
                "`syncer once --start-over` builds a new one from SQLite.",
            )
        with self._connection.translated(f"reading {generation}"):
            config = self._client.get_collection(generation).config
        metadata = config.metadata or {}
        described = _from_metadata(generation, metadata)
        vectors = config.params.vectors
        _check_vectors(generation, described.recipe, vectors if isinstance(vectors, dict) else {})
        return described

    def token(self, generation: str) -> str | None:
        """Return the token that the collection carries."""
        with self._connection.translated(f"reading {generation}"):
            metadata = self._client.get_collection(generation).config.metadata or {}
        token = metadata.get(TOKEN)
        return token if isinstance(token, str) else None

    def set_description(self, generation: str, description: Description) -> None:
        """Let the generation say something else of itself, after the mapping has changed."""
        with self._connection.translated(f"describing {generation}"):
            self._client.update_collection(
                generation, metadata={DESCRIPTION: _to_metadata(description)}
            )


def _to_metadata(description: Description) -> dict[str, object]:
    return {"format": FORMAT, **asdict(description)}


def _from_metadata(generation: str, metadata: Mapping[str, object]) -> Description:
    found = metadata.get(DESCRIPTION)
    known = isinstance(found, dict) and found.get("format") == FORMAT
    found = dict(found) if isinstance(found, dict) and known else {}
    try:
        recipe = dict(found["recipe"])
        recipe["canary"] = tuple(recipe["canary"])
        rest = {key: value for key, value in found.items() if key not in {"format", "recipe"}}
        return Description(recipe=Recipe(**recipe), **rest)
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaError(
            f"collection {generation} carries no description that this syncer understands",
            hint="It was made by another tool or by another version. Nothing was changed.",
        ) from error


def _check_vectors(
    generation: str, recipe: Recipe, vectors: Mapping[str, models.VectorParams]
) -> None:
    found = vectors.get(recipe.vector)
    if found is None or found.size != recipe.dimension or found.distance != recipe.distance:
        there = ", ".join(f"{name} ({v.size}, {v.distance})" for name, v in vectors.items())
        raise RecipeError(
            f"collection {generation} has the vectors {there or 'none'}, its description says "
            f"{recipe.vector} ({recipe.dimension}, {recipe.distance})",
            hint="Somebody changed the collection. `syncer once --start-over` builds a new one.",
        )
