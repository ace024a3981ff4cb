"""What the state's tables hold, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncer.model import Phase, Position
from syncer.result import Drift, VerifyResult

POSITION_COLUMNS = ("last_id", "change_seq", "walked", "expired_to", "settled", "cursor")
GENERATION_COLUMNS = (
    "generation",
    "alias",
    "source_table",
    "serving",
    "phase",
    "created_at",
    "kept_since",
    "confirmed_rows",
    "rows",
    "reconcile",
    "settings_digest",
    "mapping_digest",
    "schema_seen",
    "points",
    "last_success_at",
    *POSITION_COLUMNS,
)


@dataclass(frozen=True, slots=True)
class Generation:
    """What is stored of one generation; `points` is the target's count after the last write.

    `confirmed_rows` is down to how many rows somebody has confirmed that it may shrink.
    """

    generation: str
    alias: str
    source_table: str
    serving: bool
    phase: Phase
    created_at: str
    kept_since: str | None
    confirmed_rows: int | None
    rows: int
    reconciling: bool
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


@dataclass(frozen=True, slots=True)
class Verified:
    """What the last comparison of both stores found, and when; `drift` by kind."""

    at: str
    clean: bool
    rows: int
    points: int
    drift: Mapping[str, int]
    pending: int
    quarantined: int
    withheld: int


def verify_values(result: VerifyResult) -> dict[str, int]:
    """Return the values of ``syncer_verify`` by column, generation and time apart."""
    return {
        "clean": int(result.clean),
        "rows": result.rows,
        "points": result.points,
        **{kind.value: count for kind, count in result.counts.items()},
        "pending": len(result.pending),
        "quarantined": len(result.quarantined),
        "withheld": len(result.withheld),
    }


def kept_ones(ours: Sequence[Generation]) -> list[Generation]:
    """Return the generations that served before, the one that did last first."""
    kept = [each for each in ours if each.phase in {Phase.KEPT, Phase.RETURNING}]
    return sorted(kept, key=lambda each: each.kept_since or "", reverse=True)


def generation_from(row: Sequence[object]) -> Generation:
    """Return the generation that a row of ``GENERATION_COLUMNS`` describes."""
    found = dict(zip(GENERATION_COLUMNS, row, strict=True))
    name = str(found["generation"])
    return Generation(
        generation=name,
        alias=str(found["alias"]),
        source_table=str(found["source_table"]),
        serving=bool(found["serving"]),
        phase=Phase(str(found["phase"])),
        created_at=str(found["created_at"]),
        kept_since=_text(found["kept_since"]),
        confirmed_rows=_number(found["confirmed_rows"]),
        rows=_number(found["rows"]) or 0,
        reconciling=bool(found["reconcile"]),
        position=position_from(name, [found[column] for column in POSITION_COLUMNS]),
        settings_digest=str(found["settings_digest"]),
        mapping_digest=str(found["mapping_digest"]),
        schema_seen=str(found["schema_seen"]),
        points=_number(found["points"]),
        last_success_at=_text(found["last_success_at"]),
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


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def verified_from(row: Sequence[object]) -> Verified:
    """Return what a comparison found, from its columns and its kinds in the order of ``Drift``."""
    at, clean, rows, points, pending, quarantined, withheld, *counts = row
    numbers = [int(str(one)) for one in (rows, points, pending, quarantined, withheld)]
    drift = {kind.value: int(str(count)) for kind, count in zip(Drift, counts, strict=True)}
    read, seen, *apart = numbers
    return Verified(str(at), bool(clean), read, seen, drift, *apart)


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
