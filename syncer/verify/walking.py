"""The first look: the table once in key order, along what the target holds.

Both come in the order of whole numbers where a key is one, so a window of rows can be judged as
soon as the points up to its last key are there, while the next ones are still on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from syncer.keys import Key, PointId, decode_key, point_id
from syncer.model import Row
from syncer.plan import OPEN, Action
from syncer.ports import Pipeline
from syncer.records import Record, RecordPage
from syncer.result import NONE, Sample
from syncer.verify import rows
from syncer.verify.sampling import Reservoir
from syncer.verify.scratch import Scratch

_MOST_WAITING = 10_000  # points in memory, for which no row has come yet

Report = Callable[[int], None]
"""Hears how many more points or rows were read."""


@dataclass(slots=True)
class Gathering:
    """Brings what all points say of themselves, page by page, as far as it is wanted.

    Points wait in memory for the row that accounts for them; those that its window has passed by
    go into the scratch file.
    """

    pipeline: Pipeline
    file: Scratch
    report: Report
    points: int = 0
    _waiting: dict[PointId, Record] = field(default_factory=dict)
    _numbers: dict[PointId, int] = field(default_factory=dict)  # in the file, of those taken last
    _next: PointId | None = 0
    _pages: Iterator[RecordPage] = field(init=False)

    def __post_init__(self) -> None:
        self._pages = self._read("")

    def take(self, ids: Sequence[PointId]) -> dict[PointId, Record]:
        """Return the points with these ids and let go of them, once they all were read."""
        wanted = set(ids)
        largest = max((one for one in ids if isinstance(one, int)), default=-1)
        while isinstance(self._next, int) and self._next <= largest:
            self._page()
            if len(self._waiting) > _MOST_WAITING:
                self._put_away(self._waiting.keys() - wanted)
        self._numbers = {}
        taken = {one: self._waiting.pop(one) for one in ids if one in self._waiting}
        self._put_away([one for one in self._waiting if isinstance(one, int) and one < largest])
        if self.file.kept and len(taken) < len(ids):
            found = self.file.at(wanted - taken.keys())
            self._numbers = {one: number for one, (number, _) in found.items()}
            taken |= {one: record for one, (_, record) in found.items()}
        return taken

    def account_for(self, record: Record) -> None:
        """Hear that a point that was taken belongs to its row."""
        if record.id in self._numbers:
            self.file.see(self._numbers[record.id])

    def give_back(self, records: Iterable[Record]) -> None:
        """Keep points that were taken for rows which they do not speak of."""
        self.file.put(record for record in records if record.id not in self._numbers)

    def all(self) -> None:
        """Read all that is left into the file."""
        self._put_away(list(self._waiting))
        while self._next is not None:
            self._page()
            self._put_away(list(self._waiting))

    def lacking(self) -> None:
        """Keep the rows whose points lack a vector as suspects, those that are open apart."""
        for vector in filter(None, (self.pipeline.layout.vector, self.pipeline.layout.sparse)):
            for page in self._read(vector):
                self.file.suspect(
                    (record.row or "", None)
                    for record in page.records
                    if rows.key_of(record.row) is not None and record.content != OPEN
                )

    def _put_away(self, ids: Iterable[PointId]) -> None:
        self.file.put([self._waiting.pop(one) for one in ids])

    def _page(self) -> None:
        page = next(self._pages)
        self._next = page.next
        self._waiting.update((record.id, record) for record in page.records)
        self.points += len(page.records)
        self.report(len(page.records))

    def _read(self, lacking: str) -> Iterator[RecordPage]:
        offset: PointId | None = None
        while True:
            ask = partial(self.pipeline.target.records, offset, lacking=lacking)
            page = self.pipeline.retry(ask)
            yield page
            if page.next is None:
                return
            offset = page.next


@dataclass(slots=True)
class Walk:
    """Goes along the table once and takes the points that its rows account for."""

    pipeline: Pipeline
    file: Scratch
    gathering: Gathering
    reservoir: Reservoir
    unindexable: Sample[str] = NONE

    def all_rows(self, now: str, report: Report) -> int:
        """Keep all that differs in either store; return how many rows were looked at."""
        seen = 0
        for window in self._windows(now):
            self._window(window)
            seen += len(window)
            report(len(window))
        self.gathering.all()
        self._spread()
        self._leftovers()
        self.gathering.lacking()
        return seen

    def _windows(self, now: str) -> Iterator[tuple[Row, ...]]:
        after: Key | None = None
        while True:
            window, after = self.pipeline.retry(self.pipeline.source.walk, after, now)
            yield window
            if after is None:
                return

    def _window(self, window: tuple[Row, ...]) -> None:
        layout = self.pipeline.layout
        ids = {row.key: point_id(layout.table, row.key) for row in window}
        if not all(isinstance(one, int) for one in ids.values()):
            self.gathering.all()
        held = self.gathering.take(list(ids.values()))
        plan = rows.plan(window, held, layout)
        suspects: list[tuple[str, None]] = []
        for planned in plan.rows:
            whole = planned.action is Action.UNCHANGED
            record = held.get(ids[planned.key])
            if record is not None and record.row == planned.row:
                self.gathering.account_for(held.pop(record.id))
                if record.chunks != 1:  # judged when all points are there
                    self.file.put_spread(record, whole=whole)
                    if whole:
                        continue
            if whole:
                self.reservoir.offer(planned.key)
            elif planned.action is not Action.ABSENT:
                suspects.append((planned.row, None))
        self.gathering.give_back(held.values())
        self.file.suspect(suspects)
        evicted = {planned.row for planned in plan.rows}
        unindexable = [one.row for one in plan.quarantined if one.row not in evicted]
        self.unindexable = self.unindexable.plus(Sample.of(unindexable))

    def _spread(self) -> None:
        """Mark the further points of rows of several chunks, and keep those that are not whole."""
        for first, unchanged in self.file.spread():
            key = decode_key(first.row or "")
            ids = rows.further_ids(self.pipeline.layout, key, first.chunks, self.gathering.points)
            found = self.file.at(ids)
            for number, record in found.values():
                if record.row == first.row:
                    self.file.see(number)
            records = {one: record for one, (_, record) in found.items()}
            if unchanged and not rows.is_whole(first, ids, records):
                self.file.suspect([(first.row or "", None)])
            elif unchanged:
                self.reservoir.offer(key)

    def _leftovers(self) -> None:
        """Keep the points that no row has accounted for: foreign ones, and those of other rows."""
        for page in self.file.unseen():
            self.file.suspect(
                ((found.row or "") if rows.key_of(found.row) is not None else "", found.id)
                for found in page
            )
