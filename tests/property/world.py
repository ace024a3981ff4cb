"""One application, one Qdrant, one clock, and the syncer between them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from property.application import Application
from property.embedding import MoodyEmbedder
from property.faults import Fault, Fuse, Killed, Meanwhile
from property.inspection import Inspection
from property.modes import Mode
from property.process import ANY_NUMBER, Beginning, Mapping, Place, Process, Settings
from property.qdrants import Held, Qdrant
from property.tally import Tally
from property.writes import Write

from syncer.errors import IdentityError, SyncerError
from syncer.guard import Limit
from syncer.keys import Key
from syncer.source import Limits
from syncer.text import normalise

ENOUGH = 500  # windows after which a run without end is given up
MAPPINGS = (
    Mapping("all", ("agent", "metadata")),
    Mapping("less metadata", ("agent",)),
    Mapping("fewer rows", ("agent", "metadata"), "scope <> 'out'"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """How syncer is called: window limits, windows at most, what goes wrong, what it may delete.

    `fresh` ends a process that is still alive first. The clock moves `tick` seconds on after each
    window.
    """

    limits: Limits
    windows: int = ENOUGH
    fresh: bool = False
    beginning: Beginning = Beginning.SETTLE
    tick: int = 0
    fault: Fault | None = None
    guard: Limit = ANY_NUMBER


class World:
    """One application, one Qdrant, one clock, and the syncer between them."""

    def __init__(
        self, templates: Path, mode: Mode, qdrant: Callable[[Path], Qdrant], tally: Tally
    ) -> None:
        self.tally = tally
        self.mode = mode
        self.mapping = MAPPINGS[0]
        self.alias = "memory"
        self.embedder = MoodyEmbedder()
        self.was_refused = False  # the last run, because something went back
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        shutil.copytree(templates / mode.name, folder, dirs_exist_ok=True)
        self.application = Application(folder, mode)
        self._qdrant = qdrant(folder)
        self._place = Place(folder, mode, self._qdrant, self.embedder, self.application.now)
        self._process: Process | None = None
        self._generations = 0
        self._restored: dict[str, bool] = {}  # by alias: whether it has to be refused
        self._backed_up: dict[str, str | None] = {}

    def close(self) -> None:
        """Leave nothing behind."""
        self.end_process()
        self.application.close()
        self._folder.cleanup()

    # The application

    def write(self, write: Write) -> int:
        """Let the application commit one statement; return how many rows it changed."""
        changed = self.application.write(write)
        self.tally.changed += max(0, changed)
        return changed

    def write_together(self, writes: Sequence[Write], end: str) -> None:
        """Let the application make several changes in one transaction."""
        self.tally.changed += self.application.write_together(writes, end)

    def back_up(self, aliases: Sequence[str]) -> None:
        """Let the operator keep a copy of the database while syncer is stopped."""
        self.end_process()
        self.application.back_up()
        self._backed_up = self._tokens(aliases)

    def restore(self) -> None:
        """Let the operator put the copy in the database's place while syncer is stopped."""
        self.end_process()
        self.application.restore()
        if self.mode.logged:
            self._restored = {
                alias: token is not None and token != self._backed_up[alias]
                for alias, token in self._tokens(list(self._backed_up)).items()
            }

    # syncer

    def run(self, run: Run, meanwhile: Meanwhile | None = None) -> bool:
        """Let syncer run; return whether it has caught up.

        What was planned to fail it may fail by, and what has gone backwards it has to refuse.
        """
        fuse = Fuse(run.fault, meanwhile)
        self.was_refused = False
        if run.beginning is not Beginning.SETTLE and self.alias in self._restored:
            self._restored[self.alias] = False  # it need not be refused any more
        try:
            caught_up = self._run(run, fuse)
        except Killed:
            self.tally.kills += 1
            self.end_process()
            return False
        except SyncerError as error:
            self._take(error, fuse)
            return False
        finally:
            self.tally.meanwhile += fuse.interfered
        assert not self._restored.pop(self.alias, False), "a restored database goes unnoticed"
        return caught_up

    def run_undisturbed(self, run: Run) -> None:
        """Let syncer run to the end; an operator reconciles what has gone backwards."""
        run = replace(run, windows=ENOUGH, tick=0, fault=None)
        done = self.run(run)
        if self.was_refused:
            done = self.run(replace(run, beginning=Beginning.RECONCILE))
        assert done, "a run that nobody disturbs has no end"

    def confirm_deletes(self) -> None:
        """Let the operator say that what is withheld may go."""
        process = self.process
        self.tally.withheld += len(process.withheld())
        process.look_at(Fuse(), process.withheld())
        left = set(process.withheld())
        assert not left, f"deletes are withheld although they were confirmed: {left}"

    def retry_quarantined(self) -> None:
        """Let the operator have the quarantined rows tried again."""
        process, records = self.process, self.application.records()
        process.look_at(Fuse(), process.quarantined())
        for key in process.quarantined():
            text = normalise(records[key].content)
            assert self.embedder.refuses_any(text), f"quarantined for nothing: {key}"

    def end_process(self) -> None:
        """End the process that is running, if there is one."""
        if self._process is not None:
            self._process.end()
            self._process = None

    @property
    def process(self) -> Process:
        """The process that is running."""
        assert self._process is not None, "no process is running"
        return self._process

    def held(self) -> Held:
        """Return what the target holds."""
        return self._qdrant.points(self.process.generation)

    def withheld(self) -> list[Key]:
        """Return the rows whose deletion is withheld."""
        return self.process.withheld()

    def check(self, *, strictly: bool = False) -> None:
        """Raise AssertionError unless target, state and a further run say that all is done.

        What a mode does not promise is left out of account unless `strictly`.
        """
        inspection = Inspection(self.application, self.process, self.held())
        complaints = inspection.complaints(strictly=strictly)
        position = self.process.position()
        if self.mode.goes_backwards(self.application.database, position):
            complaints.append(f"the table ends before {position.last_id}, and nobody is told")
        complaints += self.mode.leftovers(self.application.database, position)
        complaints += self._another_run()
        assert not complaints, "\n".join(complaints)
        self.tally.comparisons += 1
        self.tally.promised += inspection.promised
        self.tally.rows += inspection.rows
        self.tally.points += inspection.points
        self.tally.quarantined += len(self.process.quarantined())

    def _another_run(self) -> list[str]:
        """Say what a run does that has nothing to do."""
        process, database = self.process, self.application.database
        complaints = []
        if not (process.is_idle() if self.mode.logged else process.is_caught_up()):
            complaints.append(f"not at the end: {process.position()}")
        before = database.execute("PRAGMA data_version").fetchone()
        again = process.catch_up(Fuse(), lambda: None, windows=ENOUGH)
        if database.execute("PRAGMA data_version").fetchone() != before:
            complaints.append("a run with nothing to do has written to the database")
        if again.embedded or again.payload_only or again.deleted or again.more:
            complaints.append(f"a run with nothing to do has done {again}")
        if again.read and self.mode.logged:
            complaints.append(f"a run with nothing to do has read {again.read} rows")
        return complaints

    def _run(self, run: Run, fuse: Fuse) -> bool:
        process = self._running(run, fuse)
        self.application.seen = max(self.application.seen, self.application.second)
        total = process.catch_up(
            fuse,
            lambda: self._tick(run),
            windows=run.windows,
            fault=run.fault,
            guard=run.guard,
        )
        self.tally.windows += 1
        self.tally.embedded += total.embedded
        self.tally.payload_only += total.payload_only
        self.tally.deleted += total.deleted
        return not total.more

    def _take(self, error: SyncerError, fuse: Fuse) -> None:
        """Accept an error that had to come; raise any other."""
        if error is fuse.error:
            self.tally.errors += 1
            return
        if not isinstance(error, IdentityError) or not self._has_gone_back():
            raise error
        self.tally.refusals += 1
        self.was_refused = True
        self.end_process()

    def _has_gone_back(self) -> bool:
        if self.alias in self._restored:
            return True
        database = self.application.database
        return self._process is not None and self.mode.goes_backwards(
            database, self._process.position()
        )

    def _tokens(self, aliases: Sequence[str]) -> dict[str, str | None]:
        """Return what the collections behind these aliases carry."""
        self._qdrant.open()
        catalog = self._qdrant.catalog()
        found = {alias: catalog.resolve(alias) for alias in aliases}
        tokens = {alias: name and catalog.token(name) for alias, name in found.items()}
        self._qdrant.close()
        return tokens

    def _running(self, run: Run, fuse: Fuse) -> Process:
        """Return the process that is alive, if it may go on, else a new one."""
        settings = Settings(self.alias, self.mapping, run.limits)
        if self._process is not None:
            may_go_on = self._process.settings == settings
            if may_go_on and not run.fresh and run.beginning is Beginning.SETTLE:
                return self._process
            self.end_process()
        process = Process(self._place, settings)
        try:
            process.start(fuse, self._new_name, run.beginning)
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
        self.application.second += run.tick
        self.application.seen = max(self.application.seen, self.application.second)
