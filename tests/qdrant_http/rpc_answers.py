"""What the REST interface answers, as the messages that gRPC answers with."""

from __future__ import annotations

from typing import Any

from grpc import StatusCode
from qdrant_client import grpc
from qdrant_client.conversions.conversion import RestToGrpc
from qdrant_client.http import models

CODES = {
    400: StatusCode.INVALID_ARGUMENT,
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.PERMISSION_DENIED,
    404: StatusCode.NOT_FOUND,
    408: StatusCode.DEADLINE_EXCEEDED,
    409: StatusCode.ALREADY_EXISTS,
    413: StatusCode.OUT_OF_RANGE,
    422: StatusCode.INVALID_ARGUMENT,
    429: StatusCode.RESOURCE_EXHAUSTED,
    500: StatusCode.INTERNAL,
    501: StatusCode.UNIMPLEMENTED,
    502: StatusCode.UNAVAILABLE,
    503: StatusCode.UNAVAILABLE,
    504: StatusCode.DEADLINE_EXCEEDED,
}
"""The code of a refusal by its HTTP status."""


def healthy(result: Any) -> grpc.HealthCheckReply:
    """Return the version."""
    return grpc.HealthCheckReply(title=result["title"], version=result["version"])


def done(result: Any) -> grpc.CollectionOperationResponse:
    """Return that something was done to a collection, or that there was none."""
    return grpc.CollectionOperationResponse(result=result)


def info(result: Any) -> grpc.GetCollectionInfoResponse:
    """Return what a collection says of itself."""
    found = models.CollectionInfo.model_validate(result)
    return grpc.GetCollectionInfoResponse(result=RestToGrpc.convert_collection_info(found))


def names(result: Any) -> grpc.ListCollectionsResponse:
    """Return the names of collections."""
    found = [grpc.CollectionDescription(name=one["name"]) for one in result["collections"]]
    return grpc.ListCollectionsResponse(collections=found)


def existence(result: Any) -> grpc.CollectionExistsResponse:
    """Return whether there is a collection."""
    found = grpc.CollectionExists(exists=result["exists"])
    return grpc.CollectionExistsResponse(result=found)


def aliases(result: Any) -> grpc.ListAliasesResponse:
    """Return aliases."""
    found = [grpc.AliasDescription(**one) for one in result["aliases"]]
    return grpc.ListAliasesResponse(aliases=found)


def written(result: Any) -> grpc.PointsOperationResponse:
    """Return what came of a write."""
    return grpc.PointsOperationResponse(result=_update_result(result))


def several_written(result: Any) -> grpc.UpdateBatchResponse:
    """Return what came of several writes."""
    return grpc.UpdateBatchResponse(result=[_update_result(one) for one in result])


def _update_result(result: Any) -> grpc.UpdateResult:
    return RestToGrpc.convert_update_result(models.UpdateResult.model_validate(result))


def points(result: Any) -> grpc.GetResponse:
    """Return points."""
    return grpc.GetResponse(result=[_point(one) for one in result])


def page(result: Any) -> grpc.ScrollResponse:
    """Return a page of points, and where the next one begins."""
    following = result["next_page_offset"]
    return grpc.ScrollResponse(
        result=[_point(one) for one in result["points"]],
        next_page_offset=None
        if following is None
        else RestToGrpc.convert_extended_point_id(following),
    )


def _point(found: Any) -> grpc.RetrievedPoint:
    filled = {**found, "payload": found["payload"] or {}}
    return RestToGrpc.convert_retrieved_point(models.Record.model_validate(filled))


def counted(result: Any) -> grpc.CountResponse:
    """Return a number of points."""
    return grpc.CountResponse(result=grpc.CountResult(count=result["count"]))


def best(result: Any) -> grpc.QueryResponse:
    """Return the points that fit best."""
    found = [models.ScoredPoint.model_validate(one) for one in result["points"]]
    return grpc.QueryResponse(result=[RestToGrpc.convert_scored_point(one) for one in found])
