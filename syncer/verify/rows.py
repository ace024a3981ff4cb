"""What a row's points should be, and how what is there differs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from syncer.keys import Key, PointId, decode_key, encode_key, point_id
from syncer.model import Held, Piece, Row
from syncer.plan import Action, Layout, Plan, RowPlan, plan_rows
from syncer.records import Record
from syncer.result import Drift


def key_of(row: str | None) -> Key | None:
    """Return the key that a point names, None if syncer would never name one so."""
    if row is None:
        return None
    try:
        key = decode_key(row)
        return key if encode_key(key) == row else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def plan(rows: Sequence[Row], records: Mapping[PointId, Record], layout: Layout) -> Plan:
    """Return what a sync would do for `rows`, given the points there are; no text is cut."""
    held: dict[Key, Held] = {}
    for row in rows:
        found = records.get(point_id(layout.table, row.key))
        if found is not None:
            held[row.key] = Held(found.row, found.content, found.payload, found.chunks)
    return plan_rows(rows, held, layout, _uncut)


def _uncut(texts: Sequence[str]) -> list[list[Piece]]:
    return [[Piece(text)] for text in texts]


def further_ids(layout: Layout, key: Key, chunks: int, most: int) -> list[PointId]:
    """Return the ids of a row's chunks behind the first; no more than there are points."""
    return [point_id(layout.table, key, number) for number in range(1, min(chunks, most + 1))]


def is_whole(first: Record, further: Sequence[PointId], records: Mapping[PointId, Record]) -> bool:
    """Say whether the further chunks are all there and agree with the first one."""
    if len(further) != first.chunks - 1:
        return False
    return all(
        (found := records.get(identifier)) is not None
        and (found.row, found.content, found.payload, found.chunks, found.chunk)
        == (first.row, first.content, first.payload, first.chunks, number)
        for number, identifier in enumerate(further, 1)
    )


def drift_of(
    planned: RowPlan | None,
    chunks: Sequence[PointId],
    strays: Sequence[PointId],
    records: Mapping[PointId, Record],
    bare: AbstractSet[PointId],
) -> Drift | None:
    """Return in what a row differs, None if it is as it should be.

    `chunks` are the ids of the points that it should have, `strays` those of points that speak of
    it beside them, `bare` the ids of points that lack a vector. No plan: it cannot be indexed.
    """
    if planned is None or planned.action is Action.ABSENT:
        return Drift.ORPHAN if strays else None
    if planned.action is Action.DELETE:
        return Drift.ORPHAN
    if planned.action in (Action.EMBED, Action.PAYLOAD):
        return Drift.STALE if planned.held_chunks else Drift.MISSING
    if strays or not is_whole(records[chunks[0]], chunks[1:], records):
        return Drift.INCOMPLETE
    return Drift.NO_VECTOR if not bare.isdisjoint(chunks) else None
