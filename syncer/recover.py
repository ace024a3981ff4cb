"""Bringing foreign points home: each becomes a row, and then the row's own point replaces it.

First the row is committed, with a record of where it came from; then it is synced as any row is;
and only when its own point is seen in the collection, the foreign one goes. Killed anywhere, the
next run finds row and record there and goes on behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from syncer.foreign import Foreign, Form, Memory, Unfit, memory_of
from syncer.keys import MAX_INTEGER_ID, Key, PointId, encode_key
from syncer.model import Held
from syncer.plan import OPEN
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.retry import Retry
from syncer.worker import Terms, look_at
from syncer.write import claim, seal

_SPARE = 1000  # ids beyond those needed, for what others write meanwhile


class Origin(Protocol):
    """Where foreign points are."""

    def pages(self) -> Iterator[list[Foreign]]:
        """Yield them in pages; may be called again, and while they are deleted."""


class Table(Protocol):
    """Where rows are written: see ``syncer.canonical.CanonicalTable``."""

    def last_id(self) -> int:
        """Return the largest id that a row was ever given."""

    def bring_home(
        self, memories: Sequence[Memory], collection: str, free: Sequence[int]
    ) -> dict[PointId, int | str]:
        """Make a row of each, once; return its id, or why the table does not take it."""


class File(Protocol):
    """Where points are written that have no table to go to; see ``syncer.exported.Export``."""

    def add(self, point: Foreign, collection: str) -> bool:
        """Add a point; False if it is there already. Raises ValueError if it is no JSON."""


class Taken(Protocol):
    """Says which point ids are in use."""

    def look_up(self, ids: Mapping[PointId, Key]) -> dict[Key, Held]:
        """Return what the points with these ids say of their rows; without the missing ones."""


class Fate(StrEnum):
    """What became of a foreign point."""

    HOME = "home"  # its row is in the table, the row's own point in its place
    WAITS = "waits"  # its row is in the table, but not in the collection; the point stays
    LEFT = "left"  # nothing can be made of it
    FOUND = "found"  # it would be brought home
    EXPORTED = "exported"  # it is in the file, and stays where it is
    DELETED = "deleted"  # somebody has asked for it


@dataclass(frozen=True, slots=True)
class Told:
    """A foreign point and what became of it; `row` is the id of its row, `why` what holds it up."""

    point: Foreign
    fate: Fate
    row: int | None = None
    why: str = ""


Tell = Callable[[Told], None]


@dataclass(frozen=True, slots=True)
class Recovering:
    """What recovering works with; `blocked` returns rows whose id a foreign point has taken."""

    pipeline: Pipeline
    terms: Terms
    origin: Origin
    form: Form
    blocked: Callable[[], Sequence[Key]]


@dataclass(slots=True)
class Recovered:
    """What recovering has come to."""

    result: SyncResult
    counts: dict[Fate, int] = field(default_factory=lambda: dict.fromkeys(Fate, 0))

    @property
    def deletable(self) -> int:
        """How many points are still there, and may go if somebody says so."""
        return sum(self.counts[fate] for fate in (Fate.WAITS, Fate.LEFT, Fate.EXPORTED))

    def counted_on(self, before: Mapping[Fate, int]) -> dict[Fate, int]:
        """Return the counts of `before` once so many of those that stayed are deleted."""
        deleted = self.counts[Fate.DELETED]
        counts = {**before, Fate.DELETED: deleted}
        for fate in (Fate.EXPORTED, Fate.WAITS, Fate.LEFT):
            gone = min(deleted, counts[fate])
            counts[fate] -= gone
            deleted -= gone
        return counts


def recover(work: Recovering, table: Table, tell: Tell) -> Recovered:
    """Bring home every foreign point that can be; may be repeated.

    Where a row has to wait because a foreign point has its id, that point goes first, and a second
    pass sees to the row. Ends early, between two pages, when a stop is asked for.
    """
    pipeline, stop = work.pipeline, work.terms.stop
    done = nothing_yet(pipeline)
    with stop.finishing_windows():
        waiting = _pass(work, table, done, tell, first=True)
        _sum(done, look_at(pipeline, work.blocked(), work.terms))
        if waiting and not stop.asked:
            _pass(work, table, done, tell, first=False)
        if done.result.wrote or done.counts[Fate.HOME]:
            seal(pipeline)
    done.result = replace(done.result, more=stop.asked)
    return done


def nothing_yet(pipeline: Pipeline) -> Recovered:
    """Return what recovering begins with."""
    position = pipeline.retry(pipeline.state.position)
    return Recovered(SyncResult(position.generation, position))


def _pass(work: Recovering, table: Table, done: Recovered, tell: Tell, *, first: bool) -> int:
    """Go over all foreign points; return how many have a row that is not in the collection.

    Those that cannot be one are told in the first pass, those that wait in the second.
    """
    waiting = 0
    for page in work.origin.pages():
        if work.terms.stop.asked:
            break
        for told in _bring(work, table, done, page):
            waiting += told.fate is Fate.WAITS
            if told.fate is Fate.HOME or first is (told.fate is Fate.LEFT):
                done.counts[told.fate] += 1
                tell(told)
    return waiting


def _bring(
    work: Recovering, table: Table, done: Recovered, page: Sequence[Foreign]
) -> Iterator[Told]:
    """Bring one page home: rows, their own points, and then the foreign ones go."""
    pipeline, memories = work.pipeline, []
    for point in page:
        found = memory_of(point, work.form)
        if isinstance(found, Unfit):
            yield Told(point, Fate.LEFT, why=found.why)
        else:
            memories.append(found)
    homes = make_rows(pipeline.retry, table, pipeline.target, memories, work.form.collection)
    rows = {point: row for point, row in homes.items() if isinstance(row, int)}
    keys: list[Key] = [(row,) for row in rows.values()]
    _sum(done, look_at(pipeline, keys, work.terms))
    there = _in_place(pipeline, keys)
    gone = [point for point, row in rows.items() if (row,) in there]
    if gone:
        claim(pipeline)
        pipeline.retry(pipeline.target.delete, gone)
    for memory in memories:
        home = homes[memory.point.id]
        if isinstance(home, str):
            yield Told(memory.point, Fate.LEFT, why=home)
        elif (home,) in there:
            yield Told(memory.point, Fate.HOME, row=home)
        else:
            yield Told(memory.point, Fate.WAITS, row=home, why="its row is not in the collection")


def make_rows(
    retry: Retry, table: Table, taken: Taken, memories: Sequence[Memory], collection: str
) -> dict[PointId, int | str]:
    """Return the row of each memory, new ones made; or why the table does not take it.

    A new row gets an id that no point has: a foreign one that has it would keep the row out.
    """

    def attempt() -> dict[PointId, int | str]:
        first = table.last_id() + 1
        last = min(first + len(memories) + _SPARE, MAX_INTEGER_ID)
        ids: dict[PointId, Key] = {number: (number,) for number in range(first, last + 1)}
        used = taken.look_up(ids)
        free = [key[0] for key in ids.values() if key not in used]
        return table.bring_home(memories, collection, [one for one in free if isinstance(one, int)])

    return retry(attempt) if memories else {}


def _in_place(pipeline: Pipeline, keys: Sequence[Key]) -> set[Key]:
    """Return those of the keys whose rows' own points are whole in the collection."""
    ids: dict[PointId, Key] = {key[0]: key for key in keys if isinstance(key[0], int)}
    held = pipeline.retry(pipeline.target.look_up, ids) if ids else {}
    return {
        key
        for key, record in held.items()
        if record.row == encode_key(key) and record.content != OPEN
    }


