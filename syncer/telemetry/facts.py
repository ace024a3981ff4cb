"""What is known of a collection at one moment, read from the state when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class GenerationFacts:
    """One generation: its name, what it is for just now, and how many rows it holds."""

    name: str
    phase: str
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Where a collection stands. What is not known is None, which is not the same as 0.

    `lag_rows` counts rows and changes that are still to be looked at, `lag_seconds` is the age of
    the oldest change not yet in the target; quarantined rows count in neither. `quarantined` is by
    reason, `drift` by kind, as the last verify found it. Times are Unix seconds;
    `rebuild_progress` goes from 0 to 1 while a rebuild is under way.
    """

    lag_rows: int | None = None
    lag_seconds: float | None = None
    quarantined: Mapping[str, int] | None = None
    withheld: int | None = None
    last_success: float | None = None
    last_verify: float | None = None
    drift: Mapping[str, int] | None = None
    rebuild_progress: float | None = None
    generations: tuple[GenerationFacts, ...] = field(default=())

    def later(self, seconds: float) -> Facts:
        """Return them so many seconds later, by what is known by now: what waits gets older."""
        return replace(self, lag_seconds=self.lag_seconds + seconds) if self.lag_seconds else self


UNKNOWN = Facts()
"""Nothing is known: the state cannot be read, or there is none yet."""
