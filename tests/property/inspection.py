"""Looking at the target row by row, once all is quiet."""

from __future__ import annotations

from property.application import Application
from property.expected import Expected, by_row, differences, is_in_scope, points_of
from property.process import Process
from property.qdrants import Held
from property.tables import Record

from syncer.keys import Key, decode_key, encode_key


class Inspection:
    """What is wrong with what the target holds; and what it was that could be looked at."""

    def __init__(self, application: Application, process: Process, held: Held) -> None:
        self.promised = 0
        self.rows = 0
        self.points = 0
        self._application = application
        self._process = process
        self._held = by_row(held)
        self._records = application.records()
        self._quarantined = set(process.quarantined())

    def complaints(self, *, strictly: bool) -> list[str]:
        """Return one sentence for all that is wrong."""
        if "" in self._held:
            return [f"nobody's: {self._held['']}"]
        held = {decode_key(row) for row in self._held}
        complaints = [f"not tried again: {key}" for key in self._process.due()]
        for key in held | self._records.keys() | self._quarantined:
            complaints += self._of(key, strictly=strictly)
        return complaints

    def _of(self, key: Key, *, strictly: bool) -> list[str]:
        held = self._held.get(encode_key(key), {})
        wanted = self._wanted(key, strictly=strictly)
        if wanted is None:
            return []
        if key in self._quarantined:
            return [f"quarantined, and yet held: {held}"] if held else []
        self.promised += 1
        found = [differences(held, each) for each in wanted]
        if all(found):
            return found[-1]
        self.rows += bool(held)
        self.points += len(held)
        return []

    def _wanted(self, key: Key, *, strictly: bool) -> list[Expected] | None:
        """Return what the target may hold of a row, the likeliest last; None if it may anything."""
        if strictly:
            states: list[Record] | None = [self._records[key]] if key in self._records else []
        else:
            states = self._application.promise.states(key, self._application.clocks)
        if states is None:
            return None
        if len(states) == 1:
            return [self._points(states[0], self._application.now())]
        # Whether the row expires is told by its present state, whichever of them was seen.
        return [{}, *(self._points(state, None) for state in states)]

    def _points(self, record: Record, now: str | None) -> Expected:
        mapping = self._process.settings.mapping
        if not is_in_scope(record, mapping, now):
            return {}
        return points_of(self._application.table.name, record, mapping)
