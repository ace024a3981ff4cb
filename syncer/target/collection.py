"""Generations and their alias: made, described, found."""

from __future__ import annotations

import re
import secrets
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from qdrant_client import models

from syncer.errors import IdentityError, RecipeError, SchemaError, TargetError
from syncer.model import Description, Recipe
from syncer.target.connection import Connection
from syncer.target.creation import Creation
from syncer.target.faults import CLIENT_ERRORS

FORMAT = 1  # of the collection's metadata; raise it when old readers would misunderstand
DESCRIPTION = "syncer"
FORMER_KEYS = "syncer_former_keys"
TOKEN = "syncer_token"  # noqa: S105 - the name of a key, no secret


def generation_name(alias: str, now: datetime) -> str:
    """Return a name that no other generation has: ``<alias>--<utc time>-<4 random hex>``."""
    return f"{alias}--{now:%Y%m%dt%H%M%S}-{secrets.token_hex(2)}"


def is_generation_of(name: str, alias: str) -> bool:
    """Say whether `name` is one that a generation of `alias`, and of no other alias, may have."""
    return re.fullmatch(rf"{re.escape(alias)}--\d{{8}}t\d{{6}}-[0-9a-f]{{4}}", name) is not None


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
                    "target.collection, or run `syncer rebuild --adopt`: it brings that "
                    "collection's points home and takes its place.",
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
        self.make(generation, description, indexes)
        with self._connection.translated(f"creating {generation}"):
            aliases = self._client.get_aliases().aliases
            found = next((e.collection_name for e in aliases if e.alias_name == alias), None)
            self._client.update_collection_aliases(pointing(alias, found, generation))

    def make(self, generation: str, description: Description, indexes: Sequence[str]) -> None:
        """Create the generation, which nobody reads yet. May be repeated after a kill."""
        with self._connection.translated(f"creating {generation}"):
            if not self._client.collection_exists(generation):
                self._create(generation, description)
            there = self._client.get_collection(generation).payload_schema
            self._index(generation, indexes, there)

    def _create(self, generation: str, description: Description) -> None:
        """Make the collection; that it is there already, by another or a lost answer, is well."""
        recipe, creation = description.recipe, self._connection.spec.creation
        vector = models.VectorParams(
            size=recipe.dimension,
            distance=models.Distance(recipe.distance),
            on_disk=creation.vectors_on_disk,
        )
        try:
            self._client.create_collection(
                generation,
                vectors_config={recipe.vector: vector},
                sparse_vectors_config=_sparse_config(recipe),
                metadata={DESCRIPTION: _to_metadata(description)},
                **creation.collection(),
            )
        except CLIENT_ERRORS:
            if not self._client.collection_exists(generation):
                raise

    def _index(self, generation: str, names: Sequence[str], there: Container[str]) -> None:
        """Index payload fields as keywords; those that have an index, of any kind, keep it."""
        for name in names:
            if name not in there:
                self._client.create_payload_index(
                    generation, name, models.PayloadSchemaType.KEYWORD, wait=True
                )

    def describe(self, generation: str) -> Description:
        """Return what the generation says of itself, its vectors checked against it.

        Raises IdentityError if it is gone, SchemaError if syncer did not make it.
        """
        info = self._info(generation)
        self._check_status(generation, info)
        config = info.config
        metadata = config.metadata or {}
        described = _from_metadata(generation, metadata)
        vectors = config.params.vectors
        _check_vectors(generation, described.recipe, vectors if isinstance(vectors, dict) else {})
        _check_sparse(generation, described.recipe, config.params.sparse_vectors or {})
        return described

    def _info(self, generation: str) -> models.CollectionInfo:
        try:
            with self._connection.translated(f"reading {generation}"):
                return self._client.get_collection(generation)
        except IdentityError:
            raise IdentityError(
                f"collection {generation} is not there any more at {self._connection.spec.name}",
                hint="Check target.url or target.path. If it is gone for good, "
                "`syncer rebuild` builds a new one from SQLite.",
            ) from None

    def mend(self, generation: str, recipe: Recipe, indexes: Sequence[str]) -> None:
        """Put back what somebody took away: the sparse vector's IDF modifier, payload indexes.

        Without the modifier a search weighs each term alike; without an index a server in strict
        mode refuses to filter. Writes nothing if all is there.
        """
        name = recipe.sparse_vector
        with self._connection.translated(f"mending {generation}"):
            info = self._client.get_collection(generation)
            found = info.config.params.sparse_vectors or {}
            if name in found and found[name].modifier != models.Modifier.IDF:
                self._client.update_collection(
                    generation, sparse_vectors_config=_sparse_config(recipe)
                )
            self._index(generation, indexes, info.payload_schema)

    def differences(self, generation: str, recipe: Recipe) -> list[str]:
        """Return how the collection is stored otherwise than the settings ask for new ones."""
        asked = self._connection.spec.creation
        if self._connection.local or asked == Creation():  # which have none of it, or ask nothing
            return []
        with self._connection.translated(f"reading {generation}"):
            config = self._client.get_collection(generation).config
        return list(asked.differences(config, recipe.vector))

    def _check_status(self, generation: str, info: models.CollectionInfo) -> None:
        """Raise TargetError if the server says that something is wrong with the collection."""
        if info.status != models.CollectionStatus.RED:
            return
        said = getattr(info.optimizer_status, "error", "no reason is given")
        raise TargetError(
            f"collection {generation} at {self._connection.spec.name} is red: {said}",
            hint="See the server's log. Nothing is lost; run again when it is green.",
        )

    def token(self, generation: str) -> str | None:
        """Return the token that the collection carries."""
        token = self._metadata(generation).get(TOKEN)
        return token if isinstance(token, str) else None

    def set_description(self, generation: str, description: Description) -> None:
        """Let the generation say something else of itself, after the mapping has changed."""
        metadata: dict[str, object] = {DESCRIPTION: _to_metadata(description)}
        if self._connection.spec.preserve_foreign_payload:
            now = {description.document_key, description.metadata_key}
            metadata[FORMER_KEYS] = sorted(self.own_keys(generation) - now)
        with self._connection.translated(f"describing {generation}"):
            self._client.update_collection(generation, metadata=metadata)

    def former_keys(self, generation: str) -> list[str]:
        """Return the payload keys that were syncer's by an earlier mapping.

        They are noted only while the keys of others are preserved: else they go by themselves.
        """
        found = self._metadata(generation).get(FORMER_KEYS)
        return [str(key) for key in found] if isinstance(found, list) else []

    def own_keys(self, generation: str) -> set[str]:
        """Return the payload keys that hold or held what syncer writes, the record's apart."""
        metadata = self._metadata(generation)
        described = _from_metadata(generation, metadata)
        former = metadata.get(FORMER_KEYS)
        return {
            described.document_key,
            described.metadata_key,
            *(former if isinstance(former, list) else ()),
        }

    def _metadata(self, generation: str) -> Mapping[str, object]:
        with self._connection.translated(f"reading {generation}"):
            return self._client.get_collection(generation).config.metadata or {}


def pointing(alias: str, found: str | None, generation: str) -> list[models.AliasOperations]:
    """Return what lets `alias` point at `generation` instead of `found`, for one request."""
    gone = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
    made = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=generation, alias_name=alias)
    )
    return [made] if found is None else [gone, made]


def _sparse_config(recipe: Recipe) -> dict[str, models.SparseVectorParams] | None:
    if not recipe.sparse_vector:
        return None
    return {recipe.sparse_vector: models.SparseVectorParams(modifier=models.Modifier.IDF)}


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
            hint="It was made by another tool or another version, or somebody put it in the "
            "other's place. Nothing was changed. `syncer rebuild` builds a new one "
            "beside it.",
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
            hint="Somebody changed the collection. `syncer rebuild` builds a new one.",
        )


def _check_sparse(
    generation: str, recipe: Recipe, found: Mapping[str, models.SparseVectorParams]
) -> None:
    name = recipe.sparse_vector
    if name and name not in found:
        raise RecipeError(
            f"collection {generation} has the sparse vectors {', '.join(found) or 'none'}, its "
            f"description says {name}",
            hint="Somebody changed the collection. `syncer rebuild` builds a new one.",
        )
