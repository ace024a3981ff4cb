"""A table whose rows carry the time of their last change: a keyset pass with a look-back.

A pass reads every row whose stamp is later than the settled instant, or names no time. The settled
instant follows the stamps in the table, not the clock: a pass marks the newest stamp there is, and
when a pass that began a look-back later has ended, everything up to the mark is settled. So a row
is read again for a while, whatever clock or zone its stamp comes from, and then never again.
Nothing is written to the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from syncer.keys import Key, decode_key, encode_key
from syncer.model import Position, Window
from syncer.source.append import AppendSource
from syncer.source.candidates import Candidate, Candidates
from syncer.source.collector import Collector, Limits
from syncer.source.database import BUSY_SLICE
from syncer.source.order import key_order
from syncer.source.progress import Mark, Pass, Progress, progress_from
from syncer.source.stamps import FIRST_SECOND, SECOND, format_of, instant_of, text_of
from syncer.table import TableSpec, check_columns

_PAGE = 1000  # candidates that are looked at in one read transaction


@dataclass(frozen=True, slots=True)
class Stamps:
    """The change column, and for how many seconds a row is read again."""

    column: str
    look_back: float = 120.0


class StampedSource(AppendSource):
    """Reads a table by key and change column; see ``syncer.ports.Source`` for the contract."""

    def __init__(
        self,
        path: Path,
        spec: TableSpec,
        stamps: Stamps,
        limits: Limits | None = None,
        busy: float = BUSY_SLICE,
    ) -> None:
        self._stamps = stamps
        self._look_back = round(stamps.look_back * SECOND)
        self._began: tuple[int, int] | None = None  # run and beginning of the latest pass
        self._passed: int | None = None  # the run whose pass has ended
        super().__init__(path, spec, limits, busy)
        order = key_order(self._connection, spec)
        self._candidates = Candidates(self._connection, spec.table, order, stamps.column)

    def _check_log(self) -> None:
        """See that the change column is there, which takes the log's place."""
        check_columns(self.columns, self._spec, {"updated_at": self._stamps.column})

    def warnings(self) -> list[str]:
        """Return what is risky about the table, in words."""
        found = super().warnings()
        if not self._candidates.by_index:
            found.append(
                f"{self._spec.table}.{self._stamps.column} has no index: the whole table is "
                "scanned for changes, in every run and twice if there are any."
            )
        return found

    def formats(self) -> dict[str, int]:
        """Return how many stamps there are of each format, the most frequent first; reads all."""
        with self._snapshot():
            counted = Counter(format_of(value) for value in self._candidates.values())
        return dict(counted.most_common())

    def is_idle(self, position: Position, now: str) -> bool:
        """Say whether there is nothing to read from `position` on, nor to read again."""
        if not super().is_idle(position, now):
            return False
        with self._snapshot():
            settled = self._settled(position, _clock(now))
            return next(self._candidates.since(settled), None) is None

    def is_caught_up(self, position: Position, now: str) -> bool:
        """Say whether every change that shows was read once; rows without a time do not count."""
        with self._snapshot():
            self._check_forward(position)
            unread = next(self._unread(position, _clock(now)), None)
            return (
                position.walked
                and unread is None
                and not (self._has_new(position) or self._expired.has_any(position, now))
            )

    def pending(self, position: Position) -> int:
        """Return how many rows are behind the last key, or have a stamp that was not read yet."""
        now = _clock(datetime.now(UTC).isoformat())
        with self._snapshot():
            if not position.walked:
                return self._count_new(position)
            read = self._read_to(position)
            new = map(instant_of, self._candidates.values(_last_key(position)))
            unread = sum(1 for _ in self._unread(position, now))
            return unread + sum(not _is_between(read, stamp, now) for stamp in new)

    def oldest_change(self, position: Position, now: str) -> str | None:
        """Return the oldest stamp that was not read yet, or when the first row expired."""
        with self._snapshot():
            stamps = [found.instant for found in self._unread(position, _clock(now))]
            oldest = min((stamp for stamp in stamps if stamp is not None), default=None)
            expired = self._expired.first(position, now)
        known = [] if oldest is None else [text_of(oldest)]
        return min([*known, *([expired] if expired else [])], default=None)

    def gone(self, position: Position, *, head: int, now: str) -> Iterator[list[Key]]:
        """Yield, in pages, the keys of candidates whose rows are gone or out of scope."""
        if not position.walked:
            yield from super().gone(position, head=head, now=now)
            return
        settled = self._settled(position, _clock(now))  # as the pass will have it
        here, place, more = self._departures(), None, True
        while more:
            with self._snapshot():
                since = self._candidates.since(settled, place)
                page = list(islice(since, _PAGE))
                gone = [found.key for found in page if not here.is_member(found.key)]
            yield gone
            more = len(page) == _PAGE
            place = page[-1].place if page else None

    def _changed(self, position: Position, keys: Sequence[Key], now: str) -> set[str]:
        """Return which of these rows every pass reads again: not settled, or without a time."""
        settled = self._settled(position, _clock(now))
        found = ((key, self._candidates.stamps_of(key)) for key in keys)
        return {encode_key(key) for key, stamps in found if any(_is_open(settled, stamps))}

    def _read(self, position: Position, head: int, now: str) -> Window:
        window = super()._read(position, head, now)
        ends_walk = window.next.walked and not position.walked
        missing = ends_walk and self._passed != head  # the walk began in an earlier run
        return replace(window, more=window.more or missing)

    def _serve_changes(
        self, position: Position, head: int, now: str, window: Collector
    ) -> Position:
        """Add the rows of the pass under way, or of a new one."""
        clock = _clock(now)
        if not position.walked:
            if position.last_id is not None:
                return position
            self._passed = head  # the walk reads everything that is there now
            return self._before_walk(position, clock)
        if self._passed == head:
            return position
        settled, progress = instant_of(position.settled), progress_from(position.cursor)
        under_way = progress.under_way
        if under_way is not None and under_way.by_index != self._candidates.by_index:
            under_way = None  # an index came or went: its place means nothing in the other order
        if under_way is None:
            settled = self._settled(position, clock)
            under_way = self._survey(settled, clock)
            self._began = (head, clock)
        under_way, ended = self._go_on(settled, under_way, now, window)
        if ended is None:
            window.cut = True
            progress = replace(progress, under_way=under_way)
        else:
            if self._began == (head, under_way.began):
                self._passed = head
            else:  # it began in an earlier run
                window.cut = True
            progress = replace(progress, under_way=None)
            if ended:
                settled, progress = self._settle(settled, progress, under_way)
        text = None if settled is None else text_of(settled)
        return replace(position, settled=text, cursor=progress.as_text(settled))

    def _before_walk(self, position: Position, clock: int) -> Position:
        """Settle what is old when a walk begins, so that no edit beside the walk is missed."""
        newest = self._survey(None, clock).newest
        if newest is None:
            return replace(position, settled=None, cursor=None)
        progress = Progress(mark=Mark(newest, clock), read=newest)
        settled = text_of(self._before(newest))
        return replace(position, settled=settled, cursor=progress.as_text())

    def _survey(self, settled: int | None, clock: int) -> Pass:
        """Count the candidates of a pass that begins now, and find the newest stamp so far."""
        count, newest = 0, None
        for found in self._candidates.since(settled):
            count += 1
            if found.instant is not None and found.instant <= clock:
                newest = found.instant if newest is None else max(newest, found.instant)
        return Pass(clock, newest, count, by_index=self._candidates.by_index)

    def _go_on(
        self, settled: int | None, under_way: Pass, now: str, window: Collector
    ) -> tuple[Pass, bool | None]:
        """Add the pass's next candidates; say whether it ended, and as a whole.

        What was stamped since it began is left to the next pass, and no more rows are read than
        there were: so it ends although a writer never does. None stands for a pass under way.
        """
        left, place = under_way.left, under_way.place
        for found in self._candidates.since(settled, place):
            if _is_between(under_way.began, found.instant, _clock(now)):
                continue
            if not left:
                return under_way, False
            if window.full:
                return replace(under_way, left=left, place=place), None
            if found.key not in window.rows:
                window.add(self._row(found.key, now))
            left, place = left - 1, found.place
        return under_way, True

    def _settle(
        self, settled: int | None, progress: Progress, ended: Pass
    ) -> tuple[int | None, Progress]:
        """Return what is settled now that a pass has read everything, and the next mark."""
        mark, newest = progress.mark, ended.newest
        if mark is not None and ended.began < mark.noted:  # the clock was set back
            mark = None
        if mark is not None and ended.began >= mark.noted + self._look_back:
            settled = mark.instant if settled is None else max(settled, mark.instant)
            mark = None
        if newest is None:
            return settled, Progress(mark, progress.read)
        if mark is None and (settled is None or newest > settled):
            mark = Mark(newest, ended.began)
        return settled, Progress(mark, max(newest, progress.read or newest))

    def _settled(self, position: Position, clock: int) -> int | None:
        """Return the settled instant; lower if the clock was set back behind it."""
        settled = instant_of(position.settled)
        return None if settled is None else min(settled, self._before(clock))

    def _before(self, instant: int) -> int:
        return max(instant - self._look_back, FIRST_SECOND * SECOND)

    def _read_to(self, position: Position) -> int | None:
        found = [progress_from(position.cursor).read, instant_of(position.settled)]
        return max((each for each in found if each is not None), default=None)

    def _unread(self, position: Position, clock: int) -> Iterator[Candidate]:
        """Yield the rows whose stamp is later than the last pass has seen, and not in the future.

        None during the walk, which reads them all.
        """
        if position.walked:
            read = self._read_to(position)
            for found in self._candidates.since(read):
                if _is_between(read, found.instant, clock):
                    yield found


def _last_key(position: Position) -> Key | None:
    return decode_key(position.last_id) if position.last_id is not None else None


def _is_open(settled: int | None, stamps: list[int | None]) -> Iterator[bool]:
    return (stamp is None or settled is None or stamp > settled for stamp in stamps)


def _is_between(after: int | None, instant: int | None, until: int) -> bool:
    return instant is not None and (after is None or after < instant) and instant <= until


def _clock(now: str) -> int:
    return (datetime.fromisoformat(now) - datetime.fromtimestamp(0, UTC)) // timedelta(
        microseconds=1
    )
