"""What is asked over gRPC, as the request of the REST interface that asks the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from qdrant_client import grpc
from qdrant_client.conversions.conversion import GrpcToRest
from qdrant_client.http import models

from qdrant_http.answers import RefusedError


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the REST interface."""

    method: str
    path: str
    body: bytes = b""
    query: str = ""


def of_server(method: str, path: str) -> Callable[[Any], Asked]:
    """Return what asks for something that no message says more of."""
    return lambda _: Asked(method, path)


def of_collection(method: str, below: str = "") -> Callable[[Any], Asked]:
    """Return what asks for something of a collection, or below it."""
    return lambda message: Asked(method, f"/collections/{message.collection_name}{below}")


def create(message: grpc.CreateCollection) -> Asked:
    """Ask for a new collection."""
    asked = models.CreateCollection(
        vectors=_of(message, "vectors_config", GrpcToRest.convert_vectors_config),
        sparse_vectors=_of(
            message, "sparse_vectors_config", GrpcToRest.convert_sparse_vector_config
        ),
        shard_number=_of(message, "shard_number"),
        replication_factor=_of(message, "replication_factor"),
        write_consistency_factor=_of(message, "write_consistency_factor"),
        on_disk_payload=_of(message, "on_disk_payload"),
        hnsw_config=_of(message, "hnsw_config", GrpcToRest.convert_hnsw_config_diff),
        quantization_config=_of(
            message, "quantization_config", GrpcToRest.convert_quantization_config
        ),
        strict_mode_config=_of(
            message, "strict_mode_config", GrpcToRest.convert_strict_mode_config
        ),
        metadata=_payload(message.metadata) or None,
    )
    return _body("PUT", f"/collections/{message.collection_name}", asked)


def update(message: grpc.UpdateCollection) -> Asked:
    """Ask for other settings and metadata."""
    asked = GrpcToRest.convert_update_collection(message)
    return _body("PATCH", f"/collections/{message.collection_name}", asked)


def change_aliases(message: grpc.ChangeAliases) -> Asked:
    """Ask for other aliases."""
    actions = [GrpcToRest.convert_alias_operations(one) for one in message.actions]
    asked = models.ChangeAliasesOperation(actions=actions)
    return _body("POST", "/collections/aliases", asked)


def create_index(message: grpc.CreateFieldIndexCollection) -> Asked:
    """Ask for a payload index."""
    kind = grpc.FieldType.Name(message.field_type).removeprefix("FieldType").lower()
    params = _of(message, "field_index_params", GrpcToRest.convert_payload_schema_params)
    asked = models.CreateFieldIndex(
        field_name=message.field_name, field_schema=params or models.PayloadSchemaType(kind)
    )
    path = f"/collections/{message.collection_name}/index"
    return _body("PUT", path, asked, wait=message.wait)


def upsert(message: grpc.UpsertPoints) -> Asked:
    """Ask for whole points."""
    for one in message.points:
        _check_numbers(one.payload.values())
    asked = models.PointsList(
        points=[GrpcToRest.convert_point_struct(one) for one in message.points],
        update_filter=_of(message, "update_filter", GrpcToRest.convert_filter),
    )
    return _below("PUT", "", message, asked)


def delete(message: grpc.DeletePoints) -> Asked:
    """Ask for points to be deleted."""
    return _below("POST", "/delete", message, GrpcToRest.convert_points_selector(message.points))


def batch(message: grpc.UpdateBatchPoints) -> Asked:
    """Ask for several changes."""
    operations = [GrpcToRest.convert_points_update_operation(one) for one in message.operations]
    return _below("POST", "/batch", message, models.UpdateOperations(operations=operations))


def set_payload(message: grpc.SetPayloadPoints) -> Asked:
    """Ask for keys of a payload."""
    return _below("POST", "/payload", message, _set_payload(message))


def overwrite_payload(message: grpc.SetPayloadPoints) -> Asked:
    """Ask for another payload."""
    return _below("PUT", "/payload", message, _set_payload(message))


def _set_payload(message: grpc.SetPayloadPoints) -> models.SetPayload:
    chosen = GrpcToRest.convert_points_selector(message.points_selector)
    return models.SetPayload(
        payload=_payload(message.payload),
        points=getattr(chosen, "points", None),
        filter=getattr(chosen, "filter", None),
        key=_of(message, "key"),
    )


def retrieve(message: grpc.GetPoints) -> Asked:
    """Ask for points by their ids."""
    asked = models.PointRequest(
        ids=[GrpcToRest.convert_point_id(one) for one in message.ids],
        with_payload=_of(message, "with_payload", GrpcToRest.convert_with_payload_interface),
        with_vector=_of(message, "with_vectors", GrpcToRest.convert_with_vectors_selector),
    )
    return _below("POST", "", message, asked)


def scroll(message: grpc.ScrollPoints) -> Asked:
    """Ask for a page of points."""
    asked = models.ScrollRequest(
        filter=_of(message, "filter", GrpcToRest.convert_filter),
        offset=_of(message, "offset", GrpcToRest.convert_point_id),
        limit=_of(message, "limit"),
        with_payload=_of(message, "with_payload", GrpcToRest.convert_with_payload_interface),
        with_vector=_of(message, "with_vectors", GrpcToRest.convert_with_vectors_selector),
    )
    return _below("POST", "/scroll", message, asked)


def count(message: grpc.CountPoints) -> Asked:
    """Ask for the number of points."""
    asked = models.CountRequest(
        filter=_of(message, "filter", GrpcToRest.convert_filter), exact=_of(message, "exact")
    )
    return _below("POST", "/count", message, asked)


def query(message: grpc.QueryPoints) -> Asked:
    """Ask for the points that fit best."""
    asked = GrpcToRest.convert_query_points(message)
    return _below("POST", "/query", message, asked)


def _below(method: str, below: str, message: Any, asked: BaseModel) -> Asked:
    path = f"/collections/{message.collection_name}/points{below}"
    return _body(method, path, asked, wait=getattr(message, "wait", False))


def _body(method: str, path: str, asked: BaseModel, *, wait: bool = False) -> Asked:
    body = asked.model_dump_json(exclude_none=True, by_alias=True).encode()
    return Asked(method, path, body, "wait=true" if wait else "")


def _of(message: Any, name: str, convert: Callable[[Any], Any] = lambda value: value) -> Any:
    """Return a field of a message in the other form, None if it has none."""
    return convert(getattr(message, name)) if message.HasField(name) else None


def _payload(fields: Any) -> dict[str, Any]:
    _check_numbers(fields.values())
    return GrpcToRest.convert_payload(fields)


def _check_numbers(values: Iterable[grpc.Value]) -> None:
    """Raise RefusedError for a number that is no JSON, which the conversion takes for a text."""
    for value in values:
        kind = value.WhichOneof("kind")
        if kind == "double_value" and not math.isfinite(value.double_value):
            raise RefusedError(400, "cannot convert to json number")
        if kind == "struct_value":
            _check_numbers(value.struct_value.fields.values())
        elif kind == "list_value":
            _check_numbers(value.list_value.values)
