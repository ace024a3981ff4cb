"""Mending exactly what a comparison has found; foreign points are never touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from syncer.guard import too_many
from syncer.keys import Key, PointId, decode_key, encode_key, point_id
from syncer.model import Held, Point
from syncer.plan import OPEN, Action, RowPlan
from syncer.points import opening
from syncer.ports import Pipeline
from syncer.result import Drift, SyncResult, VerifyResult
from syncer.sync import look_again
from syncer.verify.comparison import Comparison, Sampling, compared, verify
from syncer.verify.scratch import Finding
from syncer.verify.walking import Report
from syncer.worker import Terms
from syncer.write import claim, seal

_DONE_AGAIN = (Drift.INCOMPLETE, Drift.NO_VECTOR, Drift.WRONG_VECTOR)
"""Rows that a sync takes for done: only opened are they written again."""


def mend(
    pipeline: Pipeline,
    terms: Terms,
    *,
    scratch: Path | None = None,
    read: Report = lambda _: None,
    report: Callable[[SyncResult], None] = lambda _: None,
    sampling: Sampling | None = None,
) -> tuple[SyncResult, VerifyResult, VerifyResult]:
    """Compare, mend what differs, and compare again if anything had to be mended.

    Returns what was written, and what the comparisons before and after found. Deletes beyond the
    limit are withheld; `more` of the first one says that a stop was asked for.
    """
    with compared(pipeline, terms, scratch=scratch, report=read, sampling=sampling) as found:
        before = found.result
        mended = repair(pipeline, terms, found, report)
    if before.clean or mended.more:
        return mended, before, before
    return mended, before, verify(pipeline, terms, scratch=scratch, report=read, sampling=sampling)


def repair(
    pipeline: Pipeline,
    terms: Terms,
    found: Comparison,
    report: Callable[[SyncResult], None] = lambda _: None,
) -> SyncResult:
    """Mend what was found, page by page; return the sum of what was written.

    Killed at any moment, a comparison finds the rest. Ends early, between two pages, if a stop is
    asked for; `more` is then true.
    """
    position = pipeline.retry(pipeline.state.position)
    total = SyncResult(position.generation, position)
    with terms.stop.finishing_windows():
        orphans = _orphans(found)
        withhold = too_many(pipeline, terms.limit, orphans, now=terms.now())
        guarded = replace(pipeline, withhold=withhold)
        for page in found.findings():
            if terms.stop.asked:
                break
            for some in _cut([each for each in page if each.row], terms.page):
                result = _mend(guarded, some, terms.now())
                report(result)
                total = total.plus(result)
        if total.wrote:
            seal(pipeline)
    return replace(total, more=terms.stop.asked)


def _orphans(found: Comparison) -> Iterator[list[Key]]:
    for page in found.findings():
        yield [decode_key(each.row) for each in page if each.kind is Drift.ORPHAN]


def _cut(findings: Sequence[Finding], size: int) -> Iterator[Sequence[Finding]]:
    for start in range(0, len(findings), size):
        yield findings[start : start + size]


def _mend(pipeline: Pipeline, findings: Sequence[Finding], now: str) -> SyncResult:
    """Open what a sync would take for done, take strays out, and look at all the rows again.

    What has no chunk 0 is no row any more: its other chunks are not withheld.
    """
    keys = [decode_key(each.row) for each in findings]
    held = _held(pipeline, keys)
    remains = [each for each in findings if each.row not in held]
    opened = [
        _opening(pipeline, key, found)
        for key, each in zip(keys, findings, strict=True)
        if each.kind in _DONE_AGAIN and (found := held.get(each.row)) and found.content != OPEN
    ]
    kept = {each.row for each in findings if pipeline.withhold and each.kind is Drift.ORPHAN}
    kept -= {each.row for each in remains}
    strays = [one for each in findings if each.row not in kept for one in each.ids]
    if opened or strays:
        claim(pipeline)
    if opened:
        pipeline.retry(pipeline.target.open_rows, opened, [])
    if strays:
        pipeline.retry(pipeline.target.delete, strays)
    result = _look_again(pipeline, findings, now)
    gone = sum(each.kind is Drift.ORPHAN for each in remains if each.ids)
    return replace(result, deleted=result.deleted + gone)


def _look_again(pipeline: Pipeline, findings: Sequence[Finding], now: str) -> SyncResult:
    """Look at the rows again; a row with a wrong vector must not be lent its own."""
    wrong = [decode_key(each.row) for each in findings if each.kind is Drift.WRONG_VECTOR]
    others = [decode_key(each.row) for each in findings if each.kind is not Drift.WRONG_VECTOR]
    result = look_again(pipeline, others, now)
    if not wrong:
        return result
    return result.plus(look_again(replace(pipeline, donors=()), wrong, now))


def _opening(pipeline: Pipeline, key: Key, held: Held) -> Point:
    chunks = max(1, held.chunks)
    plan = RowPlan(key, encode_key(key), Action.EMBED, held_chunks=chunks)
    return opening(pipeline.layout, plan)


def _held(pipeline: Pipeline, keys: Sequence[Key]) -> dict[str, Held]:
    """Return the commit records of those rows that have one of their own."""
    ids: dict[PointId, Key] = {point_id(pipeline.layout.table, key): key for key in keys}
    found = pipeline.retry(pipeline.target.look_up, ids)
    return {name: held for key, held in found.items() if held.row == (name := encode_key(key))}
