"""Where in an index on the change column the rows are that may have changed since an instant.

SQLite sorts NULL, then numbers, then text, then blobs. The ranges follow that order, do not
overlap, and leave out only what is surely older. Three things make a text sort otherwise than its
instant: blank sorts before T, an offset west of UTC makes it look older than it is, and formats
mix. So every text between the years, and of the last day every text that is not plain UTC or east
of it, is in a range. A text that begins with a year and a dash, but names no time, is placed by
that beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from syncer.source.stamps import (
    FIRST_SECOND,
    JULIAN_DAYS,
    MICROSECONDS,
    MILLISECONDS,
    NANOSECONDS,
    SECOND,
    moment_of,
)

TEXT = ""
"""The first of all texts: numbers sort before it."""

_BEFORE_DIGITS = "0:"  # none of the bounds looks like a number, which an affinity would make of it
_BEHIND_DIGITS = ":"
_FIRST_YEAR = 1970
_FIRST_TEN_DIGITS = 10**9 * SECOND  # 2001-09-09; from here on epoch seconds have ten digits
_MAX_INTEGER = 2**63 - 1

# Of a text that begins with a date and a time: no seconds, a minus or a name behind the time.
_NOT_PLAIN = "({0} NOT GLOB '????????????????:*[0-9Zz]' OR {0} LIKE '___________%-%')"
_LATER_FRACTION = f"({_NOT_PLAIN} OR rtrim(substr({{0}}, 20), 'Zz0:+.') > ?)"
# An epoch as text, in one of the four units, sorts as its instant does.
_NOT_OLD_DIGITS = (
    "({0} >= ? OR {0} GLOB '*[^0-9.]*' OR instr({0} || '.', '.') NOT IN (11, 14, 17, 20))"
)


@dataclass(frozen=True, slots=True)
class Range:
    """Values from `low` (without it if `is_open`) to below `high`; None is no bound, never NULL.

    `nulls` stands for NULL alone. `condition` on the value, ``{0}``, narrows it further.
    """

    low: object = None
    high: object = None
    is_open: bool = False
    nulls: bool = False
    condition: str = ""
    values: tuple[object, ...] = ()


ALL = (Range(nulls=True), Range())
"""Every value there is."""


def ranges_since(instant: int | None, *, holds_numbers: bool = True) -> tuple[Range, ...]:
    """Return ranges that hold every value that stands for an instant after this one, or for none.

    `holds_numbers` is false for a column that turns numbers into text.
    """
    if instant is None or instant < _FIRST_TEN_DIGITS:
        return ALL
    numbers = _numbers(instant) if holds_numbers else ()
    return (Range(nulls=True), *numbers, *_texts(instant), Range(_BEHIND_DIGITS))


def _numbers(instant: int) -> tuple[Range, ...]:
    return (
        Range(None, FIRST_SECOND),
        Range(*JULIAN_DAYS),
        Range(instant // SECOND, MILLISECONDS),
        Range(max(MILLISECONDS, instant // 1000), MICROSECONDS),
        Range(max(MICROSECONDS, instant), NANOSECONDS),
        Range(min(instant * 1000, _MAX_INTEGER), TEXT),
    )


def _texts(instant: int) -> tuple[Range, ...]:
    moment = moment_of(instant)
    day = moment.date().isoformat()
    day_before = (moment - timedelta(days=1)).date().isoformat()
    fraction = f".{moment.microsecond:06}".rstrip("0.")
    blank, t = (f"{day}{separator}{moment.time():%H:%M:%S}" for separator in " T")
    return (
        Range(TEXT, _BEFORE_DIGITS),
        *_between_years(int(day_before[:4]), str(instant // SECOND)),
        Range(day_before, blank, condition=_NOT_PLAIN),
        Range(blank, f"{blank}~", condition=_LATER_FRACTION, values=(fraction,)),
        Range(f"{blank}~", f"{day}!"),
        Range(f"{day}!", t, condition=_NOT_PLAIN),
        Range(t, f"{t}~", condition=_LATER_FRACTION, values=(fraction,)),
        Range(f"{t}~", _BEHIND_DIGITS),
    )


def _between_years(last: int, seconds: str) -> tuple[Range, ...]:
    """Return what is left of all texts before the `last` year without those of earlier years."""
    years = range(_FIRST_YEAR, last + 1)
    lows = [_BEFORE_DIGITS, *(f"{year}-:" for year in years[:-1])]
    return tuple(
        Range(low, f"{year}-0", condition=_NOT_OLD_DIGITS, values=(seconds,))
        for low, year in zip(lows, years, strict=True)
    )
