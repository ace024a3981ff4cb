"""What the state's tables hold, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncer.model import Position

POSITION_COLUMNS = ("last_id", "change_seq", "walked", "expired_to", "settled", "cursor")
GENERATION_COLUMNS = (
    "generation",
    "alias",
    "source_table",
    "serving",
    "settings_digest",
    "mapping_digest",
    "schema_seen",
    "points",
    "last_success_at",
    *POSITION_COLUMNS,
)


@dataclass(frozen=True, slots=True)
class Generation:
    """What is stored of one generation; `points` is the target's count after the last write."""

    generation: str
    alias: str
    source_table: str
    serving: bool
    position: Position
    settings_digest: str
    mapping_digest: str
    schema_seen: str
    points: int | None
    last_success_at: str | None


@dataclass(frozen=True, slots=True)
class QuarantineRecord:
    """One quarantined row as it is listed; never its text."""

    row: str
    reason: str
    detail: str
    first_seen: str
    last_seen: str
    attempts: int


def generation_from(row: Sequence[object]) -> Generation:
    """Return the generation that a row of ``GENERATION_COLUMNS`` describes."""
    name, alias, table, serving, settings, mapping, seen, points, success, *position = row
    return Generation(
        generation=str(name),
        alias=str(alias),
        source_table=str(table),
        serving=bool(serving),
        position=position_from(str(name), position),
        settings_digest=str(settings),
        mapping_digest=str(mapping),
        schema_seen=str(seen),
        points=points if isinstance(points, int) else None,
        last_success_at=success if isinstance(success, str) else None,
    )


def position_from(generation: str, row: Sequence[object]) -> Position:
    """Return the position that a row of ``POSITION_COLUMNS`` describes."""
    last_id, change_seq, walked, expired_to, settled, cursor = row
    return Position(
        generation,
        _text(last_id),
        int(str(change_seq)),
        bool(walked),
        _text(expired_to),
        _text(settled),
        _text(cursor),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def position_values(position: Position) -> tuple[object, ...]:
    """Return the values of ``POSITION_COLUMNS`` for `position`."""
    return (
        position.last_id,
        position.change_seq,
        int(position.walked),
        position.expired_to,
        position.settled,
        position.cursor,
    )
