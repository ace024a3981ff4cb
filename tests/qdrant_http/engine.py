"""Collections' settings as the engine takes them, and the engine's errors as the server's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import qdrant_edge as edge
from qdrant_client.http import models

from qdrant_http.answers import (
    RefusedError,
    bad_request,
    internal,
    malformed,
    not_found,
    wrong_input,
)

DISTANCES = {
    models.Distance.COSINE: edge.Distance.Cosine,
    models.Distance.EUCLID: edge.Distance.Euclid,
    models.Distance.DOT: edge.Distance.Dot,
    models.Distance.MANHATTAN: edge.Distance.Manhattan,
}
_SCHEMAS = {
    kind: getattr(edge.PayloadSchemaType, kind.value.capitalize())
    for kind in models.PayloadSchemaType
}
_NONE = "(none)"  # a vector that nobody uses; the engine wants one, the server does not
_NO_POINT = re.compile(r"No point with id (\S+)")
_INTERNAL = ("Service ", "Out of ", "No space left", "IO Error", "IO error")


@contextmanager
def translated() -> Iterator[None]:
    """Raise the engine's errors as the server's refusals."""
    try:
        yield
    except RefusedError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise malformed(str(error).splitlines()[0]) from error
    except Exception as error:
        # The engine raises Exception itself, the class, and nothing more exact.
        if type(error) is not Exception:
            raise
        raise _refusal(str(error)) from error


def _refusal(said: str) -> RefusedError:
    missing = _NO_POINT.search(said)
    if missing is not None:
        return not_found(f"No point with id {missing[1]} found")
    if "order_by" in said:
        return bad_request(said)
    if said.startswith(_INTERNAL):
        return internal(said)
    return wrong_input(said)


def shard_config(
    vectors: models.VectorParams | Mapping[str, models.VectorParams] | None,
    sparse: Mapping[str, models.SparseVectorParams] | None,
) -> edge.EdgeConfig:
    """Return the engine's settings for a collection with these vectors."""
    dense: edge.EdgeVectorParams | dict[str, edge.EdgeVectorParams]
    if isinstance(vectors, models.VectorParams):
        dense = _dense(vectors)
    else:
        dense = {name: _dense(params) for name, params in (vectors or {}).items()}
    thin = {name: _sparse(params) for name, params in (sparse or {}).items()}
    if not dense and not thin:
        thin = {_NONE: edge.EdgeSparseVectorParams()}
    return edge.EdgeConfig(vectors=dense, sparse_vectors=thin)


def _dense(params: models.VectorParams) -> edge.EdgeVectorParams:
    return edge.EdgeVectorParams(
        params.size,
        DISTANCES[params.distance],
        multivector_config=multivector(params.multivector_config),
        datatype=datatype(params.datatype),
    )


def _sparse(params: models.SparseVectorParams) -> edge.EdgeSparseVectorParams:
    return edge.EdgeSparseVectorParams(
        modifier=modifier(params.modifier),
        datatype=datatype(params.index.datatype if params.index else None),
    )


def modifier(found: models.Modifier | None) -> edge.Modifier | None:
    """Return the engine's word for a sparse vector's modifier."""
    return edge.Modifier.Idf if found == models.Modifier.IDF else None


def datatype(
    found: models.Datatype | models.VectorStorageDatatype | None,
) -> edge.VectorStorageDatatype | None:
    """Return the engine's word for how numbers are stored."""
    if found is None:
        return None
    kept: edge.VectorStorageDatatype = getattr(edge.VectorStorageDatatype, found.value.title())
    return kept


def multivector(found: models.MultiVectorConfig | None) -> edge.MultiVectorConfig | None:
    """Return the engine's word for how multi-vectors are compared."""
    return None if found is None else edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)


def schema_type(schema: models.PayloadFieldSchema) -> models.PayloadSchemaType:
    """Return the type of a payload index, given by itself or by its parameters."""
    if isinstance(schema, models.PayloadSchemaType):
        return schema
    return models.PayloadSchemaType(schema.type.value)


def index_schema(kind: models.PayloadSchemaType) -> edge.PayloadSchemaType:
    """Return the engine's word for a payload index's type."""
    found: edge.PayloadSchemaType = _SCHEMAS[kind]
    return found
