"""Bringing rows home into the canonical table: the one place that writes rows.

Nothing but ``syncer recover`` and ``syncer rebuild --adopt`` comes here, since they were asked to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from syncer.errors import SourceBusyError
from syncer.foreign import COLUMNS, Memory
from syncer.keys import PointId
from syncer.sqlite import transaction, translated

Homes = dict[PointId, int | str]
"""By point: the id of its row, or why the table does not take it."""

_SEQUENCE = "SELECT seq FROM sqlite_sequence WHERE name = 'memory_events'"
_HOME = "SELECT row_id FROM audit_recovered WHERE point = ? AND payload_hash = ?"
_RECORD = (
    "INSERT INTO audit_recovered (row_id, collection, point, payload_hash) VALUES (?, ?, ?, ?)"
)


class CanonicalTable:
    """The table ``memory_events`` of a database that ``syncer init`` has made."""

    def __init__(self, path: Path, busy: float = 5.0) -> None:
        self._path = path
        with self._translated():
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode=rw", uri=True, timeout=busy, isolation_level=None
            )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def last_id(self) -> int:
        """Return the largest id that a row was ever given, 0 if none was."""
        with self._translated():
            return self._last_id()

    def home_of(self, memory: Memory) -> int | None:
        """Return the id of the row that a point was brought home as, whatever became of it."""
        with self._translated():
            return self._home(memory)

    def bring_home(self, memories: Sequence[Memory], collection: str, free: Sequence[int]) -> Homes:
        """Make a row of each, and a record of where it came from, in one transaction.

        Those that were brought home before keep their row. New rows get ids out of `free`, those
        behind the last id that was given until then. Raises SourceBusyError, and writes nothing,
        if others have taken so many meanwhile that they do not suffice.
        """
        with self._translated(), transaction(self._connection):
            last = self._last_id()
            ids = (number for number in free if number > last)
            return {each.point.id: self._bring(each, collection, ids) for each in memories}

    def _bring(self, memory: Memory, collection: str, ids: Iterator[int]) -> int | str:
        if (home := self._home(memory)) is not None:
            return home
        row = next(ids, None)
        if row is None:
            raise SourceBusyError(
                f"so many rows were written to {self._path} meanwhile that no id is left",
                hint="Nothing was changed. Run the same command again.",
            )
        said = [name for name in COLUMNS if name in memory.columns]
        names = ", ".join(["id", "content", "metadata", *said])
        values = [row, memory.content, memory.metadata, *(memory.columns[name] for name in said)]
        marks = ", ".join("?" * len(values))
        try:
            self._connection.execute(
                f"INSERT INTO memory_events ({names}) VALUES ({marks})", values
            )
        except sqlite3.IntegrityError as error:  # a column or a rule that somebody has added
            return f"the table does not take it ({error.sqlite_errorname})"
        record = (row, collection, memory.point.name, memory.hash)
        self._connection.execute(_RECORD, record)
        return row

    def _home(self, memory: Memory) -> int | None:
        found = self._connection.execute(_HOME, (memory.point.name, memory.hash)).fetchone()
        return int(found[0]) if found else None

    def _last_id(self) -> int:
        found = self._connection.execute(_SEQUENCE).fetchone()
        return int(found[0]) if found else 0

    def _translated(self) -> AbstractContextManager[None]:
        return translated(
            f"the database {self._path}",
            "does not take the rows that are brought home",
            "syncer needs write access to the file and to its folder. Nothing was deleted.",
        )
