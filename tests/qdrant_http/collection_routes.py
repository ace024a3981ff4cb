"""What is asked of collections, aliases, payload indexes and vector names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import qdrant_edge as edge
from pydantic import TypeAdapter
from qdrant_client.http import models

from qdrant_http import collection, engine
from qdrant_http.answers import bad_request, wrong_input
from qdrant_http.bodies import VECTOR_NAME, Call
from qdrant_http.collection import Collection

_CREATE = TypeAdapter(models.CreateCollection)
_UPDATE = TypeAdapter(models.UpdateCollection)
_ALIASES = TypeAdapter(models.ChangeAliasesOperation)
_INDEX = TypeAdapter(models.CreateFieldIndex)


def done(number: int, *, wait: bool = True) -> models.UpdateResult:
    """Return what is said of a write."""
    status = models.UpdateStatus.COMPLETED if wait else models.UpdateStatus.ACKNOWLEDGED
    return models.UpdateResult(operation_id=number, status=status)


def list_collections(call: Call) -> object:
    """Answer with the names of all collections."""
    return {"collections": [{"name": name} for name in call.store.names()]}


def exists(call: Call) -> object:
    """Answer whether there is a collection of this name or alias."""
    return {"exists": call.store.exists(call.path["name"])}


def info(call: Call) -> object:
    """Answer with what a collection says of itself."""
    return call.store.get(call.path["name"]).info()


def create(call: Call) -> object:
    """Make a collection."""
    call.store.create(collection.new(call.path["name"], call.read(_CREATE)))
    return True


def delete(call: Call) -> object:
    """Delete a collection."""
    return call.store.delete(call.path["name"])


def update(call: Call) -> object:
    """Change a collection's settings and metadata."""
    asked = call.read(_UPDATE)
    found = call.store.get(call.path["name"])
    with found.lock:
        config = found.kept.config
        config.params = collection.updated(config.params, asked.params)
        config.hnsw_config = collection.updated(config.hnsw_config, asked.hnsw_config)
        config.optimizer_config = collection.updated(
            config.optimizer_config, asked.optimizers_config
        )
        config.strict_mode_config = collection.strict(
            config.strict_mode_config, asked.strict_mode_config
        )
        if asked.metadata is not None:
            config.metadata = collection.merged(config.metadata, asked.metadata)
        _update_vectors(config.params, asked)
        if asked.quantization_config is not None:
            disabled = isinstance(asked.quantization_config, models.Disabled)
            config.quantization_config = None if disabled else asked.quantization_config  # type: ignore[assignment]
        found.save()
    return True


def _update_vectors(params: models.CollectionParams, asked: models.UpdateCollection) -> None:
    """Change the vectors' settings; sizes, distances and the modifiers of the shard stay."""
    dense = _dense(params)
    for name, change in (asked.vectors or {}).items():
        if name not in dense:
            raise wrong_input(f"Not existing vector name error: {name}")
        dense[name] = collection.updated(dense[name], change)
    if asked.vectors and isinstance(params.vectors, models.VectorParams):
        params.vectors = dense[""]
    elif asked.vectors:
        params.vectors = dense
    sparse = dict(params.sparse_vectors or {})
    for name, changed in (asked.sparse_vectors or {}).items():
        if name not in sparse:
            raise wrong_input(f"Not existing vector name error: {name}")
        sparse[name] = collection.updated(sparse[name], changed)
    params.sparse_vectors = sparse or params.sparse_vectors


def _dense(params: models.CollectionParams) -> dict[str, models.VectorParams]:
    if isinstance(params.vectors, models.VectorParams):
        return {"": params.vectors}
    return dict(params.vectors or {})


def list_aliases(call: Call) -> object:
    """Answer with all aliases."""
    return {"aliases": call.store.aliases()}


def collection_aliases(call: Call) -> object:
    """Answer with a collection's aliases."""
    return {"aliases": call.store.aliases(call.path["name"])}


def change_aliases(call: Call) -> object:
    """Change aliases in one step."""
    call.store.change_aliases(call.read(_ALIASES).actions)
    return True


def create_index(call: Call) -> object:
    """Make a payload index."""
    asked = call.read(_INDEX)
    found = call.store.get(call.path["name"])
    schema = asked.field_schema
    if schema is None:
        raise bad_request("field_schema is required")
    kind = engine.schema_type(schema)
    made = edge.UpdateOperation.create_field_index(asked.field_name, engine.index_schema(kind))
    with found.lock:
        number = found.apply([made], wait=True)
        params = None if isinstance(schema, models.PayloadSchemaType) else schema
        found.kept.indexes[asked.field_name] = models.PayloadIndexInfo(
            data_type=kind, params=params, points=0
        )
        found.save()
    return done(number, wait=call.wait)


def delete_index(call: Call) -> object:
    """Drop a payload index."""
    found = call.store.get(call.path["name"])
    field = call.path["field"]
    with found.lock:
        number = found.apply([edge.UpdateOperation.delete_field_index(field)], wait=True)
        found.kept.indexes.pop(field, None)
        found.save()
    return done(number, wait=call.wait)


def create_vector(call: Call) -> object:
    """Add a named vector to a collection."""
    asked = call.read(VECTOR_NAME)
    found = call.store.get(call.path["name"])
    name = call.path["vector"]
    if isinstance(asked, models.DenseVectorNameConfig):
        return _changed(call, found, _create_dense(name, asked.dense), _added(name, asked))
    made = edge.UpdateOperation.create_sparse_vector(
        name, engine.modifier(asked.sparse.modifier), engine.datatype(asked.sparse.datatype)
    )
    return _changed(call, found, made, _added(name, asked))


def _create_dense(name: str, asked: models.DenseVectorConfig) -> edge.UpdateOperation:
    return edge.UpdateOperation.create_dense_vector(
        name,
        asked.size,
        engine.DISTANCES[asked.distance],
        engine.multivector(asked.multivector_config),
        engine.datatype(asked.datatype),
    )


_Change = Callable[[models.CollectionParams], None]


def _added(name: str, asked: models.VectorNameConfig) -> _Change:
    def change(params: models.CollectionParams) -> None:
        if isinstance(asked, models.SparseVectorNameConfig):
            made = _filled(models.SparseVectorParams, asked.sparse.model_dump())
            params.sparse_vectors = {**(params.sparse_vectors or {}), name: made}
            return
        params.vectors = {
            **_dense(params),
            name: _filled(models.VectorParams, asked.dense.model_dump()),
        }

    return change


def _filled(kind: type[Any], values: Mapping[str, object]) -> Any:
    return kind(**{key: value for key, value in values.items() if key in kind.model_fields})


def delete_vector(call: Call) -> object:
    """Take a named vector out of a collection."""
    found = call.store.get(call.path["name"])
    name = call.path["vector"]

    def change(params: models.CollectionParams) -> None:
        if isinstance(params.vectors, dict):
            params.vectors.pop(name, None)
        if params.sparse_vectors:
            params.sparse_vectors.pop(name, None)

    return _changed(call, found, edge.UpdateOperation.delete_vector_name(name), change)


def _changed(
    call: Call, found: Collection, operation: edge.UpdateOperation, change: _Change
) -> object:
    with found.lock:
        number = found.apply([operation], wait=True)
        change(found.kept.config.params)
        found.save()
    return done(number, wait=call.wait)
