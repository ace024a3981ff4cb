"""One step of the way from source to target, and nothing else.

The position moves last, and only after the target has confirmed. Every step may be repeated.
This module declares what it needs of source, state, embedder and target; it knows no adapter, no
clock, no scheduler and no command line.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Protocol, TypeVar

from syncer.errors import IdentityError
from syncer.keys import Key, PointId, point_id
from syncer.model import (
    Embedded,
    Held,
    Point,
    Position,
    Quarantined,
    Recipe,
    SyncResult,
    Vector,
    Window,
)
from syncer.plan import (
    Action,
    Chunker,
    Layout,
    Plan,
    RowPlan,
    chunk_ids,
    opening,
    plan_rows,
    point,
)
from syncer.retry import Retry

T = TypeVar("T")


class Source(Protocol):
    """The table and its change feed."""

    def read(self, position: Position, *, head: int, now: str) -> Window:
        """Return the rows to look at next, as they are now, each key once.

        Changes up to sequence number `head` come first, then rows that expired up to `now`, then
        the walk. One short read transaction; no statement is open afterwards. Raises SourceError,
        or SourceBusyError when the database stays locked.
        """


class State(Protocol):
    """Positions and tokens of one generation, kept beside the truth."""

    def position(self) -> Position:
        """Return the stored position. Raises IdentityError if another process moved it."""

    def commit(
        self, old: Position, new: Position, quarantined: Sequence[Quarantined], rows: Sequence[str]
    ) -> None:
        """Record `quarantined`, release other `rows` from quarantine and move the position.

        One transaction; nothing is written if nothing changes. Raises PositionMovedError if the
        stored position is not `old`.
        """

    def tokens(self) -> frozenset[str | None]:
        """Return what the collection may carry: the last token (or None) or a pending one."""

    def owns_token(self) -> bool:
        """Say whether this process wrote the last token."""

    def begin_token(self, token: str) -> None:
        """Note `token` as pending. Durable when it returns."""

    def confirm_token(self, token: str) -> None:
        """Note that the collection carries `token`."""


class Embedder(Protocol):
    """Texts to vectors, by the recipe of one generation."""

    @property
    def recipe(self) -> Recipe:
        """Return what decides the vectors."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return the vectors of `texts` in their order, checked for count, size and sanity."""

    def query(self, text: str) -> Vector:
        """Return the vector of a question."""

    def close(self) -> None:
        """Let go of threads and memory."""


class Target(Protocol):
    """One generation: every call names the physical collection, none goes through the alias.

    All writes wait until they are applied, may be repeated, and raise TargetError, or
    TargetUnavailableError when it is not known whether they were applied.
    """

    def look_up(self, ids: Mapping[PointId, Key]) -> dict[Key, Held]:
        """Return what the points with these ids say of their rows; without the missing ones."""

    def token(self) -> str | None:
        """Return the token that the collection carries."""

    def write_token(self, token: str) -> None:
        """Let the collection carry `token`."""

    def upsert(self, points: Sequence[Point]) -> None:
        """Write whole points in their order, in batches bounded by number and bytes."""

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Write commit records: only ``_sync`` of points that are there, bare points otherwise."""

    def overwrite(self, points: Sequence[Point]) -> None:
        """Replace the payloads of points and leave their vectors alone."""

    def delete(self, ids: Sequence[PointId]) -> None:
        """Delete points by id; missing ones are no error."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What ``sync_once`` works with: the adapters of one generation, and how rows become points."""

    source: Source
    state: State
    embedder: Embedder
    target: Target
    layout: Layout
    chunker: Chunker
    retry: Retry


def sync_once(pipeline: Pipeline, *, head: int, now: str) -> SyncResult:
    """Bring one window of rows into the target, then move the position.

    `head` is the change log's sequence number up to which to go, `now` the time in UTC (ISO 8601,
    milliseconds). On any exception the position is untouched and the call may be repeated.
    """
    clock = _Stopwatch()
    source, state = pipeline.source, pipeline.state
    position = state.position()
    window = clock("read", lambda: pipeline.retry(source.read, position, head=head, now=now))
    plan = clock("plan", lambda: _plan(pipeline, window))
    vectors = clock("embed", lambda: _embed(pipeline, plan))
    if plan.writes:
        clock("write", lambda: _write(pipeline, plan, vectors.vectors))
    rows = [row.row for row in plan.rows]
    commit = partial(state.commit, position, window.next, plan.quarantined, rows)
    clock("advance", lambda: pipeline.retry(commit))
    return _result(position, window, plan, vectors, clock.seconds)