def _sum(done: Recovered, results: Iterator[SyncResult]) -> None:
    for result in results:
        done.result = done.result.plus(result)


def export(work: Recovering, file: File, tell: Tell) -> Recovered:
    """Write every foreign point into a file, each once; they stay where they are."""
    done = nothing_yet(work.pipeline)
    with work.terms.stop.finishing_windows():
        for page in work.origin.pages():
            if work.terms.stop.asked:
                break
            for point in page:
                told, _ = exported(point, file, work.form.collection)
                done.counts[told.fate] += 1
                tell(told)
    done.result = replace(done.result, more=work.terms.stop.asked)
    return done


def exported(point: Foreign, file: File, collection: str) -> tuple[Told, bool]:
    """Write one point into a file; return what became of it, and whether it was not there yet."""
    try:
        added = file.add(point, collection)
    except ValueError as error:
        return Told(point, Fate.LEFT, why=f"its payload is no JSON: {type(error).__name__}"), False
    return Told(point, Fate.EXPORTED), added


def delete(work: Recovering, may_go: Callable[[Foreign], bool], tell: Tell) -> Recovered:
    """Delete the foreign points that may go; whoever calls has had it confirmed."""
    pipeline, stop = work.pipeline, work.terms.stop
    done = nothing_yet(pipeline)
    with stop.finishing_windows():
        for page in work.origin.pages():
            if stop.asked:
                break
            gone = [point for point in page if may_go(point)]
            if gone:
                claim(pipeline)
                pipeline.retry(pipeline.target.delete, [point.id for point in gone])
            for point in gone:
                done.counts[Fate.DELETED] += 1
                tell(Told(point, Fate.DELETED))
        if done.counts[Fate.DELETED]:
            seal(pipeline)
    done.result = replace(done.result, more=stop.asked)
    return done
