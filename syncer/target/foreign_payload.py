"""What somebody else has put into syncer's points, and how it goes over to another generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from qdrant_client import models

from syncer.errors import TargetError
from syncer.foreign import is_foreign
from syncer.keys import PointId
from syncer.model import SYNC_KEY, Point
from syncer.target.collection import Catalog
from syncer.target.connection import Connection
from syncer.target.points import GenerationTarget

_PAGE = 256  # points a request; what somebody else puts into one may be large

Payloads = Mapping[PointId, Mapping[str, object]]
"""Payloads by point id."""


class ForeignPayload:
    """The payload keys of a generation's points that are not syncer's."""

    def __init__(self, connection: Connection, origin: str, heir: str) -> None:
        self._connection = connection
        self._origin = origin
        self._heir = heir
        self._target = GenerationTarget(connection, heir)

    def carry(self, offset: PointId | None = None) -> PointId | None:
        """Let the keys of a page of points go over to the heir's points of the same ids.

        Returns where the next page begins, None after the last. May be repeated: what the heir has
        already is not written. Keys that the origin has not stay in the heir. Raises RefusedError
        if the origin does not say which keys are syncer's, RejectedError if they are refused,
        TargetError if the page does not lead any further.
        """
        with self._connection.translated(f"reading points of {self._origin}"):
            records, following = self._connection.client.scroll(
                self._origin,
                limit=min(_PAGE, self._most),
                offset=offset,
                with_payload=models.PayloadSelectorExclude(exclude=self._own),
                with_vectors=False,
            )
        if following is not None and following == offset:
            raise TargetError(
                f"{self._origin}: the server gives the same page of points again and again",
                hint="Not all payload keys could be read, so the alias was not moved. See the "
                "server's log, then run again.",
            )
        here = self._foreign(records)
        there = self._held(list(here)) if here else {}
        self._target.add_keys(
            [
                Point(one, missing)
                for one, held in there.items()
                if (missing := _missing(here[one], held))
            ]
        )
        return following  # type: ignore[return-value] # a UUID comes as text

    def _held(self, ids: Sequence[PointId]) -> Payloads:
        """Return what the heir's points hold besides syncer's; missing points are out."""
        with self._connection.translated(f"reading points of {self._heir}"):
            records = self._connection.client.retrieve(
                self._heir,
                ids=list(ids),
                with_payload=models.PayloadSelectorExclude(exclude=self._own),
                with_vectors=False,
            )
        return {one.id: one.payload or {} for one in records}  # type: ignore[misc]

    def _foreign(self, records: Sequence[models.Record]) -> Payloads:
        """Return the foreign keys of points that are syncer's; those without any are out."""
        found: dict[PointId, Mapping[str, object]] = {}
        for one in records:
            payload = dict(one.payload or {})
            if is_foreign(payload):
                continue
            del payload[SYNC_KEY]
            if payload:
                found[one.id] = payload  # type: ignore[index]
        return found

    @cached_property
    def _own(self) -> list[str]:
        """The keys that are or were syncer's in either generation, the record's apart."""
        catalog = Catalog(self._connection)
        return sorted(catalog.own_keys(self._origin) | catalog.own_keys(self._heir))

    @cached_property
    def _most(self) -> int:
        return GenerationTarget(self._connection, self._origin).page


def _missing(here: Mapping[str, object], there: Mapping[str, object]) -> dict[str, object]:
    """Return what is to be set; setting null takes a key away, so none and null are alike."""
    return {key: value for key, value in here.items() if there.get(key) != value}
