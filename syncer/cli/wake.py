"""Whether somebody has committed something that concerns the collection; asked all the time."""

from __future__ import annotations

import sqlite3
import time
from contextlib import ExitStack
from datetime import datetime

from syncer.cli import opening
from syncer.cli.opening import Sides
from syncer.errors import SyncerError
from syncer.settings import Settings
from syncer.state import utc_now

_LOOK_AT_FILE = 1.0  # seconds between two looks at whether another file lies at the path
_SHARE = 0.05  # of a core that looking may take, where it has no index to go by


class Watcher:
    """Sees commits by SQLite's own count of them, on a connection of its own.

    A commit leads to one look at the source, nothing else; what it finds to be of no concern, the
    daemon's own commits for example, wakes nobody.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._sides: Sides | None = None
        self._seen = -1
        self._not_before = 0.0
        self._file_at = 0.0
        self._expiry: float | None = None

    def __call__(self) -> bool:
        """Say whether a run is due: something has changed, or a row has expired."""
        try:
            return self._has_changed()
        except (SyncerError, sqlite3.Error):  # a run will say what is wrong
            self.close()
            return True

    def use(self, settings: Settings) -> None:
        """Watch by other settings from here on."""
        self.close()
        self._settings = settings

    def forget(self) -> None:
        """Look at the source once more, and note when its next row expires."""
        self._seen = -1

    def close(self) -> None:
        """Close the connection; the next look opens it again."""
        self._stack.close()
        self._sides = None
        self._seen = -1

    def _has_changed(self) -> bool:
        now = time.monotonic()
        if now < self._not_before:
            return False
        sides = self._sides or self._open()
        if now >= self._file_at:
            self._file_at = now + _LOOK_AT_FILE
            sides.source.check_file()
        seen = sides.source.commits()
        if seen == self._seen:
            return self._expiry is not None and time.time() >= self._expiry
        self._seen = seen
        began = time.thread_time()
        due = not self._is_caught_up(sides)
        self._not_before = now + (time.thread_time() - began) / _SHARE
        return due

    def _open(self) -> Sides:
        self._sides = self._stack.enter_context(opening.opened(self._settings))
        return self._sides

    def _is_caught_up(self, sides: Sides) -> bool:
        known = sides.store.serving(sides.alias)
        if known is None or not known.serving:
            return False
        now = utc_now()
        self._expiry = _unix(sides.source.next_expiry(known.position.expired_to or now))
        return sides.source.is_caught_up(known.position, now)


def _unix(moment: str | None) -> float | None:
    try:
        return datetime.fromisoformat(moment).timestamp() if moment else None
    except ValueError:  # a run will say so
        return None
