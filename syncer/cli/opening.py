"""Opening source and state, and the locks beside them: all that an idle run needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from syncer import lock
from syncer.cli import state_file, watch
from syncer.cli.specs import table_spec
from syncer.cli.state_file import state_path
from syncer.errors import SchemaError, SettingsError, SourceBusyError
from syncer.settings import Settings, digest, mapping_digest
from syncer.source import BUSY_SLICE, AppendSource, Limits, LogSource, StampedSource, Stamps
from syncer.state import Generation, StateStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sides:
    """The two light adapters: the source, and the state beside it."""

    settings: Settings
    source: LogSource
    store: StateStore
    schema: str  # as what the schema was found whole when they were opened
    mended: tuple[str, ...] = ()  # what of the change log had to be put back for that

    @property
    def alias(self) -> str:
        """The name under which readers find the collection."""
        return self.settings.target.collection

    @property
    def mapping(self) -> str:
        """The digest of what decides which rows and texts there are."""
        return mapping_digest(self.settings, self.source.metadata)

    def warnings(self) -> list[str]:
        """Return what is risky about the table, and what of its log was put back, in words."""
        found = self.source.warnings()
        if self.mended:
            found.append(
                f"the change log was not whole; put back: {', '.join(self.mended)}. Both stores "
                "are compared row by row, since changes may have gone unseen"
            )
        return found

    def lock_path(self, name: str) -> Path:
        """Return the lock file of a generation, or of the alias while there is none."""
        return lock_path(self.settings, name)


def lock_path(settings: Settings, name: str) -> Path:
    """Return the lock file of a generation or an alias."""
    state = state_path(settings).resolve()  # one lock, by whatever link it goes
    return state.with_name(f"{state.name}-{name}.lock")


def lock_files(sides: Sides) -> Iterator[tuple[Path, str]]:
    """Yield the lock files that there are, each with the name of what it locks."""
    start = sides.lock_path("").name.removesuffix(".lock")
    for path in sides.lock_path("").parent.iterdir():
        if path.name.startswith(start) and path.suffix == ".lock":
            yield path, path.name.removeprefix(start).removesuffix(".lock")


@contextmanager
def opened(
    settings: Settings, *, to_write: bool = False, renew_state: bool = False
) -> Iterator[Sides]:
    """Open source and state, the schema checked; both are closed in the end.

    The state goes last: a connection that may write leaves no write-ahead log behind. Where it is
    a file of its own and not there yet, it is made if `to_write`, else only for now; where it is
    damaged, it is put aside and made anew if `renew_state`.
    """
    with ExitStack() as stack:
        source = patiently(settings, lambda: _open_known_source(settings))
        stack.callback(source.close)
        state = stack.enter_context(
            state_file.ready(settings, to_write=to_write, renew=renew_state)
        )
        store = patiently(settings, lambda: _open_store(settings, state))
        stack.callback(store.close)
        stack.callback(source.close)
        schema = patiently(settings, lambda: watch.check(settings, store, may_mend=to_write))
        yield Sides(settings, source, store, schema.mark, schema.mended)


def patiently(settings: Settings, function: Callable[[], T]) -> T:
    """Call `function`, again for as long as the settings wait for a locked database."""
    try:
        return function()
    except SourceBusyError:
        from syncer.cli.compose import retry_policy  # only now, for the sake of idle runs

        return retry_policy(settings)(function)


def _open_known_source(settings: Settings) -> LogSource:
    """Open the source; a column that was there when it was last synced is an operator's matter."""
    try:
        return _open_source(settings)
    except SettingsError as error:
        if not state_path(settings).exists():
            raise
        with closing(_open_store(settings, state_path(settings))) as store:
            known = store.serving(settings.target.collection)
        if known is None or not _was_synced_by(settings, known):
            raise
        raise SchemaError(
            f"the table has changed since it was last synced: {error.message}",
            hint="Nothing was deleted. Put the column back, or correct the settings.",
        ) from error


def _was_synced_by(settings: Settings, known: Generation) -> bool:
    """Say whether the settings are those of the last run, as far as the table is concerned.

    What ``*`` stood for cannot be asked of a table that has changed: then all of them have to be.
    """
    mapping = known.mapping_digest == mapping_digest(settings)
    return mapping or known.settings_digest == digest(settings)


def _open_source(settings: Settings) -> LogSource:
    limits = Limits(settings.sync.window_rows, settings.sync.window_bytes)
    source, spec, busy = settings.source, table_spec(settings), _busy_slice(settings)
    if source.changes == "append_only":
        return AppendSource(source.database, spec, limits, busy)
    if source.changes == "updated_at" and source.updated_at is not None:
        stamps = Stamps(source.updated_at, source.look_back)
        return StampedSource(source.database, spec, stamps, limits, busy)
    return LogSource(source.database, spec, limits, busy)


def _open_store(settings: Settings, path: Path) -> StateStore:
    busy, keep_old = _busy_slice(settings), settings.target.keep_old
    return StateStore(path, busy=busy, keep_old=keep_old)


def _busy_slice(settings: Settings) -> float:
    return min(BUSY_SLICE, settings.source.busy_timeout)


def locked(sides: Sides, name: str) -> AbstractContextManager[int]:
    """Hold the lock of a generation, or of the alias while it is looked for or made.

    The block gets how many holders in a row were killed.
    """
    path = sides.lock_path(name)
    return lock.held(path, f"the lock on {name}", sides.settings.target.lock_wait)
