"""What is to be done for a window's rows, given what the target holds. Pure.

A row has as many points as its text has chunks. Chunk 0 is the row's commit record: what its
``_sync`` says about content, payload and number of chunks is true of all of them, or it is
*open* (``content`` empty) and the row is to be done again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum

from syncer.keys import Key, PointId, RawText, encode_key, is_indexable, point_id
from syncer.model import (
    SYNC_KEY,
    Chunk,
    Held,
    Outcome,
    Payload,
    Point,
    Quarantined,
    Reason,
    Row,
    Vector,
)
from syncer.text import as_json, as_text, digest, is_blank, parse_json, payload_digest

OPEN = ""  # the content hash of a row that is being written

Chunker = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows become points: names of payload keys and of the vector, and the passage prefix.

    `json_columns` are the metadata columns whose text is JSON and becomes an object. Longer texts
    than `max_content_bytes` (in UTF-8) are not indexed, nor those that are not UTF-8 unless
    `replace_invalid`.
    """

    table: str
    vector: str
    document_key: str = "document"
    metadata_key: str = "metadata"
    prefix: str = ""
    json_columns: frozenset[str] = frozenset()
    max_content_bytes: int = 2**20
    replace_invalid: bool = True


class Action(StrEnum):
    """What happens to a row."""

    UNCHANGED = "unchanged"
    ABSENT = "absent"  # nothing in the source, nothing in the target
    PAYLOAD = "payload"
    EMBED = "embed"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What happens to one row; `held_chunks` is how many chunks the target may hold of it.

    `announced` says of a row that goes that it had to: it expired, or cannot be indexed any more.
    """

    key: Key
    row: str
    action: Action
    held_chunks: int = 0
    chunks: tuple[Chunk, ...] = ()
    metadata: Payload = field(default_factory=dict)
    content_hash: str = ""
    payload_hash: str = ""
    empty: bool = False
    announced: bool = False

    @property
    def spread(self) -> bool:
        """Whether the row has, or had, more than one chunk, and must be opened first."""
        return self.held_chunks > 1 or len(self.chunks) > 1


@dataclass(frozen=True, slots=True)
class Plan:
    """The plans of a window's rows, and the rows that cannot be indexed."""

    rows: tuple[RowPlan, ...]
    quarantined: tuple[Quarantined, ...] = ()
    withheld: tuple[str, ...] = ()

    def having(self, *actions: Action) -> tuple[RowPlan, ...]:
        """Return the rows with one of `actions`, in the order of the window."""
        return tuple(row for row in self.rows if row.action in actions)

    @property
    def writes(self) -> bool:
        """Whether anything has to be written to the target."""
        return bool(self.having(Action.PAYLOAD, Action.EMBED, Action.DELETE))


def plan_rows(
    rows: Sequence[Row], held: Mapping[Key, Held], layout: Layout, chunker: Chunker
) -> Plan:
    """Return what has to be done so that the target holds `rows` as they are.

    `held` is what the target has under the id of each row's chunk 0; rows it has nothing for are
    left out of it.
    """
    plans: list[RowPlan] = []
    quarantined: list[Quarantined] = []
    for row in rows:
        planned = _plan_row(row, held.get(row.key), layout, chunker)
        if isinstance(planned, Quarantined):
            quarantined.append(planned)
            if (evicted := _evict(row, held.get(row.key))) is not None:
                plans.append(evicted)
        else:
            plans.append(planned)
    return Plan(tuple(plans), tuple(quarantined))


def _plan_row(
    row: Row, held: Held | None, layout: Layout, chunker: Chunker
) -> RowPlan | Quarantined:
    name = encode_key(row.key)
    content = _text(row, name, layout)
    if isinstance(content, Quarantined):
        return content
    if content is None or is_blank(content):
        removal = _plan_removal(row.key, name, held)
        return replace(removal, empty=row.present, announced=row.expired)
    if held is not None and held.row != name:
        return Quarantined(name, Reason.FOREIGN_POINT, "a foreign point has this row's id")
    return _plan_present(RowPlan(row.key, name, Action.EMBED), row, content, held, layout, chunker)


def _text(row: Row, name: str, layout: Layout) -> str | Quarantined | None:
    """Return the row's text, None if it has none, or why it cannot be indexed."""
    if not row.present:
        return None
    if not is_indexable(row.key):
        kinds = ", ".join(type(part).__name__ for part in row.key)
        return Quarantined(name, Reason.KEY_TYPE, f"a key of type {kinds} cannot have a point")
    if isinstance(row.content, RawText) and not layout.replace_invalid:
        return Quarantined(name, Reason.INVALID_TEXT, "its text is not UTF-8")
    try:
        content = as_text(row.content)
    except UnicodeDecodeError:
        return Quarantined(name, Reason.BLOB_IN_TEXT, "the content is a blob that is not UTF-8")
    size = len(content.encode()) if content is not None else 0
    if size > layout.max_content_bytes:
        return Quarantined(name, Reason.TOO_LARGE, f"its text has {size} bytes")
    return content


