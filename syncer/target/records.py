"""What the points of one generation say of themselves, read page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from qdrant_client import models

from syncer.errors import TargetError
from syncer.keys import PointId
from syncer.model import SYNC_KEY, Vector
from syncer.records import Record, RecordPage
from syncer.target.connection import Connection
from syncer.target.rest import ask


class _Page(BaseModel):
    """What a scroll answers, as far as it is read; payloads are looked at one by one."""

    points: list[Any]  # dictionaries; to look at each would take a third of the time
    next_page_offset: int | str | None = None


class _Answer(BaseModel):
    result: _Page


Points = Sequence[tuple[PointId, Mapping[str, object] | None]]
"""Ids and payloads."""

Found = tuple[Points, PointId | None]
"""A page, and where the next one begins."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A page that was asked for before anybody wanted it."""

    lacking: str
    offset: PointId
    answer: Future[Found]


class Records:
    """Reads a generation's points without their texts, `page` of them a request.

    While a page of a server's is looked at, the next one is on its way: half of the time goes into
    waiting. Nothing else may be asked of the client until all pages were read or one has failed.
    """

    def __init__(self, connection: Connection, generation: str, page: int) -> None:
        self._connection = connection
        self._generation = generation
        self._page = page
        self._ahead: _Ahead | None = None
        self._thread = None if connection.local else ThreadPoolExecutor(max_workers=1)

    def records(self, offset: PointId | None = None, *, lacking: str = "") -> RecordPage:
        """Return a page of all points' records from the id `offset` on."""
        found, following = self._next(offset, lacking)
        if None not in (offset, following) and _order(following) <= _order(offset):
            raise TargetError(
                f"{self._generation}: the server gives the same page of points again and again",
                hint="Not all points could be read, so nothing was decided by them. See the "
                "server's log.",
            )
        if following is not None and self._thread is not None:
            answer = self._thread.submit(self._ask, _which(lacking), self._page, following)
            self._ahead = _Ahead(lacking, following, answer)
        return RecordPage(tuple(_record(*each) for each in found), following)

    def _next(self, offset: PointId | None, lacking: str) -> Found:
        """Return the page that was asked for ahead, if it is this one, else ask for it."""
        ahead, self._ahead = self._ahead, None
        with self._connection.translated(f"reading points of {self._generation}"):
            if ahead is not None and (ahead.offset, ahead.lacking) == (offset, lacking):
                return ahead.answer.result()
            return self._ask(_which(lacking), self._page, offset)

    def records_of(self, ids: Sequence[PointId]) -> tuple[Record, ...]:
        """Return the records of the points with these ids."""
        found = (each for some in self._cut(ids) for each in self._retrieve(some, None))
        return tuple(_record(each.id, each.payload) for each in found)

    def lacking(self, vector: str, ids: Sequence[PointId]) -> set[PointId]:
        """Return which of the points with these ids are there and have no vector of that name."""
        found: set[PointId] = set()
        for some in self._cut(ids):
            which = models.Filter(
                must=[models.HasIdCondition(has_id=list(some))], must_not=[_has(vector)]
            )
            with self._connection.translated(f"reading points of {self._generation}"):
                records, _ = self._ask(which, len(some), None)
            found |= {one for one, _ in records}
        return found

    def vectors(self, vector: str, ids: Sequence[PointId]) -> dict[PointId, Vector]:
        """Return the dense vectors of that name by point id."""
        found: dict[PointId, Vector] = {}
        for some in self._cut(ids):
            for record in self._retrieve(some, vector):
                held = record.vector
                if isinstance(held, dict) and isinstance(held.get(vector), list):
                    found[record.id] = held[vector]  # type: ignore[index,assignment]
        return found

    def _cut(self, ids: Sequence[PointId]) -> Iterator[Sequence[PointId]]:
        for start in range(0, len(ids), self._page):
            yield ids[start : start + self._page]

    def _ask(self, which: models.Filter | None, limit: int, offset: PointId | None) -> Found:
        asked = models.ScrollRequest(
            filter=which, limit=limit, offset=offset, with_payload=[SYNC_KEY], with_vector=False
        )
        if not self._connection.spec.rest:
            records, following = self._connection.client.scroll(
                self._generation,
                scroll_filter=which,
                limit=limit,
                offset=offset,
                with_payload=[SYNC_KEY],
                with_vectors=False,
            )
            return [(one.id, one.payload) for one in records], following  # type: ignore[misc,return-value]
        answer = ask(self._connection, self._generation, "/points/scroll", asked, _Answer)
        points = [(one["id"], one.get("payload")) for one in answer.result.points]
        return points, answer.result.next_page_offset

    def _retrieve(self, ids: Sequence[PointId], vector: str | None) -> list[models.Record]:
        with self._connection.translated(f"reading points of {self._generation}"):
            return self._connection.client.retrieve(
                self._generation,
                ids=list(ids),
                with_payload=[SYNC_KEY],
                with_vectors=[vector] if vector else False,
            )


def _which(lacking: str) -> models.Filter | None:
    return models.Filter(must_not=[_has(lacking)]) if lacking else None


def _has(vector: str) -> models.HasVectorCondition:
    return models.HasVectorCondition(has_vector=vector)


def _order(identifier: PointId | None) -> tuple[bool, PointId | None]:
    """Return by what ids are sorted: numbers first."""
    return isinstance(identifier, str), identifier


def _record(identifier: object, payload: Mapping[str, object] | None) -> Record:
    said = payload.get(SYNC_KEY) if payload else None
    if not isinstance(said, dict) or not isinstance(said.get("row"), str):
        return Record(identifier, None)  # type: ignore[arg-type]
    return Record(
        identifier,  # type: ignore[arg-type]
        said["row"],
        _number(said, "chunk", 0),
        _number(said, "chunks", 1),
        str(said.get("content", "")),
        str(said.get("payload", "")),
        str(said.get("text", "")),
    )


def _number(said: Mapping[str, object], name: str, default: int) -> int:
    found = said.get(name, default)
    return found if isinstance(found, int) else -1  # which no chunk of a whole row has
