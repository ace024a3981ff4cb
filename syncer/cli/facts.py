"""What is known of the collection now, from the state alone: for metrics and the status page."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from syncer.cli import opening
from syncer.cli.opening import Sides
from syncer.settings import Settings
from syncer.state import Generation, utc_now
from syncer.telemetry.facts import UNKNOWN, Facts, GenerationFacts

_PATIENCE = 2.0  # seconds for a locked database; whoever asks has a deadline of his own


def gather(settings: Settings) -> Facts:
    """Open the state, return what it says, and close it; raises SyncerError if it cannot be read.

    May be called from any thread.
    """
    source = settings.source.model_copy(update={"busy_timeout": _PATIENCE})
    with opening.opened(settings.model_copy(update={"source": source})) as sides:
        return facts_of(sides)


def facts_of(sides: Sides) -> Facts:
    """Return what the state says of the serving generation; nothing is known before the first."""
    known = sides.store.serving(sides.alias)
    if known is None:
        return UNKNOWN
    state = sides.store.bind(known.generation)
    rows, seconds = _lag(sides, known)
    records = sides.store.quarantine(known.generation)
    return Facts(
        lag_rows=rows,
        lag_seconds=seconds,
        quarantined=Counter(record.reason for record in records),
        withheld=len(state.withheld()),
        last_success=_unix(known.last_success_at),
        generations=tuple(_generation(sides, one) for one in sides.store.generations(sides.alias)),
    )


def _lag(sides: Sides, known: Generation) -> tuple[int, float | None]:
    """Return how many rows are to be looked at, and the age of the oldest change among them.

    The age is not known while rows wait that bear no time, as in a walk, or while both stores are
    to be compared.
    """
    now = utc_now()
    pending = sides.source.pending(known.position)
    compared = not sides.store.bind(known.generation).reconciling()
    if known.serving and compared and sides.source.is_caught_up(known.position, now):
        return pending, 0.0
    oldest = _unix(sides.source.oldest_change(known.position, now))
    return pending, None if oldest is None else max(0.0, datetime.now(UTC).timestamp() - oldest)


def _generation(sides: Sides, one: Generation) -> GenerationFacts:
    if one.serving:
        phase = "serving" if one.position.walked else "serving, walking the table"
    else:
        phase = "not serving" if one.position.walked else "being filled"
    return GenerationFacts(one.generation, phase, sides.store.bind(one.generation).rows())


def _unix(stamp: str | None) -> float | None:
    """Return a stored moment as Unix seconds; None if it is none, as stamps of others may be."""
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
