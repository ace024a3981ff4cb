"""How an application stamps its rows: by its clock, in one of many forms, early or late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta, timezone

from hypothesis import strategies as st
from property.writes import moment, stamp

_MICROSECONDS = 10**6
LOOK_BACK = 4  # seconds


def _zoned(hours: int) -> Callable[[int], object]:
    zone = timezone(timedelta(hours=hours))
    return lambda second: moment(second).astimezone(zone).isoformat()


def _epoch(second: int) -> int:
    return int(moment(second).timestamp())


FORMS: dict[str, Callable[[int], object]] = {
    "Z": stamp,
    "blank": lambda second: f"{moment(second):%Y-%m-%d %H:%M:%S}",
    "east": _zoned(9),
    "west": _zoned(-5),
    "minute": lambda second: f"{moment(second):%Y-%m-%dT%H:%M}",
    "seconds": _epoch,
    "milliseconds": lambda second: _epoch(second) * 1000,
    "real": lambda second: float(_epoch(second)),
    "digits": lambda second: str(_epoch(second)),
    "a word": lambda _second: "lately",
    "nothing": lambda _second: None,
}
TIMELESS = frozenset({"a word", "nothing"})


@dataclass(frozen=True, slots=True)
class Habit:
    """How rows are stamped: in which form, and how many seconds before the clock's time.

    A transaction that is open for long stamps late; an `age` below 0 is in the future.
    """

    form: str = "Z"
    age: int = 0


AGES = st.sampled_from((0, 0, 0, 1, LOOK_BACK - 1, -1, -90))
HABITS = st.builds(Habit, st.sampled_from(sorted(FORMS)), AGES)
NEGLIGENT = st.builds(Habit, st.sampled_from(("Z", "seconds")), st.integers(LOOK_BACK, 9))
"""Stamps that come too late to be seen."""


class Stamps:
    """Makes stamps, and knows at which instant each of them has the row change."""

    def __init__(self) -> None:
        self.habit = Habit()
        self._seconds: dict[object, float | None] = {}

    def make(self, second: int) -> object:
        """Return the stamp of a row that is written when the clock shows `second`."""
        form = self.habit.form
        named = max(0, second - self.habit.age)
        value = FORMS[form](named)
        self._seconds[value] = None if form in TIMELESS else _until(named, form)
        return value

    def second(self, value: object) -> float | None:
        """Return the second in the schedules' day that a stamp stands for; None is no time."""
        return self._seconds.get(value)


def _until(second: int, form: str) -> float:
    """A stamp to the minute stands for its end: the row may change again before."""
    return second - second % 60 + 60 - 1 / _MICROSECONDS if form == "minute" else second
