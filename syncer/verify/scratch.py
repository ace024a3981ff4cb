"""What is found on the way, in a SQLite file of its own, so that memory does not grow with it."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from syncer.errors import SourceError
from syncer.keys import MAX_INTEGER_ID, PointId
from syncer.records import Record
from syncer.result import Drift, Sample

_PAGE = 500  # suspects and findings at a time
_CACHE = 32 * 1024  # KiB of the file that stay in memory

# Ids have no type of their own, so that 42 and a UUID stay what they are; an index keeps them
# unique. One row of `suspects` or `findings` is the row itself ('' for the id), the others are
# points that speak of it and should not be there; '' for the row stands for foreign points.
_SCHEMA = """
CREATE TABLE points (n INTEGER PRIMARY KEY, id UNIQUE, row, chunk, chunks, content, payload);
CREATE TABLE spread (id PRIMARY KEY, row, chunks, content, payload, whole) WITHOUT ROWID;
CREATE TABLE suspects (row, id, PRIMARY KEY (row, id)) WITHOUT ROWID;
CREATE TABLE findings (row, id, kind, PRIMARY KEY (row, id)) WITHOUT ROWID;
"""
_COLUMNS = "p.n, p.id, p.row, p.chunk, p.chunks, p.content, p.payload"
_AT = f"SELECT {_COLUMNS} FROM json_each(?) AS j CROSS JOIN points AS p ON p.id = j.value"
_AT_N = f"SELECT {_COLUMNS} FROM json_each(?) AS j CROSS JOIN points AS p ON p.n = j.value"
_PUT_POINT = (
    "INSERT OR IGNORE INTO points (id, row, chunk, chunks, content, payload) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A row, by its key as JSON, or foreign points (then empty), and in what they differ.

    `ids` are points that speak of the row and are no chunk that it should have.
    """

    kind: Drift
    row: str
    ids: tuple[PointId, ...] = ()


