"""Deletes are not trusted when there are too many: who emptied a table may not have meant to.

Counted are rows that are gone or out of scope without having announced it (by an expiry), over the
whole pending log, the rest of a walk and the last hour, and only those that the target holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncer.keys import Key, decode_key, encode_key, point_id
from syncer.model import Position
from syncer.ports import Pipeline


@dataclass(frozen=True, slots=True)
class Limit:
    """More than `rows` and more than `share` of the indexed rows is too many."""

    rows: int = 20
    share: float = 0.2

    def is_exceeded(self, deletes: int, indexed: int) -> bool:
        """Say whether so many deletes are too many."""
        return deletes > self.rows and deletes > self.share * indexed


def too_many_gone(
    pipeline: Pipeline, position: Position, limit: Limit | None, *, head: int, now: str
) -> bool:
    """Say whether the deletes that are due up to `head` are to be withheld."""
    return too_many(pipeline, limit, pipeline.source.gone(position, head=head, now=now), now=now)


def too_many_missing(pipeline: Pipeline, limit: Limit | None, *, now: str) -> bool:
    """Say whether the rows that the target holds and the source does not are to be kept."""
    pages = (_missing(pipeline, rows, now) for rows in pipeline.row_pages())
    return too_many(pipeline, limit, pages, now=now)


def too_many(
    pipeline: Pipeline, limit: Limit | None, pages: Iterable[Sequence[Key]], *, now: str
) -> bool:
    """Say whether the deletes of these rows, those withheld and the last hour's are too many.

    Without a limit whoever calls judges by other means. Counts no further than to the limit, and
    asks the target only if so many could be. What is withheld already counts: a run that was
    stopped in the middle leaves the rest to the next one, and they belong together.
    """
    if limit is None:
        return False
    hour_ago = datetime.fromisoformat(now) - timedelta(hours=1)
    state, retry = pipeline.state, pipeline.retry
    earlier = retry(state.deletes_since, hour_ago.isoformat(timespec="milliseconds"))
    indexed, withheld = retry(state.rows), retry(state.withheld)
    known = {encode_key(key) for key in withheld}
    earlier += len(withheld)
    suspects: list[Key] = []
    held = earlier
    for page in pages:
        suspects += [key for key in page if encode_key(key) not in known]
        if earlier + len(suspects) > limit.rows:
            held += _held(pipeline, suspects)
            earlier, suspects = limit.rows, []
        if limit.is_exceeded(held, indexed):
            return True
    return False


def _missing(pipeline: Pipeline, rows: Sequence[str], now: str) -> list[Key]:
    keys = [decode_key(row) for row in rows]
    found = pipeline.retry(pipeline.source.rows, keys, now)
    return [row.key for row in found if not row.present]


def _held(pipeline: Pipeline, keys: Sequence[Key]) -> int:
    """Return how many of these rows the target holds."""
    ids = {point_id(pipeline.layout.table, key): key for key in keys}
    held = pipeline.retry(pipeline.target.look_up, ids) if ids else {}
    return sum(encode_key(key) == found.row for key, found in held.items())
