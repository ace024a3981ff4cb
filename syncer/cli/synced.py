"""What a run did and came across, for people and for programs; never a row's text."""

from __future__ import annotations

import json

from syncer.errors import ExitCode
from syncer.result import Sample, SyncResult


def in_words(result: SyncResult) -> str:
    """Return what a run did, as one or more lines for people."""
    parts = [
        f"{number} {word}"
        for number, word in (
            (result.embedded, "embedded"),
            (result.payload_only, "with new metadata only"),
            (result.unchanged, "unchanged"),
            (result.deleted, "taken out"),
            (result.empty, "without text"),
        )
        if number
    ]
    seconds = sum(result.seconds.values())
    lines = [f"{result.read} rows read: {', '.join(parts) or 'nothing to do'} ({seconds:.1f} s)"]
    if result.reused:
        lines.append(f"{result.reused} of {result.chunks} vectors were there already")
    if result.truncated:
        lines.append(
            f"{len(result.truncated)} texts were longer than the model's limit and were cut: "
            f"{_some(result.truncated)}"
        )
    lines += [f"row {item.row} is quarantined: {item.detail}" for item in result.quarantined]
    if len(result.quarantined) > len(result.quarantined.first):
        lines.append(f"... {len(result.quarantined)} rows are quarantined in all")
    if result.withheld:
        lines.append(
            f"{result.withheld} deletes are withheld, since so many at once may be a mistake; "
            "see `syncer confirm-deletes`"
        )
    if result.more:
        lines.append("stopped before the end; the next run goes on from here")
    return "\n".join(lines)


def as_dict(result: SyncResult) -> dict[str, object]:
    """Return what a run did, for JSON."""
    from syncer import telemetry

    position = {"last_id": result.position.last_id, "change_seq": result.position.change_seq}
    return {**telemetry.counts(result), **position, "caught_up": not result.more}


def as_json(result: SyncResult) -> str:
    """Return what a dry run would do, as one JSON object."""
    return json.dumps({**as_dict(result), "exit_code": int(ExitCode.OK)})


def uncounted(generation: str, points: int) -> str:
    """Return what is to be said of points that syncer has not counted."""
    return f"{generation} has {points} points that syncer has not counted"


def _some(rows: Sample[str], most: int = 5) -> str:
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return "rows " + ", ".join(rows.first[:most]) + more
