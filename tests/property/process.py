"""A running syncer: its connections, its bindings, and the generation that it writes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from property.faults import Consequence, Fault, Fuse
from property.modes import TABLE, Mode
from property.qdrants import Qdrant

from syncer import generations
from syncer.embed.hashing import HashEmbedder
from syncer.embed.spec import EmbedSpec
from syncer.errors import SyncerError
from syncer.model import Description, Position, SyncResult
from syncer.plan import Layout
from syncer.ports import Pipeline
from syncer.retry import Retry, never, within
from syncer.source import Limits, TableSpec
from syncer.state import QuarantineRecord, StateStore
from syncer.sync import sync_once
from syncer.write import check_token

CHUNK = 4  # characters
EMBEDDER = HashEmbedder(EmbedSpec(provider="hash", dimension=8), {"chunker": f"{CHUNK} characters"})


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


def by_characters(text: str) -> Sequence[str]:
    """Cut a text every few characters."""
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]


class Process:
    """A running syncer, composed as the command line composes it."""

    def __init__(
        self, database: Path, mode: Mode, qdrant: Qdrant, settings: Settings, now: Callable[[], str]
    ) -> None:
        self.settings = settings
        self.generation = ""
        self._qdrant = qdrant
        self._now = now
        mapping = settings.mapping
        spec = TableSpec(
            TABLE,
            metadata=mapping.metadata,
            where=mapping.where,
            deleted="superseded_by IS NOT NULL OR deleted_by IS NOT NULL",
            expires_at="expires_at",
        )
        qdrant.open()
        self._store = StateStore(mode.state_of(database), now=now)
        self._feed = mode.feed(database, spec, settings.limits)
        # No power fails here, and waiting for the disk would be most of the time.
        self._store._database.execute("PRAGMA synchronous = OFF")  # noqa: SLF001

    def end(self) -> None:
        """Let go of everything."""
        self._feed.close()
        self._store.close()
        self._qdrant.close()

    def start(self, fuse: Fuse, name: Callable[[], str], *, start_over: bool) -> None:
        """Find or make the generation to write to."""
        settings = self.settings
        description = Description(
            EMBEDDER.recipe, self._store.source_id(), TABLE, settings.mapping.name
        )
        wanted = generations.Wanted(settings.alias, description, f"with {settings.mapping.name}")
        settle = generations.start_over if start_over else generations.settle
        store = fuse.guard(self._store, "store")
        catalog = fuse.guard(self._qdrant.catalog(), "catalog")
        self.generation = settle(store, catalog, wanted, name)
        self._state = self._store.bind(self.generation)
        pipeline = self._pipeline(fuse, None)
        check_token(pipeline.state, pipeline.target)

    def catch_up(
        self, fuse: Fuse, fault: Fault | None, windows: int, between: Callable[[], None]
    ) -> SyncResult:
        """Sync window after window, at most so many, up to the head as it is now."""
        pipeline = self._pipeline(fuse, fault)
        head = self._feed.head()
        total = sync_once(pipeline, head=head, now=self._now())
        for _ in range(windows - 1):
            if not total.more:
                break
            between()
            total = total.plus(sync_once(pipeline, head=head, now=self._now()))
        return total

    def position(self) -> Position:
        """Return the stored position."""
        return self._state.position()

    def is_idle(self) -> bool:
        """Say whether the source has nothing more."""
        return self._feed.is_idle(self.position(), self._now())

    def quarantine(self) -> list[QuarantineRecord]:
        """Return the quarantined rows."""
        return self._store.quarantine(self.generation)

    def _pipeline(self, fuse: Fuse, fault: Fault | None) -> Pipeline:
        retried = fault is not None and fault.consequence is Consequence.RETRY
        return Pipeline(
            source=fuse.guard(self._feed, "source"),
            state=fuse.guard(self._state, "state"),
            embedder=fuse.guard(EMBEDDER, "embedder"),
            target=fuse.guard(self._qdrant.target(self.generation), "target"),
            layout=Layout(TABLE, EMBEDDER.recipe.vector, json_columns=self._feed.json_columns),
            chunker=by_characters,
            retry=_AT_ONCE if retried else never,
        )


def _long_enough(_error: SyncerError) -> float:
    return 60.0


_AT_ONCE: Retry = within(_long_enough, sleep=lambda _: None)
