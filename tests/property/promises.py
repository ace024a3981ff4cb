"""What a mode promises of each row: which states of it the target may hold once all is quiet.

Where changes are logged that is the present state. The other modes promise less, and each promise
is kept to the letter here: what a mode says that it cannot see is not held against it, but never
may the target hold anything that the row has not been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from property.stamping import LOOK_BACK, Stamps
from property.tables import Record

from syncer.keys import Key

Records = Mapping[Key, Record]


@dataclass(frozen=True, slots=True)
class Clocks:
    """What the clock shows, and the latest that it has shown to any run so far."""

    now: int
    seen: int


class Promise(Protocol):
    """What is owed, as it follows from what was committed."""

    def committed(self, records: Records, clocks: Clocks) -> None:
        """Take note of the table as it is after a commit."""

    def states(self, key: Key, clocks: Clocks) -> list[Record] | None:
        """Return the states of a row that may be held; none if it must not be, None for any."""


class Everything:
    """All changes are seen."""

    def __init__(self, stamps: Stamps) -> None:
        del stamps
        self._records: Records = {}

    def committed(self, records: Records, clocks: Clocks) -> None:
        """Keep the present state."""
        del clocks
        self._records = records

    def states(self, key: Key, clocks: Clocks) -> list[Record] | None:
        """Return the present state."""
        del clocks
        return [self._records[key]] if key in self._records else []


class NewRows:
    """Rows are read once, when they come behind the last key.

    A row that has changed since may be held as any state that it has had. Of one that is gone, or
    has come with a lower key, nothing is said.
    """

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._records: Records = {}
        self._states: dict[Key, list[Record]] = {}
        self._lost: set[Key] = set()  # keys under which something may be held that was not seen go
        self._owed: set[Key] = set()  # keys whose present state is seen, whenever the next run is
        self._last: Key | None = None

    def committed(self, records: Records, clocks: Clocks) -> None:
        """Keep all states of each row, and whether the present one will be seen for sure."""
        self._lost |= self._records.keys() - records.keys()
        for key, record in records.items():
            if self._records.get(key) != record:
                self._changed(key, record, clocks)
        self._records = records
        self._last = max([*records, *([self._last] if self._last else [])], default=None)

    def states(self, key: Key, clocks: Clocks) -> list[Record] | None:
        """Return the present state if it is seen for sure, else all that there were."""
        record = self._records.get(key)
        if record and (key in self._owed or self._is_in_sight(record, clocks)):
            return [record]
        return None if key in self._lost else self._states.get(key, [])

    def _changed(self, key: Key, record: Record, clocks: Clocks) -> None:
        self._states.setdefault(key, []).append(record)
        is_new = key not in self._records
        is_behind_all = is_new and (self._last is None or key > self._last)
        if is_behind_all or self._will_be_seen(record, clocks):
            self._owed.add(key)
            return
        # The change may even hide an earlier one that nobody has come to see yet.
        self._owed.discard(key)
        if is_new:
            self._lost.add(key)

    def _will_be_seen(self, record: Record, clocks: Clocks) -> bool:
        """Say whether a change that was committed now is seen, whenever the next run begins."""
        del record, clocks
        return False

    def _is_in_sight(self, record: Record, clocks: Clocks) -> bool:
        """Say whether a run that begins now sees the row."""
        del record, clocks
        return False


class StampedRows(NewRows):
    """Changes are seen by their stamp as well, if it is late enough.

    What was settled lies a look-back behind the latest clock that a run has seen; a run whose
    clock was set back looks back from there. A change under an older stamp hides what came before
    it, and be it half written: nothing is said of such a row.
    """

    def states(self, key: Key, clocks: Clocks) -> list[Record] | None:
        """Return the present state if it is seen for sure."""
        record = self._records.get(key)
        if record is None:
            return super().states(key, clocks)
        is_seen = key in self._owed or self._is_in_sight(record, clocks)
        return [record] if is_seen else None

    def _will_be_seen(self, record: Record, clocks: Clocks) -> bool:
        return self._is_later(record, clocks.seen - LOOK_BACK)

    def _is_in_sight(self, record: Record, clocks: Clocks) -> bool:
        return self._is_later(record, clocks.now - LOOK_BACK)

    def _is_later(self, record: Record, second: int) -> bool:
        stamped = self._stamps.second(record.stamp)
        return stamped is None or stamped > second
