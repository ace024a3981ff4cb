"""A target in a dictionary: small, real, and held to the same contract as the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from syncer.keys import Key, PointId
from syncer.model import SYNC_KEY, Held, Point, Reason, SparseVector, StoredVectors, Vector
from syncer.records import Record, RecordPage

Vectors = Mapping[str, Vector | SparseVector]


class FakeTarget:
    """Keeps points by id; see ``syncer.ports.Target``."""

    def __init__(self, *, preserve: bool = False) -> None:
        self._preserve = preserve
        self.points: dict[PointId, Point] = {}
        self._token: str | None = None

    def count(self) -> int:
        """Return the number of points."""
        return len(self.points)

    def look_up(self, ids: Mapping[PointId, Key]) -> dict[Key, Held]:
        """Read the commit records."""
        return {
            key: _held(self.points[identifier])
            for identifier, key in ids.items()
            if identifier in self.points
        }

    def stored(self, ids: Sequence[PointId], names: Sequence[str]) -> list[StoredVectors]:
        """Read vectors."""
        return [
            _stored(self.points[identifier], names)
            for identifier in ids
            if identifier in self.points
        ]

    def pieces(self, ids: Sequence[PointId]) -> dict[PointId, str]:
        """Read texts."""
        there = [self.points[one] for one in ids if one in self.points]
        return {point.id: str(point.payload.get("document")) for point in there}

    def token(self) -> str | None:
        """Return the token."""
        return self._token

    def write_token(self, token: str) -> None:
        """Keep the token."""
        self._token = token

    def batches(self, points: Sequence[Point]) -> list[Sequence[Point]]:
        """Cut into seven points each."""
        return [points[start : start + 7] for start in range(0, len(points), 7)]

    def upsert(self, points: Sequence[Point]) -> dict[PointId, tuple[Reason, str]]:
        """Replace whole points, or what of them is named."""
        refused = _refused(points)
        for point in points:
            if point.id not in refused:
                self.points[point.id] = self._kept(point, point.vectors)
        return refused

    def _kept(self, point: Point, vectors: Vectors) -> Point:
        """Return a point as it is to be, with what is to be preserved of the one that is there."""
        old = self.points.get(point.id) if self._preserve else None
        if old is None:
            return replace(point, vectors=vectors)
        return Point(point.id, {**old.payload, **point.payload}, {**old.vectors, **vectors})

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Merge payloads of points that are there, write the others bare."""
        for point in held:
            old = self.points[point.id]
            self.points[point.id] = Point(point.id, {**old.payload, **point.payload}, old.vectors)
        self.upsert(new)

    def overwrite(self, points: Sequence[Point]) -> dict[PointId, tuple[Reason, str]]:
        """Replace payloads, or the keys that are named."""
        refused = _refused(points)
        for point in points:
            if point.id not in refused:
                self.points[point.id] = self._kept(point, self.points[point.id].vectors)
        return refused

    def delete(self, ids: Sequence[PointId]) -> None:
        """Drop points."""
        for identifier in ids:
            self.points.pop(identifier, None)

    def row_page(self, offset: PointId | None = None) -> tuple[list[str], PointId | None]:
        """Read the rows' keys, seven points a page."""
        page = self.records(offset)
        return [one.row for one in page.records if one.row is not None], page.next

    def records(self, offset: PointId | None = None, *, lacking: str = "") -> RecordPage:
        """Read seven records at a time."""
        ids = sorted(self.points, key=lambda one: (isinstance(one, str), one))
        ids = [one for one in ids if lacking not in self.points[one].vectors]
        first = (isinstance(offset, str), offset)  # it may be gone by now
        before = (one for one in ids if offset is not None and (isinstance(one, str), one) < first)
        start = sum(1 for _ in before)
        following = ids[start + 7] if start + 7 < len(ids) else None
        return RecordPage(self.records_of(ids[start : start + 7]), following)

    def records_of(self, ids: Sequence[PointId]) -> tuple[Record, ...]:
        """Read some records."""
        return tuple(_record(self.points[one]) for one in ids if one in self.points)

    def lacking(self, vector: str, ids: Sequence[PointId]) -> set[PointId]:
        """Look for the vector."""
        there = [one for one in ids if one in self.points]
        return {one for one in there if vector not in self.points[one].vectors}

    def vectors(self, vector: str, ids: Sequence[PointId]) -> dict[PointId, Vector]:
        """Read dense vectors."""
        found = {one: self.points[one].vectors.get(vector) for one in ids if one in self.points}
        return {
            one: vector
            for one, vector in found.items()
            if vector is not None and not isinstance(vector, SparseVector)
        }


def _record(point: Point) -> Record:
    said = point.payload.get(SYNC_KEY)
    if not isinstance(said, dict):
        return Record(point.id, None)
    return Record(point.id, **said)


def _refused(points: Sequence[Point]) -> dict[PointId, tuple[Reason, str]]:
    """Refuse what no Qdrant takes."""
    return {
        point.id: (Reason.REFUSED, "its id is no id") for point in points if not _is_id(point.id)
    }


def _is_id(identifier: PointId) -> bool:
    if isinstance(identifier, int):
        return 0 <= identifier < 2**64
    try:
        return bool(UUID(identifier))
    except ValueError:
        return False


def _stored(point: Point, names: Sequence[str]) -> StoredVectors:
    record = point.payload.get(SYNC_KEY)
    vectors = {name: vector for name, vector in point.vectors.items() if name in names}
    if not isinstance(record, dict):
        return StoredVectors(point.id, None, "", 1, "", vectors)
    return StoredVectors(
        point.id, record["row"], record["text"], record["chunks"], record["content"], vectors
    )


def _held(point: Point) -> Held:
    record = point.payload.get(SYNC_KEY)
    if not isinstance(record, dict):
        return Held(None)
    return Held(
        record["row"], record["content"], record["payload"], record["chunks"], record["text"]
    )
