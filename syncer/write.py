"""Writing a window, in the order that makes a kill at any moment harmless."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from syncer.errors import IdentityError
from syncer.model import Point, Vector
from syncer.plan import Action, Layout, Plan, RowPlan, chunk_ids, opening, point
from syncer.ports import Pipeline, State, Target


def write(pipeline: Pipeline, plan: Plan, vectors: Sequence[Vector]) -> None:
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
            "database as it is now, run `syncer once --start-over`.",
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
    layout: Layout, rows: Sequence[RowPlan], vectors: Iterator[Vector] | None
) -> list[tuple[int, Point]]:
    return [
        (chunk.number, point(layout, row, chunk, next(vectors) if vectors else None))
        for row in rows
        for chunk in row.chunks
    ]
