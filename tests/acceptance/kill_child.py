"""A run of syncer that kills itself with SIGKILL at a named moment; started by test_kill.py."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import memory

from syncer.keys import Key, PointId
from syncer.model import SYNC_KEY, Held, Outcome, Point, Position, Vector
from syncer.ports import Refused, State, Target
from syncer.records import Record, RecordPage
from syncer.state import utc_now
from syncer.verify import mend
from syncer.worker import Stop, Terms


def die() -> NoReturn:
    """End as a power cut would: no handler, no flush, no clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class KillingState:
    """The real state, which does not survive the named moment."""

    def __init__(self, inner: State, moment: str) -> None:
        self._inner, self._moment = inner, moment

    def position(self) -> Position:
        """Pass through."""
        return self._inner.position()

    def tokens(self) -> frozenset[str | None]:
        """Pass through."""
        return self._inner.tokens()

    def owns_token(self) -> bool:
        """Pass through."""
        return self._inner.owns_token()

    def begin_token(self, token: str, carried: str | None) -> None:
        """Die before, or right after."""
        self._die_at("before-token")
        self._inner.begin_token(token, carried)
        self._die_at("token-pending")

    def confirm_token(self, token: str) -> None:
        """Die before, or right after."""
        self._die_at("token-written")
        self._inner.confirm_token(token)
        self._die_at("before-write")

    def commit(self, old: Position, new: Position, outcome: Outcome) -> int:
        """Die before, or right after."""
        self._die_at("before-position")
        new_ones = self._inner.commit(old, new, outcome)
        self._die_at("after-position")
        return new_ones

    def due(self, now: str) -> list[Key]:
        """Pass through."""
        return self._inner.due(now)

    def withheld(self) -> list[Key]:
        """Pass through."""
        return self._inner.withheld()

    def quarantined_among(self, rows: Sequence[str]) -> set[str]:
        """Pass through."""
        return self._inner.quarantined_among(rows)

    def withheld_among(self, rows: Sequence[str]) -> set[str]:
        """Pass through."""
        return self._inner.withheld_among(rows)

    def deletes_since(self, moment: str) -> int:
        """Pass through."""
        return self._inner.deletes_since(moment)

    def rows(self) -> int:
        """Pass through."""
        return self._inner.rows()

    def reconciling(self) -> bool:
        """Pass through."""
        return self._inner.reconciling()

    def reconciled(self) -> None:
        """Pass through."""
        self._inner.reconciled()

    def _die_at(self, moment: str) -> None:
        if self._moment == moment:
            die()


class KillingTarget:
    """The real target, which does not survive the named moment."""

    def __init__(self, inner: Target, moment: str) -> None:
        self._inner, self._moment = inner, moment

    def look_up(self, ids: Mapping[PointId, Key]) -> dict[Key, Held]:
        """Pass through."""
        return self._inner.look_up(ids)

    def token(self) -> str | None:
        """Pass through."""
        return self._inner.token()

    def write_token(self, token: str) -> None:
        """Pass through."""
        self._inner.write_token(token)

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Die between the two kinds of opening, or after both."""
        self._inner.open_rows(held, [])
        self._die_at("half-opened")
        self._inner.open_rows([], new)
        self._die_at("opened")

    def batches(self, points: Sequence[Point]) -> Sequence[Sequence[Point]]:
        """Pass through."""
        return self._inner.batches(points)

    def upsert(self, points: Sequence[Point]) -> Refused:
        """Die between a row's chunks, or between two rows' chunks 0, or before them."""
        first = points[:1]
        if first and chunk_of(first[0]) == 0:
            self._die_at("before-chunk-0")
        refused = dict(self._inner.upsert(first))
        if first:
            self._die_at("between-chunks" if chunk_of(first[0]) else "between-rows")
        return refused | dict(self._inner.upsert(points[1:]))

    def overwrite(self, points: Sequence[Point]) -> Refused:
        """Die between the payloads of a row's chunks."""
        refused = dict(self._inner.overwrite(points[:1]))
        if points:
            self._die_at("between-payloads")
        return refused | dict(self._inner.overwrite(points[1:]))

    def row_page(self, offset: PointId | None = None) -> tuple[list[str], PointId | None]:
        """Pass through."""
        return self._inner.row_page(offset)

    def records(self, offset: PointId | None = None, *, lacking: str = "") -> RecordPage:
        """Pass through."""
        return self._inner.records(offset, lacking=lacking)

    def records_of(self, ids: Sequence[PointId]) -> tuple[Record, ...]:
        """Pass through."""
        return self._inner.records_of(ids)

    def lacking(self, vector: str, ids: Sequence[PointId]) -> set[PointId]:
        """Pass through."""
        return self._inner.lacking(vector, ids)

    def vectors(self, vector: str, ids: Sequence[PointId]) -> dict[PointId, Vector]:
        """Pass through."""
        return self._inner.vectors(vector, ids)

    def delete(self, ids: Sequence[PointId]) -> None:
        """Die between two deletes."""
        self._inner.delete(ids[:1])
        if ids:
            self._die_at("between-deletes")
        self._inner.delete(ids[1:])

    def _die_at(self, moment: str) -> None:
        if self._moment == moment:
            die()


def chunk_of(point: Point) -> int:
    """Return the number of the chunk that `point` is."""
    record = point.payload[SYNC_KEY]
    assert isinstance(record, dict)
    return int(record["chunk"])


def main() -> None:
    """Sync the memory in the folder, or repair its collection, and die at the moment."""
    folder, moment = Path(sys.argv[1]), sys.argv[2]
    settings = memory.settings_for(folder)
    with memory.pipeline_for(settings, chunker=memory.by_characters) as (pipeline, _):
        head = memory.head_of(pipeline)
        state = KillingState(pipeline.state, moment)
        target = KillingTarget(pipeline.target, moment)
        killing = replace(pipeline, state=state, target=target)
        if sys.argv[3:] == ["repair"]:
            mend(killing, Terms(utc_now, Stop()))
        else:
            memory.sync(killing, head=head)


if __name__ == "__main__":
    main()
