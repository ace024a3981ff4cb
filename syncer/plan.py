"""What is to be done for a window's rows, given what the target holds. Pure.

A row has as many points as its text has chunks. Chunk 0 is the row's commit record: what its
``_sync`` says about content, payload and number of chunks is true of all of them, or it is
*open* (``content`` empty) and the row is to be done again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from syncer.keys import Key, RawText, encode_key, is_indexable
from syncer.model import (
    Chunk,
    Held,
    Outcome,
    Payload,
    Piece,
    Quarantined,
    Reason,
    Row,
)
from syncer.text import as_json, as_text, digest, is_blank, parse_json, payload_digest

OPEN = ""  # the content hash of a row that is being written

Chunker = Callable[[Sequence[str]], Sequence[Sequence[Piece]]]
"""Cuts texts into pieces that fit the model: one text's pieces for each of them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows become points: names of payload keys and of the vectors, and the passage prefix.

    `sparse` is empty where there is no sparse vector.
    `json_columns` are the metadata columns whose text is JSON and becomes an object. Longer texts
    than `max_content_bytes` (in UTF-8) are not indexed, nor those that are not UTF-8 unless
    `replace_invalid`.
    """

    table: str
    vector: str
    sparse: str = ""
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

    `held_text` is the hash of the text whose vectors its chunk 0 has there.

    `announced` says of a row that goes that it had to: it expired, or cannot be indexed any more.
    """

    key: Key
    row: str
    action: Action
    held_chunks: int = 0
    held_text: str = ""
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
    contents: dict[int, str] = {}  # of the rows that have to be written, by their place in plans
    quarantined: list[Quarantined] = []
    for row in rows:
        planned, content = _plan_row(row, held.get(row.key), layout)
        if isinstance(planned, Quarantined):
            quarantined.append(planned)
            if (evicted := _evict(row, held.get(row.key))) is not None:
                plans.append(evicted)
            continue
        if content is not None:
            contents[len(plans)] = content
        plans.append(planned)
    for place, pieces in zip(contents, chunker(list(contents.values())), strict=True):
        plans[place] = _with_chunks(plans[place], pieces, layout)
    return Plan(tuple(plans), tuple(quarantined))


def _plan_row(
    row: Row, held: Held | None, layout: Layout
) -> tuple[RowPlan | Quarantined, str | None]:
    """Return the plan for a row, and its text if that is to be cut into chunks."""
    name = encode_key(row.key)
    content = _text(row, name, layout)
    if isinstance(content, Quarantined):
        return content, None
    if content is None or is_blank(content):
        removal = _plan_removal(row.key, name, held)
        return replace(removal, empty=row.present, announced=row.expired), None
    if held is not None and held.row != name:
        foreign = Quarantined(name, Reason.FOREIGN_POINT, "a foreign point has this row's id")
        return foreign, None
    plan = _plan_present(row, name, content, held, layout)
    return plan, None if plan.action is Action.UNCHANGED else content


def text_of(row: Row, layout: Layout) -> str | None:
    """Return the text of a row that is embedded, or None if there is none that can be."""
    found = _text(row, encode_key(row.key), layout)
    return found if isinstance(found, str) and not is_blank(found) else None


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


def _plan_present(row: Row, name: str, content: str, held: Held | None, layout: Layout) -> RowPlan:
    metadata = _metadata(row, layout)
    text = digest(content)
    payload = payload_digest({layout.document_key: None, layout.metadata_key: metadata})
    action = Action.EMBED
    if held is not None and held.content == text:
        action = Action.UNCHANGED if held.payload == payload else Action.PAYLOAD
    return RowPlan(
        row.key,
        name,
        action,
        held_chunks=held.chunks if held else 0,
        held_text=held.text if held else "",
        metadata=metadata,
        content_hash=text,
        payload_hash=payload,
    )


def _with_chunks(plan: RowPlan, pieces: Sequence[Piece], layout: Layout) -> RowPlan:
    """Return `plan` with its chunks; other chunks than before are to be embedded in any case."""
    chunks = tuple(
        Chunk(number, piece.text, digest(layout.prefix + piece.text), piece.tokens)
        for number, piece in enumerate(pieces)
    )
    recut = plan.action is Action.PAYLOAD and len(chunks) != plan.held_chunks
    return replace(plan, action=Action.EMBED if recut else plan.action, chunks=chunks)


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


def set_aside(plan: Plan, rows: Mapping[str, tuple[Reason, str]]) -> Plan:
    """Return `plan` with `rows` quarantined instead of embedded; their old points go."""
    kept: list[RowPlan] = []
    for row in plan.rows:
        if row.row not in rows:
            kept.append(row)
        elif row.held_chunks:
            kept.append(replace(row, action=Action.DELETE, chunks=(), announced=True))
    set_aside = tuple(Quarantined(row.row, *rows[row.row]) for row in plan.rows if row.row in rows)
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
