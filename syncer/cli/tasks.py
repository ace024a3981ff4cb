"""What the daemon does when it is due: sync, verify, prune; by the settings that are in force."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from syncer.cli import compose, opening, state_file
from syncer.cli.kept import Kept
from syncer.cli.once import is_idle, look_at_target, target_is_due
from syncer.cli.opening import Sides
from syncer.cli.run import everything, work_on_serving
from syncer.cli.wake import Watcher
from syncer.errors import LockedError, RecipeError, SettingsError, SyncerError
from syncer.settings import Settings
from syncer.state import Generation, StateStore, utc_now

if TYPE_CHECKING:
    from syncer.cli.observed import ObservedReport
    from syncer.cli.ready import Ready
    from syncer.result import SyncResult
    from syncer.worker import Stop

Load = Callable[[], Settings]
Signs = tuple[object, ...]


class Tasks:
    """The daemon's work, and what it keeps open for it; all of it belongs to the main thread.

    `load` reads the settings, again whenever the file `config` has changed.
    """

    def __init__(
        self,
        load: Load,
        settings: Settings,
        config: Path | None,
        report: ObservedReport,
        stop: Stop,
    ) -> None:
        self.settings = settings
        """Those in force."""
        self._load, self._config, self._stamp = load, config, _stamp(config)
        self._report, self._stop = report, stop
        self._kept = Kept(settings)
        self.watcher = Watcher(settings)
        self._warned: set[str] = set()
        self._inode: int | None = None
        """Of the database, when it was last known to be the right one."""

    def is_woken(self) -> bool:
        """Say whether somebody has committed a change, or a row has expired; if it is asked for."""
        return self.settings.daemon.wake and self.watcher()

    def close(self) -> None:
        """Close everything that is kept open."""
        self.watcher.close()
        self._kept.close()

    def sync(self) -> bool:
        """Bring in everything that is committed; say whether that is all."""
        with opening.opened(self.settings, to_write=True) as sides:
            self._warn(sides)
            known = opening.patiently(sides.settings, lambda: sides.store.serving(sides.alias))
            inode = _inode(self.settings.source.database)
            if known is not None and is_idle(sides, known):
                if inode != self._inode or target_is_due(sides, known):
                    self._look_at_target(sides, known)
                self._inode = inode
                return True
            with self._kept.ready(sides, self._report, self._stop) as found:
                result = self._synced(found)
        self._inode = inode
        self._report.done(result)
        return not result.more

    def _look_at_target(self, sides: Sides, known: Generation) -> None:
        retry = compose.retry_policy(self.settings, self._stop.sleep, self._report.retrying)
        with suppress(LockedError):  # somebody is at work, and looks at it
            retry(look_at_target, sides, known, self._kept.connection())

    def _synced(self, found: Ready) -> SyncResult:
        from syncer.cli.rebuild import is_interrupted, rebuild_on

        rebuilds = self.settings.daemon.on_recipe_change == "rebuild"
        try:
            result = work_on_serving(found, self._report, everything)
        except RecipeError as error:
            if not rebuilds:
                raise
            self._report.warn(f"{error.message}; the collection is rebuilt")
            return rebuild_on(found, self._report)
        if rebuilds and not result.more and is_interrupted(found.sides):
            return result.plus(rebuild_on(found, self._report))
        return result

    def verify(self) -> None:
        """Compare both stores, and mend what differs if that is asked for."""
        from syncer.cli.verify import look

        with (
            opening.opened(self.settings, to_write=True) as sides,
            self._kept.ready(sides, self._report, self._stop) as found,
        ):
            look(found, self._report, repair=self.settings.daemon.repair)

    def prune(self) -> None:
        """Drop what nobody needs of the logs any more."""
        with opening.opened(self.settings, to_write=True) as sides:
            sides.store.prune(utc_now())

    def reload(self) -> None:
        """Read the settings again if their file has changed; keep the old if they cannot be used.

        What decides threads, addresses and times of the daemon itself is read at its start only.
        """
        stamp = _stamp(self._config)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            settings = self._load()
        except SettingsError as error:
            self._report.warn(f"the settings in force stay, since the file cannot be used: {error}")
            return
        if settings != self.settings:
            self._report.say("the settings have changed and are used from here on")
            self._kept.close()
            self.settings, self._kept = settings, Kept(settings)
            self.watcher.use(settings)

    def signs(self) -> Signs:
        """Return what changes when somebody does something about a failure.

        The settings file, the database's file and schema, the generations, what they are for, and
        runs of others that ended well.
        """
        source = self.settings.source.database
        known: Signs = ()
        with suppress(SyncerError), closing(StateStore(state_file.state_path(self.settings))) as at:
            ours = at.generations(self.settings.target.collection)
            runs = ((one.generation, one.phase, one.points, one.last_success_at) for one in ours)
            known = (at.schema_version(), *runs)
        return _stamp(self._config), _inode(source), known

    def _warn(self, sides: Sides) -> None:
        """Say what is risky: once in a daemon's life, but each time that a log was not whole."""
        for warning in sides.warnings():
            if sides.mended or warning not in self._warned:
                self._warned.add(warning)
                self._report.warn(warning)


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    """Return what changes when a file is written anew, None if there is none."""
    try:
        found = file.stat() if file else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None


def _inode(file: Path) -> int | None:
    stamp = _stamp(file)
    return stamp[2] if stamp else None
