"""The second look: both sides may move, so each suspect is read again before it is reported.

The order decides. The row is read, then the position, then what is pending from there, then the
points, then the row again. If the row is the same before and after and nothing was pending, its
points had to be as it says: a change that they do not show yet is behind the position, in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncer.keys import Key, PointId, decode_key, encode_key, point_id
from syncer.model import Row
from syncer.plan import Action
from syncer.ports import Pipeline
from syncer.records import Record
from syncer.result import NONE, Drift, Sample
from syncer.verify import rows
from syncer.verify.scratch import Finding, Scratch
from syncer.worker import Terms

_EXCUSED = (Drift.MISSING, Drift.STALE, Drift.ORPHAN)  # what a pending change may be the cause of


@dataclass(frozen=True, slots=True)
class Apart:
    """Rows that differ for a known reason."""

    pending: Sample[str] = NONE
    quarantined: Sample[str] = NONE
    withheld: Sample[str] = NONE

    def plus(self, later: Apart) -> Apart:
        """Return the sum of both."""
        return Apart(
            self.pending.plus(later.pending),
            self.quarantined.plus(later.quarantined),
            self.withheld.plus(later.withheld),
        )


def confirm(
    pipeline: Pipeline, terms: Terms, file: Scratch, unindexable: Sample[str], most: int
) -> Apart:
    """Look at every suspect once more, keep what is confirmed, and return what is listed apart.

    `most` is how many points there are: no row has more chunks.
    """
    apart = Apart(quarantined=unindexable)
    for page in file.suspects():
        if foreign := page.pop("", []):
            file.find(_foreign(pipeline, foreign))
        if page:
            findings, more = _rows(pipeline, terms, page, most)
            file.find(findings)
            apart = apart.plus(more)
    return apart


def _foreign(pipeline: Pipeline, ids: Sequence[PointId]) -> list[Finding]:
    found = pipeline.retry(pipeline.target.records_of, ids)
    still = tuple(record.id for record in found if rows.key_of(record.row) is None)
    return [Finding(Drift.FOREIGN, "", still)] if still else []


def _rows(
    pipeline: Pipeline, terms: Terms, page: Mapping[str, list[PointId]], most: int
) -> tuple[list[Finding], Apart]:
    retry, source, state = pipeline.retry, pipeline.source, pipeline.state
    keys, now = [decode_key(row) for row in page], terms.now()
    before = _by_name(retry(source.rows, keys, now))
    position = retry(state.position)
    pending = retry(source.pending_keys, position, keys, now)
    judged = _judge(pipeline, keys, before, page, most)
    if not judged:
        return [], Apart()
    names = [finding.row for finding in judged]
    keys, now = [decode_key(row) for row in names], terms.now()
    after = _by_name(retry(source.rows, keys, now))
    pending |= retry(source.pending_keys, position, keys, now)
    pending |= {name for name in names if before.get(name) != after.get(name)}
    quarantined = retry(state.quarantined_among, names)
    withheld = retry(state.withheld_among, names)
    return _sorted_out(judged, pending, quarantined, withheld)


def _sorted_out(
    judged: Sequence[Finding], pending: set[str], quarantined: set[str], withheld: set[str]
) -> tuple[list[Finding], Apart]:
    kept: list[Finding] = []
    apart: dict[str, list[str]] = {"pending": [], "quarantined": [], "withheld": []}
    for finding in judged:
        if finding.kind in _EXCUSED and finding.row in pending:
            apart["pending"].append(finding.row)
        elif finding.kind is Drift.MISSING and finding.row in quarantined:
            apart["quarantined"].append(finding.row)
        elif finding.kind is Drift.ORPHAN and finding.row in withheld:
            apart["withheld"].append(finding.row)
        else:
            kept.append(finding)
    return kept, Apart(**{name: Sample.of(found) for name, found in apart.items()})


def _judge(
    pipeline: Pipeline,
    keys: Sequence[Key],
    before: Mapping[str, Row],
    strays: Mapping[str, list[PointId]],
    most: int,
) -> list[Finding]:
    """Return the rows that differ from the points that are there now."""
    layout = pipeline.layout
    first = {encode_key(key): point_id(layout.table, key) for key in keys}
    asked = [*first.values(), *(one for ids in strays.values() for one in ids)]
    records = _records(pipeline, asked)
    chunks = {
        name: _chunks(pipeline, key, records.get(first[name]), most)
        for key in keys
        for name in [encode_key(key)]
    }
    further = [one for ids in chunks.values() for one in ids[1:]]
    records |= _records(pipeline, [one for one in further if one not in records])
    plan = rows.plan([before.get(encode_key(key), Row(key)) for key in keys], records, layout)
    plans = {planned.row: planned for planned in plan.rows}
    whole = [row for row, planned in plans.items() if planned.action is Action.UNCHANGED]
    bare = _bare(pipeline, [one for row in whole for one in chunks[row]])
    findings = []
    for name, ids in chunks.items():
        beside = tuple(one for one in strays[name] if _is_stray(one, name, ids, records))
        kind = rows.drift_of(plans.get(name), ids, beside, records, bare)
        if kind is not None:
            findings.append(Finding(kind, name, beside))
    return findings


def _chunks(pipeline: Pipeline, key: Key, first: Record | None, most: int) -> list[PointId]:
    """Return the ids of the points that a row should have, by what its first one says."""
    if first is None or first.row != encode_key(key):
        return []
    return [first.id, *rows.further_ids(pipeline.layout, key, first.chunks, most)]


def _is_stray(
    one: PointId, name: str, chunks: Sequence[PointId], records: Mapping[PointId, Record]
) -> bool:
    return one not in chunks and one in records and records[one].row == name


def _records(pipeline: Pipeline, ids: Sequence[PointId]) -> dict[PointId, Record]:
    if not ids:
        return {}
    return {found.id: found for found in pipeline.retry(pipeline.target.records_of, ids)}


def _bare(pipeline: Pipeline, ids: Sequence[PointId]) -> set[PointId]:
    vectors = filter(None, (pipeline.layout.vector, pipeline.layout.sparse)) if ids else ()
    return {
        one for vector in vectors for one in pipeline.retry(pipeline.target.lacking, vector, ids)
    }


def _by_name(found: Sequence[Row]) -> dict[str, Row]:
    return {encode_key(row.key): row for row in found}