def _plan_removal(key: Key, name: str, held: Held | None) -> RowPlan:
    if held is None or held.row != name:
        return RowPlan(key, name, Action.ABSENT)
    return RowPlan(key, name, Action.DELETE, held_chunks=held.chunks)


def _evict(row: Row, held: Held | None) -> RowPlan | None:
    """Take out the old points of a row whose present text cannot be indexed."""
    name = encode_key(row.key)
    removal = _plan_removal(row.key, name, held)
    return replace(removal, announced=True) if removal.action is Action.DELETE else None


def _plan_present(
    plan: RowPlan, row: Row, content: str, held: Held | None, layout: Layout, chunker: Chunker
) -> RowPlan:
    metadata = _metadata(row, layout)
    plan = replace(
        plan,
        held_chunks=held.chunks if held else 0,
        metadata=metadata,
        content_hash=digest(content),
        payload_hash=payload_digest({layout.document_key: None, layout.metadata_key: metadata}),
    )
    same_text = held is not None and held.content == plan.content_hash
    if same_text and held is not None and held.payload == plan.payload_hash:
        return replace(plan, action=Action.UNCHANGED)
    return replace(
        plan,
        action=Action.PAYLOAD if same_text else Action.EMBED,
        chunks=tuple(
            Chunk(number, text, digest(layout.prefix + text))
            for number, text in enumerate(chunker(content))
        ),
    )


def _metadata(row: Row, layout: Layout) -> dict[str, object]:
    values = {
        name: parse_json(value) if name in layout.json_columns else value
        for name, value in row.metadata.items()
    }
    values["sqlite_id"] = _readable_key(row.key)
    metadata = as_json(values)
    assert isinstance(metadata, dict)  # noqa: S101 - as_json keeps mappings
    return metadata


def _readable_key(key: Key) -> object:
    if len(key) == 1 and isinstance(key[0], (int, str)):
        return key[0]
    return encode_key(key)


def set_aside(plan: Plan, rows: AbstractSet[str], reason: Reason, detail: str) -> Plan:
    """Return `plan` with `rows` quarantined instead of embedded; their old points go."""
    kept: list[RowPlan] = []
    for row in plan.rows:
        if row.row not in rows:
            kept.append(row)
        elif row.held_chunks:
            kept.append(replace(row, action=Action.DELETE, chunks=(), announced=True))
    set_aside = tuple(Quarantined(row.row, reason, detail) for row in plan.rows if row.row in rows)
    return replace(plan, rows=tuple(kept), quarantined=plan.quarantined + set_aside)


def withhold_deletes(plan: Plan) -> Plan:
    """Return `plan` without the deletes that nobody has announced; they are named instead."""
    withheld = {row.row for row in plan.rows if row.action is Action.DELETE and not row.announced}
    kept = tuple(row for row in plan.rows if row.row not in withheld)
    return replace(plan, rows=kept, withheld=tuple(sorted(withheld)))


def outcome(plan: Plan) -> Outcome:
    """Return what the state has to record once `plan` is carried out."""
    gone = plan.having(Action.DELETE)
    new = [row for row in plan.having(Action.EMBED) if not row.held_chunks]
    return Outcome(
        settled=tuple(row.row for row in plan.rows),
        quarantined=plan.quarantined,
        withheld=plan.withheld,
        indexed=len(new) - len(gone),
        removed=sum(not row.announced for row in gone),
    )


def chunk_ids(layout: Layout, plan: RowPlan, first: int, end: int) -> list[PointId]:
    """Return the ids of the row's chunks from `first` up to, but not including, `end`."""
    return [point_id(layout.table, plan.key, number) for number in range(first, end)]


def point(layout: Layout, plan: RowPlan, chunk: Chunk, vector: Vector | None = None) -> Point:
    """Return the point of one chunk; without its vector for a payload-only write."""
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
    vectors = {} if vector is None else {layout.vector: vector}
    return Point(point_id(layout.table, plan.key, chunk.number), payload, vectors)


def opening(layout: Layout, plan: RowPlan) -> Point:
    """Return the bare commit record that says: this row is being written.

    Its number of chunks is the larger of the old and the new one, so that whatever happens next,
    a later run knows which ids may be taken.
    """
    record = {
        "row": plan.row,
        "content": OPEN,
        "payload": "",
        "text": "",
        "chunk": 0,
        "chunks": max(plan.held_chunks, len(plan.chunks)),
    }
    return Point(point_id(layout.table, plan.key, 0), {SYNC_KEY: record})
