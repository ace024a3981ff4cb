"""One database with its application, one Qdrant, one clock, and the syncer between them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from property.expected import differences, expected_points
from property.faults import Fault, Fuse, Killed, Meanwhile
from property.modes import TABLE, Mode
from property.process import Mapping, Process, Settings
from property.qdrants import Qdrant
from property.writes import FIRST_SECOND, Write, second_of, stamp

from syncer.errors import SyncerError
from syncer.source import Limits

ENOUGH = 500  # windows after which a run without end is given up
MAPPINGS = (
    Mapping("all", ("agent", "metadata")),
    Mapping("less metadata", ("agent",)),
    Mapping("fewer rows", ("agent", "metadata"), "scope <> 'out'"),
)


@dataclass(slots=True)
class Tally:
    """What the schedules have done, so that those that do nothing cannot pass.

    `found_after` is the number of steps after which something was wrong for the first time.
    """

    schedules: int = 0
    steps: int = 0
    changed: int = 0
    windows: int = 0
    embedded: int = 0
    payload_only: int = 0
    deleted: int = 0
    processes: int = 0
    kills: int = 0
    errors: int = 0
    meanwhile: int = 0
    comparisons: int = 0
    rows: int = 0
    points: int = 0
    found_after: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How syncer is called: window limits, windows at most, what goes wrong, what else happens.

    `fresh` ends a process that is still alive first. The clock moves `tick` seconds on after each
    window.
    """

    limits: Limits
    windows: int = ENOUGH
    fresh: bool = False
    start_over: bool = False
    tick: int = 0
    fault: Fault | None = None


class World:
    """One database with its application, one Qdrant, one clock, and the syncer between them."""

    def __init__(
        self, template: Path, mode: Mode, qdrant: Callable[[Path], Qdrant], tally: Tally
    ) -> None:
        self.tally = tally
        self.second = FIRST_SECOND
        self.mapping = MAPPINGS[0]
        self.alias = "memory"
        self._folder = TemporaryDirectory()
        self._mode = mode
        self._qdrant = qdrant(Path(self._folder.name))
        self._path = Path(self._folder.name, "memory.db")
        shutil.copy(template, self._path)
        self._application = sqlite3.connect(self._path, isolation_level=None)
        self._application.execute("PRAGMA synchronous = OFF")
        self._process: Process | None = None
        self._generations = 0

    def close(self) -> None:
        """Leave nothing behind."""
        self.end_process()
        self._application.close()
        self._folder.cleanup()

    def now(self) -> str:
        """Return what the clock shows."""
        return stamp(self.second)

    # The application

    def write(self, write: Write) -> int:
        """Let the application commit one statement; return how many rows it changed."""
        changed = self._application.execute(write.sql, write.values).rowcount
        self.tally.changed += max(0, changed)
        return changed

    def write_together(self, writes: Sequence[Write], end: str) -> None:
        """Let the application make several changes in one transaction."""
        self._application.execute("BEGIN")
        for write in writes:
            self.write(write)
        self._application.execute(end)

    def content_of(self, row: int) -> str | None:
        """Return the text of a row, or None if there is no such row."""
        sql = f"SELECT content FROM {TABLE} WHERE id = ?"
        found = self._application.execute(sql, (row,)).fetchone()
        return None if found is None else str(found[0])

    def next_expiry(self) -> int | None:
        """Return the second at which the next row expires, or None."""
        sql = f"SELECT min(expires_at) FROM {TABLE} WHERE expires_at > ?"
        (found,) = self._application.execute(sql, (self.now(),)).fetchone()
        return None if found is None else second_of(found)

    # syncer

    def run(self, run: Run, meanwhile: Meanwhile | None = None) -> bool:
        """Let syncer run; return whether it has caught up.

        What was planned to fail it may fail by, and by nothing else.
        """
        fuse = Fuse(run.fault, meanwhile)
        try:
            process = self._running(run, fuse)
            total = process.catch_up(fuse, run.fault, run.windows, lambda: self._tick(run))
        except Killed:
            self.tally.kills += 1
            self.end_process()
            return False
        except SyncerError as error:
            if error is not fuse.error:
                raise
            self.tally.errors += 1
            return False
        finally:
            self.tally.meanwhile += fuse.interfered
        self.tally.windows += 1
        self.tally.embedded += total.embedded
        self.tally.payload_only += total.payload_only
        self.tally.deleted += total.deleted
        return not total.more

    def end_process(self) -> None:
        """End the process that is running, if there is one."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def check(self) -> None:
        """Raise AssertionError unless target, state and a further run say that all is done."""
        process = self._process
        assert process is not None
        held = self._qdrant.points(process.generation)
        expected = expected_points(self._application, process.settings.mapping, self.now())
        complaints = differences(held, expected)
        complaints += [f"quarantined: {record}" for record in process.quarantine()]
        complaints += self._mode.complaints(self._application, process.position())
        if not process.is_idle():
            complaints.append(f"not at the head: {process.position()}")
        if self._writes_again(process):
            complaints.append("a run with nothing to do has written to the database")
        assert not complaints, "\n".join(complaints)
        self.tally.comparisons += 1
        self.tally.points += len(expected)
        self.tally.rows += sum(isinstance(point, int) for point in expected)

    def _writes_again(self, process: Process) -> bool:
        version = self._application.execute("PRAGMA data_version").fetchone()
        again = process.catch_up(Fuse(), None, ENOUGH, lambda: None)
        after = self._application.execute("PRAGMA data_version").fetchone()
        return bool(version != after or again.read or again.more)

    def _running(self, run: Run, fuse: Fuse) -> Process:
        """Return the process that is alive, if it may go on, else a new one."""
        settings = Settings(self.alias, self.mapping, run.limits)
        if self._process is not None:
            may_go_on = self._process.settings == settings and not run.start_over
            if may_go_on and not run.fresh:
                return self._process
            self.end_process()
        process = Process(self._path, self._mode, self._qdrant, settings, self.now)
        try:
            process.start(fuse, self._new_name, start_over=run.start_over)
        except BaseException:
            process.end()
            raise
        self.tally.processes += 1
        self._process = process
        return process

    def _new_name(self) -> str:
        self._generations += 1
        return f"{self.alias}--{self._generations}"

    def _tick(self, run: Run) -> None:
        self.second += run.tick
