"""The one thread that works: what is due is done one after the other, each at most once at a time.

Whoever says that something is due does not wait: what is due already is not due twice.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from syncer.worker import Stop

_POLL = 0.1  # seconds between two looks at whether somebody has committed
_LOOK = 1.0  # seconds between two looks at whether somebody has done something about a failure
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0  # seconds after a failure; doubles each time


@dataclass(frozen=True, slots=True)
class Failure:
    """That a task failed; `wait` is how many seconds it is not tried again at least."""

    wait: float = 0.0


Task = Callable[[], Failure | None]
"""Something to do; it raises only what should end the daemon."""


class Loop:
    """Does what is due, in the thread that calls ``run``.

    `wake` is asked every 100 ms whether the first of `tasks` is due for what somebody has written;
    not while the task waits after a failure. Then `signs` are looked at every second: the wait
    ends when they are others. `skipped` hears of what was due again before it was done, or while
    it waited.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        wake: Callable[[], bool],
        stop: Stop,
        *,
        signs: Callable[[], object] = lambda: None,
        skipped: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tasks = dict(tasks)
        self._first = next(iter(tasks))
        self._wake, self._signs, self._stop, self._skipped = wake, signs, stop, skipped
        self._clock = clock
        self._signs_seen: object = None
        self._signs_at = 0.0
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._waiting: set[str] = set()
        self._lock = threading.Lock()
        self._not_before: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    def due(self, name: str) -> None:
        """Say, from any thread, that a task is due."""
        with self._lock:
            if name in self._waiting:
                self._skipped(name)
                return
            self._waiting.add(name)
        self._queue.put(name)

    def run(self) -> None:
        """Work until somebody asks to stop."""
        while not self._stop.asked:
            name = self._next()
            if name is not None:
                self._do(name)

    def _next(self) -> str | None:
        """Return what is due, waiting a moment for it; None if nothing is."""
        try:
            name = self._queue.get(timeout=_POLL)
        except queue.Empty:
            due = self._wake() if self._is_back(self._first) else self._is_mended()
            return self._first if due else None
        with self._lock:
            self._waiting.discard(name)
        if self._is_back(name):
            return name
        self._skipped(name)
        return None

    def _is_back(self, name: str) -> bool:
        return self._clock() >= self._not_before.get(name, 0.0)

    def _is_mended(self) -> bool:
        """Say whether somebody may have mended what the first task failed for."""
        if self._clock() < self._signs_at:
            return False
        self._signs_at = self._clock() + _LOOK
        return self._signs() != self._signs_seen

    def _do(self, name: str) -> None:
        # Before the task: what is mended between its failure and a later look would not be seen.
        signs = self._signs() if name == self._first else None
        failure = self._tasks[name]()
        if failure is None:
            self._failures.pop(name, None)
            self._not_before.pop(name, None)
            return
        self._failures[name] = failures = self._failures.get(name, 0) + 1
        growing = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failures - 1, 10))
        wait = max(failure.wait, growing * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        self._not_before[name] = self._clock() + wait
        if name == self._first:
            self._signs_seen, self._signs_at = signs, self._clock() + _LOOK
        timer = threading.Timer(wait, self.due, [name])
        timer.daemon = True
        timer.start()
