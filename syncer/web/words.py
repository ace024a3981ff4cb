"""Times and numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (0.001, "ms"))
_TWO_DIGITS = 10  # from here on a decimal says nothing


def duration(seconds: float) -> str:
    """Return a length of time in its largest unit, two digits of it: "5 s", "2.5 h", "30 d"."""
    for size, unit in _UNITS:
        if seconds >= size:
            amount = round(seconds / size, 1)
            return (
                f"{amount:.1f} {unit}"
                if amount < _TWO_DIGITS and amount % 1
                else (f"{amount:,.0f} {unit}")
            )
    return "0 s"


def ago(moment: float | None, now: float) -> str:
    """Return how long ago a moment was, or "never"."""
    return "never" if moment is None else f"{duration(max(0.0, now - moment))} ago"


def ahead(moment: float, now: float) -> str:
    """Return how far away a moment is, or that it is due."""
    return "now" if moment <= now else f"in {duration(moment - now)}"


def clock_time(moment: float) -> str:
    """Return a moment in UTC, as it is written: 2026-11-30 21:05:00 UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def number(value: int | None) -> str:
    """Return a number with its thousands set apart, or a dash for one that is not known."""
    return "–" if value is None else f"{value:,}"  # noqa: RUF001 - a dash, for people
