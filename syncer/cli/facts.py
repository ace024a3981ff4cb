"""What is known of the collection now, from the state alone: for metrics and the status page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from syncer.cli import opening
from syncer.cli.opening import Sides
from syncer.model import Phase
from syncer.settings import Settings
from syncer.state import Generation, utc_now
from syncer.telemetry.facts import UNKNOWN, Facts, GenerationFacts

_PHASES = {
    Phase.NEW: "being filled",
    Phase.BUILDING: "being built by a rebuild",
    Phase.VERIFIED: "built and verified",
    Phase.SERVING: "serving",
    Phase.KEPT: "kept for rollback",
    Phase.RETURNING: "on its way back",
}
_PATIENCE = 2.0  # seconds for a locked database; whoever asks has a deadline of his own
_DEAR = 0.05  # seconds of computing from which on what was found is kept for a while
_SHARE = 0.05  # of a core that looking may take, where it has no index to go by


class Sparing:
    """Gathers facts for whoever asks, from any thread, as ``gather`` does.

    Where one look takes seconds, since there is no index to go by, what was found is given again
    until looking has taken no more than its share of the time; ages go on meanwhile.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        clock: Callable[[], float] = time.monotonic,
        computed: Callable[[], float] = time.thread_time,
    ) -> None:
        self._settings, self._clock, self._computed = settings, clock, computed
        self._kept: tuple[Facts, float, float] | None = None  # found when, and good until when

    def __call__(self) -> Facts:
        """Return what is known now; raises SyncerError if the state cannot be read."""
        now, kept = self._clock(), self._kept
        if kept is not None and now < kept[2]:
            return kept[0].later(now - kept[1])
        began = self._computed()
        found = gather(self._settings())
        spent = self._computed() - began
        if spent > _DEAR:
            now = self._clock()
            self._kept = (found, now, now + spent / _SHARE)
        return found


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
    rows, seconds = _lag(sides, known)
    generations = sides.store.generations(sides.alias)
    verified = sides.store.verified(known.generation)
    return Facts(
        lag_rows=rows,
        lag_seconds=seconds,
        quarantined=sides.store.quarantined(known.generation),
        withheld=sides.store.withheld(known.generation),
        last_success=_unix(known.last_success_at),
        last_verify=_unix(verified.at) if verified else None,
        drift=verified.drift if verified else None,
        rebuild_progress=_progress(sides, generations),
        generations=tuple(_generation(one) for one in generations),
    )


def _lag(sides: Sides, known: Generation) -> tuple[int, float | None]:
    """Return how many rows are to be looked at, and the age of the oldest change among them.

    The age is not known while rows wait that bear no time, as in a walk, or while both stores are
    to be compared.
    """
    now = utc_now()
    pending = sides.source.pending(known.position)
    if known.serving and not known.reconciling and sides.source.is_caught_up(known.position, now):
        return pending, 0.0
    oldest = _unix(sides.source.oldest_change(known.position, now))
    return pending, None if oldest is None else max(0.0, datetime.now(UTC).timestamp() - oldest)


def _progress(sides: Sides, generations: Sequence[Generation]) -> float | None:
    """Return how far the rebuild under way has got, None if there is none.

    Counting the table takes a while where it is large, so it is done while one is under way only.
    """
    green = next((one for one in generations if one.phase.is_green), None)
    if green is None:
        return None
    if green.position.walked:
        return 1.0
    rows = sides.source.count()
    left = sides.source.pending(green.position)
    return max(0.0, 1 - left / rows) if rows else 1.0


def _generation(one: Generation) -> GenerationFacts:
    words = _PHASES[one.phase]
    if one.phase is Phase.SERVING and not one.position.walked:
        words = "serving, walking the table"
    return GenerationFacts(one.generation, words, one.rows)


def _unix(stamp: str | None) -> float | None:
    """Return a stored moment as Unix seconds; None if it is none, as stamps of others may be."""
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
