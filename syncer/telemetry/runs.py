"""How the runs of a process went, and whether that is well: the present state, no totals."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Runs:
    """How the runs of a process went up to now; times are Unix seconds, None if there was none.

    `failures` counts those in a row since the last success. `caught_up` says that everything was
    in the target at least once. `error` is the kind of the last failure, None after a success.
    """

    started: float
    last_run: float | None = None
    last_success: float | None = None
    failures: int = 0
    caught_up: bool = False
    error: str | None = None

    def succeeded(self, now: float, *, caught_up: bool) -> Runs:
        """Return them after a run that ended well; `caught_up` if nothing was left to do."""
        return replace(
            self,
            last_run=now,
            last_success=now,
            failures=0,
            caught_up=self.caught_up or caught_up,
            error=None,
        )

    def failed(self, now: float, error: str) -> Runs:
        """Return them after a run that ended with an error of this kind."""
        return replace(self, last_run=now, failures=self.failures + 1, error=error)

    def stopped(self, now: float) -> Runs:
        """Return them after a run that somebody stopped, which says nothing about its health."""
        return replace(self, last_run=now)


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on a process counts as ill: failures in a row, or seconds without a success.

    0 seconds is no limit.
    """

    failures: int = 5
    seconds: float = 900.0


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a process does its work, and if not, why, in words."""

    well: bool
    why: str = ""


def health(runs: Runs, limits: Limits, now: float) -> Health:
    """Return the health at `now`; it is well again as soon as a run has succeeded.

    Before the first success the time counts from the process's start.
    """
    if runs.failures >= limits.failures:
        return Health(False, f"the last {runs.failures} runs failed: {runs.error}")  # noqa: FBT003
    since = runs.started if runs.last_success is None else runs.last_success
    if limits.seconds and now - since > limits.seconds:
        return Health(False, f"no run has succeeded for {now - since:.0f} s")  # noqa: FBT003
    return Health(True)  # noqa: FBT003
