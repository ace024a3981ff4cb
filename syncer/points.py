"""The points of a planned row: their ids, what they say, and the record that opens a row."""

from __future__ import annotations

from syncer.keys import PointId, point_id
from syncer.model import SYNC_KEY, Chunk, Point, SparseVector, Vector
from syncer.plan import OPEN, Layout, RowPlan


def chunk_ids(layout: Layout, plan: RowPlan, first: int, end: int) -> list[PointId]:
    """Return the ids of the row's chunks from `first` up to, but not including, `end`."""
    return [point_id(layout.table, plan.key, number) for number in range(first, end)]


def point(
    layout: Layout,
    plan: RowPlan,
    chunk: Chunk,
    vector: Vector | None = None,
    sparse: SparseVector | None = None,
) -> Point:
    """Return the point of one chunk; without its vectors for a payload-only write."""
    payload = {
        layout.document_key: chunk.text,
        layout.metadata_key: plan.metadata,
        SYNC_KEY: {
            "row": plan.row,
            "content": plan.content_hash,
            "payload": plan.payload_hash,
            "text": chunk.text_hash,
            "chunk": chunk.number,
            "chunks": len(plan.chunks),
        },
    }
    vectors: dict[str, Vector | SparseVector] = {}
    if vector is not None:
        vectors[layout.vector] = vector
    if sparse is not None and layout.sparse:
        vectors[layout.sparse] = sparse
    return Point(point_id(layout.table, plan.key, chunk.number), payload, vectors)


def opening(layout: Layout, plan: RowPlan) -> Point:
    """Return the bare commit record that says: this row is being written.

    Its number of chunks is the larger of the old and the new one, so that whatever happens next,
    a later run knows which ids may be taken. The vectors that are there stay those of their text.
    """
    record = {
        "row": plan.row,
        "content": OPEN,
        "payload": "",
        "text": plan.held_text,
        "chunk": 0,
        "chunks": max(plan.held_chunks, len(plan.chunks)),
    }
    return Point(point_id(layout.table, plan.key, 0), {SYNC_KEY: record})


def row_of(found: Point) -> str:
    """Return the key as JSON of the row that a point of syncer's own belongs to."""
    record = found.payload[SYNC_KEY]
    assert isinstance(record, dict)  # noqa: S101 - the functions above made it
    return str(record["row"])
