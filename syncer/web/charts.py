"""Small charts of the last hour as SVG: bars, a minute each, with a gap where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

_WIDTH, _HEIGHT, _TOP = 600, 120, 8  # of the drawing's own units
_ROUND = (1, 2, 5, 10)
_CLOCK = tuple(step * unit for unit in (1, 60) for step in (1, 2, 5, 10, 20, 30)) + tuple(
    3600 * step for step in (1, 2, 6, 12, 24, 48, 168, 720)
)  # seconds
_LEAST = 1.5  # units; a bar that is not nothing can be seen


def bars(
    values: Sequence[float | None], top: float, label: str, show: Callable[[float], str]
) -> str:
    """Return a chart as one ``<svg>``, where `top` is a full bar.

    `label` describes it to those who cannot see it, `show` writes a value for a bar's title.
    """
    drawn = "".join(
        _bar(place, value, top, len(values), show)
        for place, value in enumerate(values)
        if value is not None
    )
    gaps = "".join(
        f'<rect class="gap" x="{_x(place, len(values)):.1f}" y="{_HEIGHT - 2}" '
        f'width="{_step(len(values)) - 2:.1f}" height="2"/>'
        for place, value in enumerate(values)
        if value is None
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}" '
        'preserveAspectRatio="none">'
        f'<path class="grid" d="M0 {_TOP}H{_WIDTH}M0 {(_TOP + _HEIGHT) / 2}H{_WIDTH}'
        f'M0 {_HEIGHT - 0.5}H{_WIDTH}"/>{gaps}{drawn}</svg>'
    )


def round_duration(seconds: float) -> float:
    """Return the next length of time that is round as clocks go, at least 1 s."""
    return next((step for step in _CLOCK if seconds <= step), round_number(seconds))


def round_number(value: float) -> float:
    """Return the next round number (1, 2 or 5 times a power of ten), at least 1."""
    if not math.isfinite(value) or value <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * factor for factor in _ROUND if value <= power * factor * (1 + 1e-9))


def _bar(place: int, value: float, top: float, count: int, show: Callable[[float], str]) -> str:
    share = min(1.0, max(0.0, value / top)) if math.isfinite(value) else 0.0
    height = max(_LEAST if value > 0 else 0.0, share * (_HEIGHT - _TOP))
    ago = count - 1 - place
    when = f"{ago} min ago" if ago else "this minute"
    return (
        f'<rect x="{_x(place, count):.1f}" y="{_HEIGHT - height:.1f}" '
        f'width="{_step(count) - 2:.1f}" height="{height:.1f}">'
        f"<title>{escape(show(value))}, {when}</title></rect>"
    )


def _step(count: int) -> float:
    return _WIDTH / max(1, count)


def _x(place: int, count: int) -> float:
    return place * _step(count) + 1
