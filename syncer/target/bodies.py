"""What points are on the wire: JSON that is made once, measured, and sent as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import orjson

from syncer.keys import PointId, canonical_json
from syncer.model import SYNC_KEY, Point, SparseVector, Vector

Written = Mapping[PointId, bytes]
"""Points as they are sent, by id."""

OPENED = {"content": "", "payload": "", "text": ""}
"""What the record of a point says whose vectors and payload are being replaced."""


def written(points: Sequence[Point]) -> Written:
    """Return points as the JSON that an upsert carries; raises ValueError if one is no JSON.

    Numbers have the digits that a float32 needs and no more: Qdrant keeps no others, and most of
    a point is numbers.
    """
    return {point.id: _json(point) for point in points}


def upsert(ids: Sequence[PointId], found: Written) -> bytes:
    """Return the body of an upsert of the points with these ids.

    The client would validate each number, look for texts to embed in each point, and try each
    form that a point may have. What comes from here has been checked, so none of it is done again.
    """
    return b'{"points":[%b]}' % b",".join(found[one] for one in ids)


def replacement(points: Sequence[Point], gone: Sequence[str]) -> bytes:
    """Return the body of a batch that replaces vectors and payload keys of points, in place.

    They are opened first; the payload keys `gone` are taken out, and all others stay.
    """
    ids = _exactly([point.id for point in points])
    vectors = [
        {"id": _exactly(point.id), "vector": _named(point)} for point in points if point.vectors
    ]
    operations: list[object] = [
        {"set_payload": {"payload": OPENED, "key": SYNC_KEY, "points": ids}},
        *([{"update_vectors": {"points": vectors}}] if vectors else []),
        *([{"delete_payload": {"keys": list(gone), "points": ids}}] if gone else []),
    ]
    operations += [
        {"set_payload": {"payload": _exactly(point.payload), "points": _exactly([point.id])}}
        for point in points
    ]
    return orjson.dumps({"operations": operations}, option=orjson.OPT_SERIALIZE_NUMPY)


def _json(point: Point) -> bytes:
    whole = {
        "id": _exactly(point.id),
        "vector": _named(point),
        "payload": _exactly(point.payload),
    }
    return orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY)


def _named(point: Point) -> dict[str, object]:
    return {name: _plain(vector) for name, vector in point.vectors.items()}


def _exactly(value: object) -> orjson.Fragment:
    """Return JSON not made by orjson, which writes null for NaN and refuses large integers."""
    return orjson.Fragment(canonical_json(value).encode())


def _plain(vector: Vector | SparseVector) -> object:
    if isinstance(vector, SparseVector):
        return {"indices": list(vector.indices), "values": np.asarray(vector.values, np.float32)}
    return np.asarray(vector, np.float32)
