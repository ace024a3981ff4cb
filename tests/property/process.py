"""A running syncer: its connections, its bindings, and the generation that it writes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from property.embedding import MoodyEmbedder
from property.faults import Consequence, Fault, Fuse
from property.modes import DATABASE, Mode
from property.qdrants import Qdrant

from syncer import generations, worker
from syncer.errors import ExitCode, SyncerError
from syncer.guard import Limit
from syncer.keys import Key, decode_key
from syncer.model import Description, Position
from syncer.plan import Layout
from syncer.ports import Donor, Pipeline
from syncer.result import SyncResult
from syncer.retry import Retry, never, within
from syncer.source import Limits
from syncer.state import QuarantineRecord, StateStore
from syncer.worker import Stop, Terms
from syncer.write import check_token

PAGE = 2  # rows that are looked at again at a time
ANY_NUMBER = Limit(10**9)
"""No number of deletes is too many."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """The part of the settings that decides which rows and texts there are."""

    name: str
    metadata: tuple[str, ...]
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a process reads when it starts."""

    alias: str
    mapping: Mapping
    limits: Limits


class Beginning(StrEnum):
    """How a process finds the generation that it writes to."""

    SETTLE = "go on with what is there"
    START_OVER = "make a new one"
    RECONCILE = "compare both stores"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs."""

    folder: Path
    mode: Mode
    qdrant: Qdrant
    embedder: MoodyEmbedder
    now: Callable[[], str]


class Process:
    """A running syncer, composed as the command line composes it."""

    def __init__(self, place: Place, settings: Settings) -> None:
        self.settings = settings
        self.generation = ""
        self._place = place
        mapping, mode = settings.mapping, place.mode
        spec = mode.table.spec(mapping.metadata, mapping.where)
        place.qdrant.open()
        self._store = StateStore(mode.state_in(place.folder), now=place.now)
        self._feed = mode.feed(place.folder / DATABASE, spec, settings.limits)
        # No power fails here, and waiting for the disk would be most of the time.
        self._store._database.execute("PRAGMA synchronous = OFF")  # noqa: SLF001

    def end(self) -> None:
        """Let go of everything."""
        self._feed.close()
        self._store.close()
        self._place.qdrant.close()

    def start(self, fuse: Fuse, name: Callable[[], str], beginning: Beginning) -> None:
        """Find or make the generation to write to."""
        settings, table = self.settings, self._place.mode.table.name
        recipe, source = self._place.embedder.recipe, self._store.source_id()
        description = Description(recipe, source, table, settings.mapping.name)
        wanted = generations.Wanted(settings.alias, description, f"with {settings.mapping.name}")
        store = fuse.guard(self._store, "store")
        catalog = fuse.guard(self._place.qdrant.catalog(), "catalog")
        if beginning is Beginning.START_OVER:
            generations.start_over(store, catalog, wanted, name)
        elif beginning is Beginning.RECONCILE:
            generations.reconcile(store, catalog, wanted, name)
        self.generation = generations.settle(store, catalog, wanted, name)
        self._state = self._store.bind(self.generation)
        pipeline = self._pipeline(fuse, None)
        check_token(pipeline.state, pipeline.target)

    def catch_up(
        self,
        fuse: Fuse,
        between: Callable[[], None],
        *,
        windows: int,
        fault: Fault | None = None,
        guard: Limit = ANY_NUMBER,
    ) -> SyncResult:
        """Catch up with what is committed now; stop after so many windows, if that comes first."""
        stop, pipeline = Stop(), self._pipeline(fuse, fault)
        left = iter(range(windows - 1, -1, -1))

        def report(_: SyncResult) -> None:
            between()
            if not next(left):
                stop.ask(ExitCode.INTERRUPTED)

        head = fuse.guard(self._feed, "source").head()
        terms = Terms(self._place.now, stop, guard, PAGE)
        return worker.catch_up(pipeline, terms, head=head, report=report)

    def look_at(self, fuse: Fuse, keys: Sequence[Key]) -> None:
        """Look at these rows again, because an operator says so."""
        terms = Terms(self._place.now, Stop(), ANY_NUMBER, PAGE)
        for _ in worker.look_at(self._pipeline(fuse, None), keys, terms):
            pass

    def position(self) -> Position:
        """Return the stored position."""
        return self._state.position()

    def is_idle(self) -> bool:
        """Say whether the source has nothing more."""
        return self._feed.is_idle(self.position(), self._place.now())

    def is_caught_up(self) -> bool:
        """Say whether everything that the source shows was read."""
        return self._feed.is_caught_up(self.position(), self._place.now())

    def withheld(self) -> list[Key]:
        """Return the rows whose deletion is withheld."""
        return self._state.withheld()

    def indexed(self) -> int:
        """Return how many rows the state believes to be in the target."""
        return self._state.rows()

    def quarantined(self) -> list[Key]:
        """Return the quarantined rows."""
        return [decode_key(record.row) for record in self._records()]

    def due(self) -> list[Key]:
        """Return the quarantined rows that should have been tried again by now."""
        return self._state.due(self._place.now())

    def _records(self) -> list[QuarantineRecord]:
        return self._store.quarantine(self.generation)

    def _pipeline(self, fuse: Fuse, fault: Fault | None) -> Pipeline:
        place = self._place
        retried = fault is not None and fault.consequence is Consequence.RETRY
        return Pipeline(
            source=fuse.guard(self._feed, "source"),
            state=fuse.guard(self._state, "state"),
            embedder=fuse.guard(place.embedder, "embedder"),
            target=fuse.guard(place.qdrant.target(self.generation), "target"),
            layout=Layout(
                place.mode.table.name,
                place.embedder.recipe.vector,
                json_columns=self._feed.json_columns,
            ),
            chunker=place.embedder.split,
            retry=_AT_ONCE if retried else never,
            donors=(
                Donor(
                    fuse.guard(place.qdrant.lender(self.generation), "target"),
                    (place.embedder.recipe.vector,),
                    itself=True,
                ),
            ),
        )


def _long_enough(_error: SyncerError) -> float:
    return 60.0


_AT_ONCE: Retry = within(_long_enough, sleep=lambda _: None)
