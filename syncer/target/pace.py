"""How many points a write carries: fewer while answers stay out, more again when they come."""

from __future__ import annotations


class Pace:
    """Bounds writes by what went unanswered.

    A write without an answer may have been applied, so the same points go again as they are. From
    the second time on they go in halves, quarters and so on: a server that is slow, or a proxy
    that cuts long uploads, is then given less at a time. Each answer doubles the portion.
    """

    def __init__(self) -> None:
        self._allowed: int | None = None
        self._again = False

    def bound(self, most: int) -> int:
        """Return how many points, of `most`, a write may carry now."""
        return most if self._allowed is None else min(most, self._allowed)

    def answered(self, most: int) -> None:
        """Note an answer; `most` is what a write carries at best."""
        self._again = False
        if self._allowed is not None:
            self._allowed *= 2
            if self._allowed >= most:
                self._allowed = None

    def unanswered(self, points: int) -> None:
        """Note that so many points had no answer."""
        if self._again:
            self._allowed = max(1, points // 2)
        self._again = True
