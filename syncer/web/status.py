"""What the status page says, as a value, and the one sentence that matters most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from syncer.telemetry.facts import UNKNOWN, Facts
from syncer.telemetry.history import Minute
from syncer.telemetry.runs import Health, Runs


class Mood(StrEnum):
    """How things are: nothing to do, something under way, a person is needed."""

    GOOD = "good"
    BUSY = "busy"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class NextRun:
    """What is going to run, and when, in Unix seconds."""

    what: str
    at: float


@dataclass(frozen=True, slots=True)
class StatusPage:
    """Everything on the page; `now` is the moment it speaks of, in Unix seconds.

    `facts` is ``UNKNOWN`` where the state cannot be read. `minutes` is the last hour, the oldest
    first. `doing` says what is under way, if anything is.
    """

    name: str
    version: str
    now: float
    runs: Runs
    health: Health
    facts: Facts = UNKNOWN
    minutes: tuple[Minute | None, ...] = ()
    next_runs: tuple[NextRun, ...] = ()
    doing: str = ""


def in_words(page: StatusPage) -> tuple[Mood, str]:
    """Return how things are, in a few words."""
    return next(_moods(page))


def _moods(page: StatusPage) -> Iterator[tuple[Mood, str]]:
    """Yield what can be said, the most important first."""
    facts, why = page.facts, page.health.why
    if not page.health.well:
        yield Mood.BAD, why[:1].upper() + why[1:]
    if facts.withheld:
        yield Mood.BAD, f"{_deletes(facts.withheld)} withheld: see syncer confirm-deletes"
    if facts.lag_rows is None:
        yield Mood.BUSY, "Nothing is known of the collection yet"
    if page.runs.failures:
        yield Mood.BUSY, f"The last run failed ({page.runs.error}) and will be tried again"
    if facts.lag_rows:
        yield Mood.BUSY, f"{_rows(facts.lag_rows)} behind"
    if facts.lag_seconds is None:
        yield Mood.BUSY, "The collection is being compared with the table"
    elif facts.lag_seconds > 0:
        yield Mood.BUSY, "Expired rows are still to be taken out"
    if sum((facts.quarantined or {}).values()):
        yield Mood.BUSY, "Caught up, but for the rows in quarantine"
    yield Mood.GOOD, "Everything is in the collection"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _deletes(number: int) -> str:
    return "1 delete is" if number == 1 else f"{number:,} deletes are"
