"""What points are over gRPC: messages that are made once, measured, and sent as they are."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Error as MessageError
from qdrant_client import grpc, models
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc

from syncer.keys import PointId
from syncer.model import Point
from syncer.target.bodies import Written
from syncer.target.connection import Connection
from syncer.target.structs import as_client


def written(points: Sequence[Point]) -> Written:
    """Return points as the messages that an upsert carries; nothing for one that can be none.

    Its id is no id then, a number of it has more than 64 bits, or it is nested deeper than a
    message may be.
    """
    return {point.id: _message(point) for point in points}


def upsert(
    connection: Connection, generation: str, ids: Sequence[PointId], found: Written
) -> models.UpdateResult | None:
    """Return what Qdrant says of an upsert that it was to wait for, None if that is unknown.

    Raises the client's errors, which are for the caller to translate.
    """
    message = grpc.UpsertPoints(
        collection_name=generation,
        wait=True,
        points=[grpc.PointStruct.FromString(found[one]) for one in ids],
    )
    answer = connection.client.grpc_points.Upsert(message, timeout=connection.spec.seconds)
    try:
        return GrpcToRest.convert_update_result(answer.result)
    except ValueError:  # a status that the client does not know
        return None


def _message(point: Point) -> bytes:
    vectors = {name: as_client(vector) for name, vector in point.vectors.items()}
    try:
        message = grpc.PointStruct(
            id=RestToGrpc.convert_extended_point_id(point.id),
            vectors=RestToGrpc.convert_vector_struct(vectors),  # type: ignore[arg-type]
            payload=RestToGrpc.convert_payload(dict(point.payload)),
        )
        # What is nested too deep can be made, and then neither be put into a request nor read.
        whole = grpc.UpsertPoints(points=[message])
        grpc.UpsertPoints.FromString(whole.SerializeToString())
        return bytes(message.SerializeToString())
    except (ValueError, MessageError):
        return b""
