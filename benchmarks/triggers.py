"""Measures what triggers cost a program that inserts many rows: CPU time, against none at all.

Tables on disk in WAL mode are filled in transactions, all kinds in turn, for some rounds; each
percentage is the median of the rounds' ratios to the same table without triggers. Ends with one
line; exits 1 if the change log alone, or the canonical table's triggers, cost more than allowed.
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from syncer import changelog, migrate
from syncer.table import TableSpec

CEILING_LOG = 60.0  # percent, the change log of a table that syncer did not make
CEILING_CANONICAL = 120.0  # percent, all triggers of the canonical table
_UPKEEP, _AUDIT, _LOG = "memory_events_", "audit_", "syncer_changes_"  # how triggers are called
_BY_NUMBER = "INSERT INTO notes (body, author) VALUES (?, 'agent')"
_BY_NAME = "INSERT INTO notes (body, author, id) VALUES (?, 'agent', ?)"
_EVENT = (
    "INSERT INTO memory_events (content, agent, scope, source) "
    "VALUES (?, 'agent', 'benchmark', 'benchmark')"
)
_EXPIRING = (
    "INSERT INTO memory_events (content, agent, scope, source, expires_at) "
    "VALUES (?, 'agent', 'benchmark', 'benchmark', '2999-12-31T23:59:59.000Z')"
)
_EMPTY = "CREATE TRIGGER empty AFTER INSERT ON memory_events BEGIN SELECT 1; END"

Make = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A table to be filled: what makes it, the INSERT, and the same table without triggers.

    `counted` are the tables that must hold an entry for each row in the end.
    """

    name: str
    make: Make
    insert: str
    base: Kind | None = None
    counted: tuple[str, ...] = ()


def notes(key: str, *, log: bool = False) -> Make:
    """Return what makes an application's table with a key of that type, attached or not."""

    def make(connection: sqlite3.Connection) -> None:
        connection.execute(
            f"CREATE TABLE notes (id {key} PRIMARY KEY, author TEXT NOT NULL, body TEXT NOT NULL, "
            "created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)"
        )
        if log:
            changelog.attach(connection, TableSpec("notes", content="body", metadata=("author",)))

    return make


def events(*dropped: str, more: str = "SELECT 1") -> Make:
    """Return what makes the canonical table without the triggers whose names begin like that."""

    def make(connection: sqlite3.Connection) -> None:
        migrate.apply(connection, "canonical")
        triggers = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'memory_events'"
        ).fetchall()
        for (name,) in triggers:
            if name.startswith(dropped):
                connection.execute(f"DROP TRIGGER {name}")
        connection.execute(more)

    return make


_NONE = events(_UPKEEP, _AUDIT, _LOG)
_NOTES = Kind("a table, integer key", notes("INTEGER"), _BY_NUMBER)
_NAMED = Kind("a table, text key", notes("TEXT"), _BY_NAME)
_EVENTS = Kind("canonical table", _NONE, _EVENT)
_LEAVING = Kind("canonical table, rows expire", _NONE, _EXPIRING)
_NOTES_LOG, _EVENTS_LOG = ("syncer_changes_notes",), ("syncer_changes_memory_events",)

EMPTY = Kind("+ an empty trigger", events(_UPKEEP, _AUDIT, _LOG, more=_EMPTY), _EVENT, _EVENTS)
LOGS = (
    Kind("+ change log", notes("INTEGER", log=True), _BY_NUMBER, _NOTES, _NOTES_LOG),
    Kind("+ change log", notes("TEXT", log=True), _BY_NAME, _NAMED, _NOTES_LOG),
)
CANONICAL = Kind("+ all its triggers", events(), _EVENT, _EVENTS, (*_EVENTS_LOG, "audit_log"))
KINDS = (
    *(_NOTES, LOGS[0]),
    *(_NAMED, LOGS[1]),
    *(_EVENTS, EMPTY, CANONICAL),
    Kind("+ all but upkeep", events(_UPKEEP), _EVENT, _EVENTS),
    Kind("+ all but the audit", events(_AUDIT), _EVENT, _EVENTS),
    Kind("+ all but the change log", events(_LOG), _EVENT, _EVENTS),
    *(_LEAVING, Kind("+ all its triggers", events(), _EXPIRING, _LEAVING)),
)

