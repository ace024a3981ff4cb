"""One step of the way from source to target, and nothing else.

The position moves last, and only after the target has confirmed. Every step may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TypeVar

from syncer import reuse
from syncer.keys import Key, point_id
from syncer.model import Embedded, Position, Reason, Window
from syncer.plan import Action, Plan, outcome, plan_rows, set_aside, withhold_deletes
from syncer.ports import Pipeline
from syncer.result import Sample, SyncResult
from syncer.write import write

T = TypeVar("T")


def sync_once(pipeline: Pipeline, *, head: int, now: str) -> SyncResult:
    """Bring one window of rows into the target, then move the position.

    `head` is the change log's sequence number up to which to go, `now` the time in UTC (ISO 8601,
    milliseconds). On any exception the position is untouched and the call may be repeated.
    """
    clock = _Stopwatch()
    position = pipeline.retry(pipeline.state.position)
    read = partial(pipeline.source.read, position, head=head, now=now)
    window = clock("read", lambda: pipeline.retry(read))
    return _bring(pipeline, position, window, clock)


def look_again(pipeline: Pipeline, keys: Sequence[Key], now: str) -> SyncResult:
    """Bring the rows with these keys into the target as they are now; the position stays."""
    clock = _Stopwatch()
    position = pipeline.retry(pipeline.state.position)
    rows = clock("read", lambda: pipeline.retry(pipeline.source.rows, keys, now))
    return _bring(pipeline, position, Window(rows, position), clock)


def _bring(pipeline: Pipeline, position: Position, window: Window, clock: _Stopwatch) -> SyncResult:
    """Plan, embed, write, and only then commit."""
    known = clock("read", lambda: reuse.foreseen(pipeline, window.rows))
    plan = clock("plan", lambda: _plan(pipeline, window, known))
    plan, vectors = clock("embed", lambda: _embed(pipeline, plan, known))
    if plan.writes:
        refused = clock("write", lambda: write(pipeline, plan, vectors))
        plan, vectors = _without(plan, vectors, refused)
    commit = partial(pipeline.state.commit, position, window.next, outcome(plan))
    new = clock("advance", lambda: pipeline.retry(commit))
    result = _result(position, window, plan, vectors, clock.seconds)
    return replace(result, newly_quarantined=new)


def preview_once(pipeline: Pipeline, position: Position, *, head: int, now: str) -> SyncResult:
    """Return what ``sync_once`` would do from `position`; nothing is embedded or written."""
    window = pipeline.retry(pipeline.source.read, position, head=head, now=now)
    return _result(position, window, _plan(pipeline, window, reuse.NOTHING), Embedded(()), {})


def _plan(pipeline: Pipeline, window: Window, known: reuse.Lent) -> Plan:
    ids = {point_id(pipeline.layout.table, row.key): row.key for row in window.rows}
    held = pipeline.retry(pipeline.target.look_up, ids) if ids else {}
    plan = plan_rows(window.rows, held, pipeline.layout, reuse.sparing(pipeline, known))
    return withhold_deletes(plan) if pipeline.withhold else plan


def _embed(pipeline: Pipeline, plan: Plan, known: reuse.Lent) -> tuple[Plan, Embedded]:
    """Return the vectors of the plan's chunks, rows with an unusable one set aside."""
    owners = [row.row for row in plan.having(Action.EMBED) for _ in row.chunks]
    chunks = [chunk for row in plan.having(Action.EMBED) for chunk in row.chunks]
    lent = reuse.borrow(pipeline, plan.having(Action.EMBED), known)
    embedded = reuse.embedded(pipeline, chunks, lent)
    return _without(plan, embedded, _unusable(owners, embedded))


def _without(
    plan: Plan, embedded: Embedded, bad: Mapping[str, tuple[Reason, str]]
) -> tuple[Plan, Embedded]:
    """Return plan and vectors with these rows set aside, each for its reason."""
    if not bad:
        return plan, embedded
    owners = [row.row for row in plan.having(Action.EMBED) for _ in row.chunks]
    kept = [index for index, row in enumerate(owners) if row not in bad]
    cut = frozenset(new for new, old in enumerate(kept) if old in embedded.truncated)
    vectors = [embedded.vectors[index] for index in kept]
    sparse = [embedded.sparse[index] for index in kept] if embedded.sparse else ()
    return set_aside(plan, bad), replace(
        embedded, vectors=vectors, truncated=cut, refused={}, sparse=sparse
    )


def _unusable(owners: Sequence[str], embedded: Embedded) -> dict[str, tuple[Reason, str]]:
    """Return the rows one of whose texts has no vector, each with why."""
    bad: dict[str, tuple[Reason, str]] = {}
    for index, (row, vector) in enumerate(zip(owners, embedded.vectors, strict=True)):
        if not len(vector):
            why = embedded.refused.get(index)
            bad[row] = (
                (Reason.REFUSED, f"the embedder refuses its text: {why}")
                if why is not None
                else (Reason.BAD_VECTOR, "the model gives no usable vector for its text")
            )
    return bad


def _result(
    position: Position,
    window: Window,
    plan: Plan,
    embedded: Embedded,
    seconds: Mapping[str, float],
) -> SyncResult:
    owners = [row.row for row in plan.having(Action.EMBED) for _ in row.chunks]
    return SyncResult(
        generation=position.generation,
        position=window.next,
        read=len(window.rows),
        embedded=len(plan.having(Action.EMBED)),
        payload_only=len(plan.having(Action.PAYLOAD)),
        unchanged=len(plan.having(Action.UNCHANGED)),
        deleted=len(plan.having(Action.DELETE)),
        empty=sum(row.empty for row in plan.rows),
        chunks=len(owners),
        reused=embedded.reused,
        truncated=Sample.of([owners[index] for index in sorted(embedded.truncated)]),
        quarantined=Sample.of(plan.quarantined),
        withheld=len(plan.withheld),
        more=window.more,
        seconds=seconds,
    )


class _Stopwatch:
    """Times the stages of one window."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, stage: str, work: Callable[[], T]) -> T:
        started = perf_counter()
        try:
            return work()
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - started
