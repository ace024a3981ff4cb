"""``syncer quarantine`` and ``syncer confirm-deletes``: rows that wait for a decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from syncer.cli import opening
from syncer.cli.opening import Sides
from syncer.cli.run import How, reported, run, sum_of
from syncer.errors import ExitCode, SettingsError
from syncer.keys import Key, decode_key, encode_key
from syncer.model import Phase
from syncer.settings import Settings
from syncer.state import Generation, QuarantineRecord

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.ports import Pipeline
    from syncer.result import SyncResult
    from syncer.worker import Terms


def confirm_deletes(settings: Settings, report: Report) -> ExitCode:
    """Look once more at each row whose deletion is withheld, and take out what is still gone.

    Of a generation that was built and is much smaller, it is noted that it may take over.
    """

    def work(sides: Sides) -> ExitCode:
        for each in _shrunk(sides):
            sides.store.confirm_rows(each.generation, each.rows)
            report.say(f"{each.generation} may take over with {each.rows} rows")
        return run(sides, report, How(), _withheld)

    return reported(settings, report, work)


def _shrunk(sides: Sides) -> list[Generation]:
    """Return the generations that may not take over, since they are much smaller."""
    from syncer.cli.compose import limit

    ours = sides.store.generations(sides.alias)
    before = next((each.rows for each in ours if each.serving), 0)
    most, waiting = limit(sides.settings), {Phase.VERIFIED, Phase.KEPT, Phase.RETURNING}
    return [
        each
        for each in ours
        if each.phase in waiting and most.is_exceeded(before - each.rows, before)
    ]


def retry(settings: Settings, report: Report, rows: Sequence[str]) -> ExitCode:
    """Try quarantined rows again now: those named, or all of them."""

    def work(sides: Sides) -> ExitCode:
        keys = [decode_key(record.row) for record in _chosen(sides, rows)]

        def again(pipeline: Pipeline, terms: Terms, report: Report, _: Sides) -> SyncResult:
            from syncer.worker import look_at

            return sum_of(pipeline, look_at(pipeline, keys, terms), report)

        return run(sides, report, How(), again)

    return reported(settings, report, work)


def forget(settings: Settings, rows: Sequence[str]) -> list[str]:
    """Drop the records of quarantined rows, those named or all; return their keys as JSON.

    Such a row stays out of the index until it changes.
    """
    with opening.opened(settings) as sides:
        chosen = [record.row for record in _chosen(sides, rows)]
        if chosen:
            with opening.locked(sides, _serving(sides)):
                sides.store.forget_rows(_serving(sides), chosen)
    return chosen


def listed(settings: Settings) -> list[QuarantineRecord]:
    """Return the quarantined rows of the serving generation, the oldest first."""
    with opening.opened(settings) as sides:
        return _chosen(sides, ())


def in_words(records: Sequence[QuarantineRecord]) -> str:
    """Return quarantined rows as lines for people: never their text."""
    if not records:
        return "no row is quarantined"
    return "\n".join(
        f"row {record.row}  {record.reason}: {record.detail}  (tried {record.attempts} times, "
        f"last {record.last_seen})"
        for record in records
    )


def as_json(records: Sequence[QuarantineRecord]) -> str:
    """Return quarantined rows as a JSON array."""
    return json.dumps([asdict(record) for record in records])


def _withheld(pipeline: Pipeline, terms: Terms, report: Report, sides: Sides) -> SyncResult:
    from syncer.worker import look_at

    position = pipeline.retry(pipeline.state.position)
    keys: list[Key] = sides.store.bind(position.generation).withheld()
    report.begin(len(keys))
    return sum_of(pipeline, look_at(pipeline, keys, terms), report)


def _chosen(sides: Sides, rows: Sequence[str]) -> list[QuarantineRecord]:
    """Return the records of `rows`, of all if none is named; refuse a row that has none."""
    known = {record.row: record for record in sides.store.quarantine(_serving(sides))}
    wanted = [_as_row(row) for row in rows] or list(known)
    missing = [row for row in wanted if row not in known]
    if missing:
        raise SettingsError(
            f"not quarantined: row {', '.join(missing)}", hint="See `syncer quarantine list`."
        )
    return [known[row] for row in wanted]


def _serving(sides: Sides) -> str:
    known = sides.store.serving(sides.alias)
    return known.generation if known is not None else ""


def _as_row(text: str) -> str:
    """Return a key that was typed as the JSON that names the row; bare text is a text key."""
    try:
        return encode_key(decode_key(text))
    except (ValueError, KeyError):
        return encode_key((text,))
