"""What a change column holds, as one instant: microseconds since 1970 in UTC.

Nobody's word is taken for a column's format: each value is read as what it is. A text without a
zone counts as UTC; one that has no seconds stands for the end of its minute or day, since the row
may change again before that. A Julian day is refused: it is a second of January 1970 as well.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SECOND = 1_000_000  # microseconds
FIRST_SECOND = -62_135_596_800  # 0001-01-01 as seconds since 1970
LAST_SECOND = 253_402_300_800  # 10000-01-01
JULIAN_DAYS = (1_721_059, 5_373_485)  # the years 0 to 9999, in which no epoch second is meant

# Which unit a number has is told by its size: as seconds the first bound is the year 5138, as
# milliseconds it is 1973, and so on.
MILLISECONDS = 10**11
MICROSECONDS = 10**14
NANOSECONDS = 10**17

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBERED = re.compile(r"([1-9]\d{9}(?:\d{3}){0,3})(?:\.(\d*))?", re.ASCII)
_SECONDS_AT = 16  # where the colon before the seconds stands
_TIME = re.compile(r"[0-9Ww-]+(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d))?)?)?", re.ASCII)
_ZONE_NAME = re.compile(r"\s*(?:UTC|GMT|Z)$", re.IGNORECASE)
_BLANK_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d\d:?\d\d$)", re.ASCII)
_BASIC_DATE = 8  # digits of 20260727


def instant_of(value: object) -> int | None:
    """Return the instant that `value` stands for, None if it cannot be told."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, (int, float)):
        return _of_number(value)
    return None


def text_of(instant: int) -> str:
    """Return an instant as ISO 8601 text with microseconds and Z."""
    moment = _EPOCH + timedelta(microseconds=instant)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def moment_of(instant: int) -> datetime:
    """Return an instant as a time in UTC."""
    return _EPOCH + timedelta(microseconds=instant)


def format_of(value: object) -> str:
    """Return in words how `value` says its time."""
    if value is None:
        return "NULL"
    known = instant_of(value) is not None
    if isinstance(value, (int, float)):
        kind = "REAL" if isinstance(value, float) else "INTEGER"
        return f"{_unit(value)} ({kind})" if known else f"no time ({kind}; a Julian day?)"
    if isinstance(value, str) and known:
        if found := _NUMBERED.fullmatch(value.strip()):
            return f"{_unit(int(found[1]))} (text)"
        return _iso_format(value.strip())
    return "no time (text)" if isinstance(value, str) else "no time (BLOB)"


def _of_number(value: float) -> int | None:
    first, end = JULIAN_DAYS
    if not FIRST_SECOND <= value < LAST_SECOND * 1000 * SECOND or first <= value < end:
        return None
    if value < MILLISECONDS:
        instant = round(value * SECOND)
    elif value < MICROSECONDS:
        instant = round(value * 1000)
    elif value < NANOSECONDS:
        instant = int(value)
    else:
        instant = int(value) // 1000
    return instant if instant < LAST_SECOND * SECOND else None


def _of_text(text: str) -> int | None:
    text = text.strip()
    if found := _NUMBERED.fullmatch(text):
        return _of_digits(found[1], found[2] or "")
    if text.isdigit() and len(text) != _BASIC_DATE:
        return None
    moment = _parsed(text) or _parsed(_tidied(text))
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min((moment - _EPOCH) // _MICROSECOND + _rest(text), LAST_SECOND * SECOND - 1)


def _of_digits(digits: str, fraction: str) -> int | None:
    unit = _of_number(int(digits))
    places = max(0, 6 - (len(digits) - 10))  # of the fraction, down to microseconds
    return None if unit is None else unit + int((fraction + "0" * places)[:places] or 0)


def _parsed(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _tidied(text: str) -> str:
    """Return `text` with the zone as ISO 8601 spells it."""
    return _BLANK_BEFORE_OFFSET.sub("", _ZONE_NAME.sub("Z", text))


def _rest(text: str) -> int:
    """Return the microseconds from the instant that `text` names to the end of what it names."""
    if text[_SECONDS_AT : _SECONDS_AT + 1] == ":":
        return 0
    hour, minute, second = _TIME.match(text).groups()  # type: ignore[union-attr]
    if hour is None:
        return 86_400 * SECOND - 1
    if minute is None:
        return 3600 * SECOND - 1
    return 60 * SECOND - 1 if second is None else 0


def _unit(value: float) -> str:
    bounds = (
        (MILLISECONDS, "seconds"),
        (MICROSECONDS, "milliseconds"),
        (NANOSECONDS, "microseconds"),
    )
    return "epoch " + next((name for bound, name in bounds if value < bound), "nanoseconds")


def _iso_format(text: str) -> str:
    hour, _, second = _TIME.match(text).groups()  # type: ignore[union-attr]
    if hour is None:
        return "ISO 8601, a date"
    zone = "without zone"
    if (moment := _parsed(_tidied(text))) is not None and moment.tzinfo is not None:
        zone = "in UTC" if not moment.utcoffset() else "with an offset"
    separator = "blank" if " " in text[:11] else "T"
    precision = "" if second else ", to the minute"
    return f"ISO 8601, {separator}, {zone}{precision}"