Row = tuple[str, str]


def make_rows(count: int, size: int) -> list[Row]:
    """Return contents of `size` bytes, no two alike, each with a key; the keys ascend."""
    text = " ".join(str(number) for number in range(size, 3 * size))
    contents = (f"{number} {text[number % size :]}"[:size] for number in range(count))
    return [(content, f"note-{number:021}") for number, content in enumerate(contents)]


def fill(path: Path, kind: Kind, rows: Sequence[Row], transaction: int) -> float:
    """Make the table, insert the rows, and return the seconds of CPU that inserting took."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        kind.make(connection)
        values = [row[: kind.insert.count("?")] for row in rows]
        parts = [values[at : at + transaction] for at in range(0, len(rows), transaction)]
        began = time.process_time()
        for part in parts:
            connection.execute("BEGIN")
            connection.executemany(kind.insert, part)
            connection.execute("COMMIT")
        seconds = time.process_time() - began
        for table in kind.counted:
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            if count != len(rows):
                sys.exit(f"triggers: {table} has {count} entries for {len(rows)} rows")
    return seconds


def measure(
    rows: Sequence[Row], transaction: int, rounds: int, folder: Path | None
) -> dict[Kind, list[float]]:
    """Return the seconds of CPU of every kind, one number for each round."""
    found: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind, seconds in found.items():
            with tempfile.TemporaryDirectory(dir=folder) as name:
                seconds.append(fill(Path(name, "notes.db"), kind, rows, transaction))
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def overhead(found: Mapping[Kind, Sequence[float]], kind: Kind) -> float:
    """Return in percent what the triggers add to the same table without any."""
    if kind.base is None:
        return 0.0
    pairs = zip(found[kind], found[kind.base], strict=True)
    return 100 * (median(mine / without for mine, without in pairs) - 1)


def table(found: Mapping[Kind, Sequence[float]], rows: int) -> Iterable[str]:
    """Return the lines of a table with the medians."""
    yield f"{'CPU, medians':<30}{'us a row':>9}{'triggers':>10}"
    for kind, seconds in found.items():
        added = f"{overhead(found, kind):8.0f} %" if kind.base else ""
        yield f"{kind.name:<30}{median(seconds) / rows * 1e6:9.1f}{added}"


def verdict(found: Mapping[Kind, Sequence[float]]) -> tuple[str, bool]:
    """Return the closing line, numbers rounded up, and whether both are below their ceilings."""
    log = max(overhead(found, kind) for kind in LOGS)
    canonical, empty = overhead(found, CANONICAL), overhead(found, EMPTY)
    line = (
        f"triggers: log {math.ceil(log)} % (ceiling {CEILING_LOG:.0f} %), "
        f"canonical {math.ceil(canonical)} % (ceiling {CEILING_CANONICAL:.0f} %), "
        f"an empty trigger {math.ceil(empty)} %"
    )
    return line, log < CEILING_LOG and canonical < CEILING_CANONICAL


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of each table (10000)")
    parser.add_argument("--size", type=int, default=1024, help="bytes of each row's text (1024)")
    parser.add_argument("--transaction", type=int, default=1000, help="rows in one (1000)")
    parser.add_argument("--rounds", type=int, default=21, help="rounds of all kinds (21)")
    parser.add_argument("--folder", type=Path, help="where to write (the system's temporary one)")
    options = parser.parse_args()
    if min(options.rows, options.size, options.transaction, options.rounds) < 1:
        parser.error("--rows, --size, --transaction and --rounds must be at least 1")
    rows = make_rows(options.rows, options.size)
    found = measure(rows, options.transaction, options.rounds, options.folder)
    print(
        f"{options.rows:,} rows of {options.size:,} bytes, {options.transaction:,} in a "
        f"transaction, SQLite {sqlite3.sqlite_version}; {options.rounds} rounds"
    )
    for line in table(found, len(rows)):
        print(line)
    line, cheap = verdict(found)
    print(line)
    return 0 if cheap else 1


if __name__ == "__main__":
    sys.exit(main())
