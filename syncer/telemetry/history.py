"""The last hour, a point a minute: what the status page draws."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

MINUTE = 60
LENGTH = 60  # minutes


@dataclass(frozen=True, slots=True)
class Minute:
    """One minute: its number since 1970, the lag at its end in seconds, the rows written in it.

    `lag` is None where it was not known.
    """

    number: int
    lag: float | None
    rows: int


class History:
    """A ring of the last hour's minutes; written by one thread, read by any."""

    def __init__(self) -> None:
        self._minutes: deque[Minute] = deque(maxlen=LENGTH)
        self._lock = threading.Lock()
        self._seen = 0

    def sample(self, now: float, lag: float | None, rows_total: int) -> None:
        """Note the lag now, and how many rows were written since the process began.

        May be called as often as one likes: the last call of a minute counts, its rows add up.
        """
        number = int(now // MINUTE)
        with self._lock:
            rows = max(0, rows_total - self._seen)
            self._seen = rows_total
            while self._minutes and self._minutes[-1].number >= number:  # later: a clock put back
                rows += self._minutes.pop().rows
            self._minutes.append(Minute(number, lag, rows))

    def minutes(self, now: float) -> tuple[Minute | None, ...]:
        """Return the hour up to `now`, the oldest minute first; None where nothing was noted."""
        last = int(now // MINUTE)
        with self._lock:
            known = {minute.number: minute for minute in self._minutes}
        return tuple(known.get(number) for number in range(last - LENGTH + 1, last + 1))