class Scratch:
    """A file of what the target holds, of what is suspect and of what was confirmed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA cache_size = -{_CACHE}")
        for statement in _SCHEMA.strip().split("\n"):
            connection.execute(statement)
        connection.execute("BEGIN")  # and never an end: nobody reads the file afterwards
        self._seen = bytearray(1)
        self.kept = 0

    def put(self, records: Iterable[Record]) -> None:
        """Keep the records of points that no row has accounted for yet."""
        values = ((_stored(r.id), r.row, r.chunk, r.chunks, r.content, r.payload) for r in records)
        new = self._connection.executemany(_PUT_POINT, values).rowcount
        self._seen.extend(bytes(new))
        self.kept += new

    def at(self, ids: Iterable[PointId]) -> dict[PointId, tuple[int, Record]]:
        """Return the points with these ids, each with its number."""
        rows = self._connection.execute(_AT, (json.dumps([_stored(one) for one in ids]),))
        return {_restored(row[1]): (row[0], _record(row)) for row in rows}

    def see(self, number: int) -> None:
        """Note that the point with this number belongs to a row."""
        self._seen[number] = 1

    def put_spread(self, first: Record, *, whole: bool) -> None:
        """Keep the first point of a row of several; `whole` if nothing is wrong with it itself."""
        values = (_stored(first.id), first.row, first.chunks, first.content, first.payload, whole)
        self._connection.execute("INSERT OR IGNORE INTO spread VALUES (?, ?, ?, ?, ?, ?)", values)

    def spread(self) -> Iterator[tuple[Record, bool]]:
        """Yield what was kept so."""
        sql = "SELECT * FROM spread WHERE id > ? ORDER BY id LIMIT ?"
        edge: object = -1
        while page := self._connection.execute(sql, (edge, _PAGE)).fetchall():
            for one, row, chunks, content, payload, whole in page:
                yield Record(_restored(one), row, 0, chunks, content, payload), bool(whole)
            edge = page[-1][0]

    def unseen(self) -> Iterator[list[Record]]:
        """Yield, in pages, the points that no row has accounted for."""
        number, page = self._seen.find(0, 1), []
        while number != -1:
            page.append(number)
            number = self._seen.find(0, number + 1)
            if len(page) == _PAGE or number == -1:
                found = self._connection.execute(_AT_N, (json.dumps(page),))
                yield [_record(row) for row in found.fetchall()]
                page = []

    def suspect(self, entries: Iterable[tuple[str, PointId | None]]) -> None:
        """Keep rows, and points that should not be there of a row or (empty) are foreign."""
        values = [(row, "" if one is None else _stored(one)) for row, one in entries]
        self._many("INSERT OR IGNORE INTO suspects VALUES (?, ?)", values)

    def suspects(self) -> Iterator[dict[str, list[PointId]]]:
        """Yield rows, in pages, each with the points that should not be there; foreign ones apart.

        All foreign points stand under the empty row, in pages of their own.
        """
        for page in self._pages("suspects", "'' AS kind"):
            found: dict[str, list[PointId]] = defaultdict(list)
            for row, one, _ in page:
                found[row] += [] if one == "" else [_restored(one)]
            yield found

    def find(self, findings: Iterable[Finding]) -> None:
        """Keep what was confirmed."""
        values = [
            (finding.row, one, finding.kind.value)
            for finding in findings
            for one in ([""] if finding.row else []) + [_stored(each) for each in finding.ids]
        ]
        self._many("INSERT OR REPLACE INTO findings VALUES (?, ?, ?)", values)

    def findings(self) -> Iterator[list[Finding]]:
        """Yield, in pages, what was confirmed."""
        for page in self._pages("findings", "kind"):
            found: dict[tuple[str, str], list[PointId]] = defaultdict(list)
            for row, one, kind in page:
                found[row, kind] += [] if one == "" else [_restored(one)]
            yield [Finding(Drift(kind), row, tuple(ids)) for (row, kind), ids in found.items()]

    def drift(self) -> Mapping[Drift, Sample[str]]:
        """Return how much of each kind was confirmed, and some of it; points only if foreign."""
        which = "(row = '' OR id = '')"
        counts = f"SELECT kind, count(*) FROM findings WHERE {which} GROUP BY kind"
        some = f"SELECT row, id FROM findings WHERE kind = ? AND {which} LIMIT 20"
        return {
            Drift(kind): Sample(
                tuple(str(row or one) for row, one in self._connection.execute(some, (kind,))),
                count,
            )
            for kind, count in self._connection.execute(counts).fetchall()
        }

    def _pages(self, table: str, kind: str) -> Iterator[list[tuple[str, int | str, str]]]:
        """Yield the rows of a table in pages that cut no row in two, foreign points apart."""
        sql = (
            f"SELECT row, id, {kind} FROM {table} WHERE (row, id) > (?, ?) ORDER BY row, id LIMIT ?"
        )
        edge: tuple[object, object] = ("", b"")  # a blob comes last, and no row is called so
        start = self._connection.execute(f"SELECT 1 FROM {table} WHERE row = '' LIMIT 1")
        if start.fetchone():
            yield from self._foreign(table, kind)
        while page := self._connection.execute(sql, (*edge, _PAGE)).fetchall():
            rest = f"SELECT row, id, {kind} FROM {table} WHERE row = ? AND id > ? ORDER BY id"
            last = page[-1]
            page += self._connection.execute(rest, last[:2]).fetchall()
            edge = (last[0], b"")
            yield page

    def _foreign(self, table: str, kind: str) -> Iterator[list[tuple[str, int | str, str]]]:
        sql = f"SELECT row, id, {kind} FROM {table} WHERE row = '' AND id > ? ORDER BY id LIMIT ?"
        edge: object = -1
        while page := self._connection.execute(sql, (edge, _PAGE)).fetchall():
            yield page
            edge = page[-1][1]

    def _many(self, sql: str, values: Sequence[Sequence[object]]) -> None:
        self._connection.executemany(sql, values)


@contextmanager
def scratch_in(folder: Path | None) -> Iterator[Scratch]:
    """Make a scratch file in `folder`, or where temporary files go; it is gone afterwards."""
    with ExitStack() as stack:
        try:
            place = stack.enter_context(TemporaryDirectory(prefix="syncer-verify-", dir=folder))
        except OSError as error:
            raise _unwritable(error) from error
        try:
            file = sqlite3.connect(Path(place) / "scratch.db", isolation_level=None)
            stack.callback(file.close)
            yield Scratch(file)
        except sqlite3.Error as error:
            raise _unwritable(error) from error


def _unwritable(error: Exception) -> SourceError:
    return SourceError(
        f"the scratch file of the comparison cannot be written: {error}",
        hint="Let TMPDIR name a folder with room: some 200 bytes for each point.",
    )


def _stored(identifier: PointId) -> int | str:
    """Return an id as SQLite keeps it; those beyond its integers as text, which no UUID is."""
    large = isinstance(identifier, int) and identifier > MAX_INTEGER_ID
    return str(identifier) if large else identifier


def _restored(value: int | str) -> PointId:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _record(row: Sequence[object]) -> Record:
    _, identifier, name, chunk, chunks, content, payload = row
    return Record(_restored(identifier), name, chunk, chunks, content, payload)  # type: ignore[arg-type]