def check_token(state: State, target: Target) -> None:
    """Raise IdentityError unless the collection carries a token that the state knows.

    A generation that nobody has written to yet has none on either side.
    """
    if target.token() not in state.tokens():
        raise IdentityError(
            "the collection does not carry the token that the state knows: the database was "
            "restored, the collection was replaced, or somebody else writes to it",
            hint="Find out which of the two is right. To build the collection anew from the "
            "database as it is now, run `syncer once --start-over`.",
        )


def preview_once(pipeline: Pipeline, position: Position, *, head: int, now: str) -> SyncResult:
    """Return what ``sync_once`` would do from `position`; nothing is embedded or written."""
    window = pipeline.retry(pipeline.source.read, position, head=head, now=now)
    return _result(position, window, _plan(pipeline, window), Embedded(()), {})


def _plan(pipeline: Pipeline, window: Window) -> Plan:
    ids = {point_id(pipeline.layout.table, row.key): row.key for row in window.rows}
    held = pipeline.retry(pipeline.target.look_up, ids) if ids else {}
    return plan_rows(window.rows, held, pipeline.layout, pipeline.chunker)


def _embed(pipeline: Pipeline, plan: Plan) -> Embedded:
    texts = [chunk.text for row in plan.having(Action.EMBED) for chunk in row.chunks]
    return pipeline.retry(pipeline.embedder.embed, texts) if texts else Embedded(())


def _write(pipeline: Pipeline, plan: Plan, vectors: Sequence[Vector]) -> None:
    """Write a window in the order that makes a kill at any moment harmless.

    Rows of several chunks are opened, their further chunks written, surplus ones deleted; then
    chunk 0 of every row is written, or deleted, which says that the row is done.
    """
    claim(pipeline)
    layout, retry, target = pipeline.layout, pipeline.retry, pipeline.target
    whole = _points(layout, plan.having(Action.EMBED), iter(vectors))
    payloads = _points(layout, plan.having(Action.PAYLOAD), None)
    spread = [row for row in plan.having(Action.EMBED, Action.PAYLOAD, Action.DELETE) if row.spread]
    surplus = [i for row in spread for i in chunk_ids(layout, row, *_surplus(row))]
    gone = [i for row in plan.having(Action.DELETE) for i in chunk_ids(layout, row, 0, 1)]
    _open(pipeline, spread)
    retry(target.upsert, [p for number, p in whole if number > 0])
    retry(target.overwrite, [p for number, p in payloads if number > 0])
    retry(target.delete, surplus)
    retry(target.upsert, [p for number, p in whole if number == 0])
    retry(target.overwrite, [p for number, p in payloads if number == 0])
    retry(target.delete, gone)


def claim(pipeline: Pipeline) -> None:
    """Leave a fresh token in state and collection, unless this process left the last one.

    Pending in the state first, then in the collection, then confirmed: killed in between, either
    token is known to the state.
    """
    if pipeline.state.owns_token():
        return
    token = secrets.token_hex(16)
    pipeline.state.begin_token(token)
    pipeline.retry(pipeline.target.write_token, token)
    pipeline.state.confirm_token(token)


def _open(pipeline: Pipeline, spread: Sequence[RowPlan]) -> None:
    if spread:
        held = [opening(pipeline.layout, row) for row in spread if row.held_chunks]
        new = [opening(pipeline.layout, row) for row in spread if not row.held_chunks]
        pipeline.retry(pipeline.target.open_rows, held, new)


def _surplus(row: RowPlan) -> tuple[int, int]:
    """Return the range of chunks that the target may hold and the row no longer has."""
    first = 1 if row.action is Action.DELETE else max(1, len(row.chunks))
    return first, max(first, row.held_chunks)


def _points(
    layout: Layout, rows: Sequence[RowPlan], vectors: Iterator[Vector] | None
) -> list[tuple[int, Point]]:
    return [
        (chunk.number, point(layout, row, chunk, next(vectors) if vectors else None))
        for row in rows
        for chunk in row.chunks
    ]


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
        truncated=tuple(owners[index] for index in sorted(embedded.truncated)),
        quarantined=plan.quarantined,
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
            self.seconds[stage] = perf_counter() - started
