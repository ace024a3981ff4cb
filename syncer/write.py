"""Writing a window, in the order that makes a kill at any moment harmless."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from syncer.errors import IdentityError
from syncer.model import Embedded, Point, Reason, SparseVector, Vector
from syncer.plan import Action, Layout, Plan, RowPlan
from syncer.points import chunk_ids, opening, point, row_of
from syncer.ports import Pipeline, Refused, State, Target

Put = Callable[[Sequence[Point]], Refused]
"""A write of the target's."""


def write(pipeline: Pipeline, plan: Plan, embedded: Embedded) -> dict[str, tuple[Reason, str]]:
    """Write a window in the order that makes a kill at any moment harmless.

    Returns the rows that the target refuses, each with why; nothing is left of them.
    """
    claim(pipeline)
    refused = _write_rows(pipeline, plan, embedded)
    if refused:
        withdrawn = tuple(_withdrawn(row) for row in plan.rows if row.row in refused)
        _write_rows(pipeline, Plan(withdrawn), Embedded(()))
    return refused


def _write_rows(
    pipeline: Pipeline, plan: Plan, embedded: Embedded
) -> dict[str, tuple[Reason, str]]:
    """Write rows; return those that are refused, which stay open if they have several chunks.

    Rows of several chunks are opened, their further chunks written, surplus ones deleted; then
    chunk 0 of every row is written, or deleted, which says that the row is done.
    """
    layout, retry, target = pipeline.layout, pipeline.retry, pipeline.target
    whole = _points(layout, plan.having(Action.EMBED), _pairs(embedded))
    payloads = _points(layout, plan.having(Action.PAYLOAD), None)
    spread = [row for row in plan.having(Action.EMBED, Action.PAYLOAD, Action.DELETE) if row.spread]
    surplus = [i for row in spread for i in chunk_ids(layout, row, *_surplus(row))]
    gone = [i for row in plan.having(Action.DELETE) for i in chunk_ids(layout, row, 0, 1)]
    refused: dict[str, tuple[Reason, str]] = {}
    _open(pipeline, spread)
    _send(pipeline, target.upsert, [p for number, p in whole if number > 0], refused)
    _send(pipeline, target.overwrite, [p for number, p in payloads if number > 0], refused)
    retry(target.delete, surplus)
    _send(pipeline, target.upsert, [p for number, p in whole if number == 0], refused)
    _send(pipeline, target.overwrite, [p for number, p in payloads if number == 0], refused)
    retry(target.delete, gone)
    return refused


def _send(
    pipeline: Pipeline, put: Put, points: Sequence[Point], refused: dict[str, tuple[Reason, str]]
) -> None:
    """Write points batch by batch, each tried again by itself, and note the rows refused.

    Nothing more is written of a row that was refused before.
    """
    rows = {point.id: row_of(point) for point in points}
    left = [point for point in points if rows[point.id] not in refused]
    for batch in pipeline.retry(pipeline.target.batches, left):
        found = pipeline.retry(put, batch)
        refused |= {rows[identifier]: why for identifier, why in found.items()}


def _withdrawn(row: RowPlan) -> RowPlan:
    """Return the plan that takes out whatever was there of a row, or was written by now."""
    held = max(row.held_chunks, len(row.chunks))
    return replace(row, action=Action.DELETE, held_chunks=held, chunks=(), announced=True)


def check_token(state: State, target: Target) -> str | None:
    """Return the collection's token; raise IdentityError unless the state knows it.

    A generation that nobody has written to yet has none on either side. What the state knew is
    looked at before and after: another process may leave its token in between.
    """
    known = state.tokens()
    found = target.token()
    if found not in known | state.tokens():
        raise IdentityError(
            "the collection does not carry the token that the state knows: the database was "
            "restored, the collection was replaced, or somebody else writes to it",
            hint="Find out which of the two is right. To build the collection anew from the "
            "database as it is now, run `syncer rebuild`.",
        )
    return found


def claim(pipeline: Pipeline) -> None:
    """Leave a fresh token in state and collection, unless this process left the last one.

    Pending in the state first, beside the one that the collection carries, then in the
    collection, then confirmed: killed anywhere and however often, the state knows the token that
    the collection carries.
    """
    if not pipeline.retry(pipeline.state.owns_token):
        _leave_token(pipeline)


def seal(pipeline: Pipeline) -> None:
    """Leave another token at the end of a run that wrote.

    A copy of the database that was taken while the run was under way then bears an older one: when
    it is put back, that is noticed.
    """
    if pipeline.retry(pipeline.state.owns_token):
        _leave_token(pipeline)


def _leave_token(pipeline: Pipeline) -> None:
    state, target, retry = pipeline.state, pipeline.target, pipeline.retry
    token = secrets.token_hex(16)
    carried = retry(check_token, state, target)
    retry(state.begin_token, token, carried)
    retry(target.write_token, token)
    retry(state.confirm_token, token)


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
    layout: Layout,
    rows: Sequence[RowPlan],
    vectors: Iterator[tuple[Vector, SparseVector | None]] | None,
) -> list[tuple[int, Point]]:
    return [
        (chunk.number, point(layout, row, chunk, *(next(vectors) if vectors else ())))
        for row in rows
        for chunk in row.chunks
    ]


def _pairs(embedded: Embedded) -> Iterator[tuple[Vector, SparseVector | None]]:
    """Yield each text's dense and sparse vector."""
    sparse = iter(embedded.sparse)
    return ((vector, next(sparse, None)) for vector in embedded.vectors)
