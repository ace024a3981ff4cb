"""The change feed of a table with a change log: what changed, what expired, and the walk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from syncer.errors import IdentityError, SyncerError
from syncer.keys import Key, decode_key, encode_key
from syncer.model import Position, Row, Window
from syncer.source import filesystem
from syncer.source.collector import Collector, Limits
from syncer.source.database import BUSY_SLICE, FileMark, open_readonly, snapshot, translated
from syncer.source.departures import Departures
from syncer.source.expired import Expired
from syncer.source.joined import JoinedLists
from syncer.source.log import ChangeLog
from syncer.source.order import key_order
from syncer.source.pending import Pending
from syncer.source.queries import Queries
from syncer.table import (
    Columns,
    TableSpec,
    check_table,
    is_reusable_key,
    json_columns,
    reused_key_warning,
    with_all_columns,
)


class LogSource:
    """Reads a table and its change log; see ``syncer.ports.Source`` for the contract."""

    def __init__(
        self,
        path: Path,
        spec: TableSpec,
        limits: Limits | None = None,
        busy: float = BUSY_SLICE,
    ) -> None:
        self._path = path
        self._spec = spec
        self._limits = limits or Limits()
        self._connection = open_readonly(path, busy)
        self._file = FileMark.of(path)
        try:
            with translated(path):
                self._spec = spec = with_all_columns(self._connection, spec)
                self.columns: Columns = check_table(self._connection, spec)
                self._log = ChangeLog(self._connection, path, spec)
                self._check_log()
                order = key_order(self._connection, spec)
                self._queries = Queries(spec, order)
                self._expired = Expired(
                    self._connection, self._queries, expires=spec.expires_at is not None
                )
                self._joined = JoinedLists(self._connection, spec, order)
        except SyncerError:
            self._connection.close()
            raise
        self.json_columns = json_columns(self.columns, spec)

    @property
    def metadata(self) -> tuple[str, ...]:
        """The columns that go along as metadata, ``*`` replaced by what it stands for."""
        return self._spec.metadata

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def narrow(self, times: int) -> None:
        """Halve the windows so many times, for a run whose predecessors were killed."""
        self._limits = Limits(
            max(1, self._limits.rows >> times), max(1, self._limits.size >> times)
        )

    def warnings(self) -> list[str]:
        """Return what is risky about the table, in words."""
        found = [*filesystem.warning(self._path), *self._joined.warnings]
        if is_reusable_key(self.columns, self._spec):
            found.append(reused_key_warning(self._spec))
        return found

    def commits(self) -> int:
        """Return a number that is another one after each commit on another connection."""
        with translated(self._path):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def check_file(self) -> None:
        """Raise SourceError unless the file that was opened is still the one at the path."""
        self._file.check()

    def head(self) -> int:
        """Return the last sequence number that the change log has given, 0 if none."""
        with translated(self._path):
            return self._log.head()

    def is_idle(self, position: Position, now: str) -> bool:
        """Say whether nothing has changed or expired since `position`, by two index look-ups."""
        with self._snapshot():
            return (
                position.walked
                and self._log.head() == position.change_seq
                and not self._expired.has_any(position, now)
            )

    def is_caught_up(self, position: Position, now: str) -> bool:
        """Say whether everything that is known to have changed is in the target."""
        return self.is_idle(position, now)

    def has_reached(self, position: Position, head: int, now: str) -> bool:
        """Say whether everything up to `head` of the log, and what expired by `now`, was served.

        Where there is no log: whether everything that is known to have changed was.
        """
        with self._snapshot():
            expired = (position.expired_to or "") < now and self._expired.has_any(position, now)
            return position.walked and position.change_seq >= head and not expired

    def next_expiry(self, now: str) -> str | None:
        """Return when the next row expires after `now`, or None."""
        with translated(self._path):
            return self._expired.next(now)

    def pending(self, position: Position) -> int:
        """Return how many changes of the log are past `position`, and how many rows of the walk."""
        with self._snapshot():
            changes = self._log.head() - position.change_seq
            if position.walked:
                return changes
            after = decode_key(position.last_id) if position.last_id is not None else None
            count = self._connection.execute(*self._queries.count_after(after)).fetchone()
            return int(count[0]) + changes

    def oldest_change(self, position: Position, now: str) -> str | None:
        """Return when the oldest change past `position` was made, or its row expired."""
        with self._snapshot():
            found = self._connection.execute(
                self._queries.oldest_change, (position.change_seq,)
            ).fetchone()
            expired = self._expired.first(position, now)
        stamps = [*(found or ()), *([expired] if expired else [])]
        return min(stamps, default=None)

    def count(self) -> int:
        """Return how many rows are in scope now, expired ones included."""
        with translated(self._path):
            return int(self._connection.execute(self._queries.count_in_scope).fetchone()[0])

    def rows(self, keys: Sequence[Key], now: str) -> tuple[Row, ...]:
        """Return the rows with these keys as they are now, absent ones too."""
        with self._snapshot():
            return tuple(self._row(key, now) for key in dict.fromkeys(keys))

    def walk(self, after: Key | None, now: str) -> tuple[tuple[Row, ...], Key | None]:
        """Return the rows behind `after` in key order, and where to go on; None at the end."""
        window = Collector(self._limits)
        start = Position("", last_id=None if after is None else encode_key(after))
        with self._snapshot():
            end = self._walk(start, now, window)
        last = None if end.walked else end.last_id
        return tuple(window.rows.values()), None if last is None else decode_key(last)

    def pending_keys(self, position: Position, keys: Sequence[Key], now: str) -> set[str]:
        """Return which of these rows are still to be looked at; see ``syncer.ports.Source``."""
        with self._snapshot():
            return self._changed(position, keys, now) | self._pending().ahead(position, keys, now)

    def _changed(self, position: Position, keys: Sequence[Key], now: str) -> set[str]:  # noqa: ARG002
        """Return which of these rows have changed since `position`, as JSON."""
        if self._log.head() <= position.change_seq:
            return set()
        return self._pending().changed(position.change_seq, keys)

    def _pending(self) -> Pending:
        row_at = self._row if self._expired.expires else None
        return Pending(self._connection, self._queries, row_at)

    def gone(self, position: Position, *, head: int, now: str) -> Iterator[list[Key]]:  # noqa: ARG002
        """Yield, in pages, the keys up to `head` whose rows are gone or out of scope."""
        return Departures(self._connection, self._queries, self._snapshot).pages(position, head)

    def read(self, position: Position, *, head: int, now: str) -> Window:
        """Return the rows to look at next; see ``syncer.ports.Source``."""
        with self._snapshot():
            return self._read(position, head, now)

    def _read(self, position: Position, head: int, now: str) -> Window:
        latest = self._log.head()
        if latest < position.change_seq:
            raise IdentityError(
                f"the change log of {self._path} ends at {latest}, but {position.change_seq} was "
                "already served: the database was restored or replaced",
                hint="Check which database this is. To build the collection anew from it, run "
                "`syncer once --start-over`.",
            )
        if position.expired_to is not None and now < position.expired_to:
            return self._step_back(position, now)
        window = Collector(self._limits)
        # Rows are judged by the time that is stored with the position, never by a later one: a
        # clock that steps back, but not behind it, must find nothing taken out already.
        position = self._serve_log(position, min(head, latest), position.expired_to or now, window)
        position = self._expired.serve(position, now, window)
        position = self._walk(position, position.expired_to or now, window)
        return Window(tuple(window.rows.values()), position, more=window.cut or not position.walked)

    def _step_back(self, position: Position, now: str) -> Window:
        """Follow a clock that stepped back, in a window of its own.

        The check has to be stored before anything is written by the new time: a row written now
        must be looked at again when its time comes. Rows that the step brings back into scope are
        found by walking again.
        """
        following = replace(position, expired_to=now)
        if self._expired.has_any(position, now):
            following = replace(following, last_id=None, walked=False)
        return Window((), following, more=True)

    def _serve_log(self, position: Position, head: int, now: str, window: Collector) -> Position:
        """Add the rows that changed; the position moves behind the last change served."""
        entries = self._connection.execute(
            self._queries.changes, (position.change_seq, head, self._limits.rows)
        ).fetchall()
        served = position.change_seq
        for seq, *parts in entries:
            key = tuple(parts)
            if key not in window.rows:
                if window.full:
                    window.cut = True
                    break
                window.add(self._row(key, now))
            served = seq
        if not window.cut and len(entries) < self._limits.rows:
            served = max(served, head)
        elif served < head:
            window.cut = True
        return replace(position, change_seq=served)

    def _walk(
        self, position: Position, now: str, window: Collector, until: Key | None = None
    ) -> Position:
        """Fill up with the rows behind the walk's last key, up to `until`, in key order."""
        if position.walked or window.full:
            return position
        after = decode_key(position.last_id) if position.last_id is not None else None
        room, seen = window.room, 0
        cursor = self._connection.execute(*self._queries.walk(after, now, room, until))
        last = position.last_id
        try:
            for record in cursor:
                row = self._queries.row(record)
                if window.full:
                    break
                seen += 1
                last = encode_key(row.key)
                if row.key not in window.rows:
                    window.add(self._joined.complete(row))
            else:
                return replace(position, last_id=last, walked=seen < room)
        finally:
            cursor.close()
        return replace(position, last_id=last)

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        self._file.check()
        with snapshot(self._connection, self._path):
            yield

    def _row(self, key: Key, now: str) -> Row:
        """Return the row as it is now; absent if there is none with this key."""
        record = self._connection.execute(*self._queries.one(key, now)).fetchone()
        row = self._queries.row(record) if record else Row(key)
        same = encode_key(row.key) == encode_key(key)  # where 1 is asked for, 1.0 is found as well
        return self._joined.complete(row) if same else Row(key)

    def _check_log(self) -> None:
        self._log.check()
