"""``syncer rebuild`` and ``syncer rollback``: another generation takes over, once it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import compose, opening, specs
from syncer.cli.change import Change
from syncer.cli.lenders import measuring
from syncer.cli.opening import Sides
from syncer.cli.run import everything, reported, stoppable, work_on_serving
from syncer.errors import ExitCode, IdentityError, LockedError
from syncer.model import Phase
from syncer.settings import Settings, digest
from syncer.state import Generation, kept_ones

if TYPE_CHECKING:
    from syncer.cli.ready import Ready
    from syncer.cli.report import Report
    from syncer.result import SyncResult
    from syncer.worker import Stop


def rebuild(settings: Settings, report: Report) -> ExitCode:
    """Build a generation as the settings ask for, and let it take over; return the exit code."""
    return reported(
        settings,
        report,
        lambda sides: stoppable(sides, report, lambda stop: _rebuild(sides, report, stop)),
    )


def rollback(settings: Settings, report: Report, to: str | None) -> ExitCode:
    """Bring a generation that served before up to date, and let it take over again."""
    return reported(
        settings,
        report,
        lambda sides: stoppable(sides, report, lambda stop: _rollback(sides, report, stop, to)),
    )


@contextmanager
def alone(sides: Sides) -> Iterator[None]:
    """Keep others from rebuilding, rolling back or removing generations while the block runs."""
    with opening.locked(sides, _name(sides)):
        yield


def _name(sides: Sides) -> str:
    return f"{sides.alias}--rebuild"


def is_interrupted(sides: Sides) -> bool:
    """Say whether a rebuild towards the settings was begun, and nobody is at work on it.

    To be asked after a run on what serves: only while there is such a rebuild, that is not noted
    as made by these settings.
    """
    known = sides.store.serving(sides.alias)
    if known is None or known.settings_digest == digest(sides.settings):
        return False
    try:
        with lock.held(sides.lock_path(_name(sides)), "a rebuild", named=False):
            return True
    except LockedError:
        return False


def _rebuild(sides: Sides, report: Report, stop: Stop) -> SyncResult:
    from syncer.cli.ready import ready

    with told_of_daemons(sides), ready(sides, report, stop) as found:
        return rebuild_on(found, report)


def rebuild_on(found: Ready, report: Report) -> SyncResult:
    """Build a generation as the settings ask for with what is open, and let it take over."""
    from syncer import rebuild as heart
    from syncer.target import Catalog, Succession

    sides = found.sides
    with alone(sides):
        catalog, heirs = Catalog(found.connection), Succession(found.connection)
        with opening.locked(sides, sides.alias):
            blue, at = found.retry(heart.blue_of, sides.store, catalog, sides.alias)
            if blue is not None:
                before = sides.store.generations(sides.alias)
                wanted = compose.wanted(sides, found.embedder)
                wanted = replace(wanted, measure=measuring(found, wanted.measure))
                new_name = compose.namer(sides)
                name = found.retry(heart.begin, sides.store, catalog, heirs, wanted, new_name)
                _remove_locks(sides, before)
        if blue is None:
            report.say("there is nothing to replace yet: the first generation is built")
            return work_on_serving(found, report, everything)
        report.say(f"building {name} beside {blue.generation}, which goes on serving")
        return Change(found, report, name, blue.generation, at, Phase.VERIFIED).made()


def _remove_locks(sides: Sides, before: Sequence[Generation]) -> None:
    """Remove the lock files of generations that were there before and are given up by now."""
    left = {each.generation for each in sides.store.generations(sides.alias)}
    for each in before:
        if each.generation not in left:
            sides.lock_path(each.generation).unlink(missing_ok=True)


def _rollback(sides: Sides, report: Report, stop: Stop, to: str | None) -> SyncResult:
    from syncer import rebuild as heart
    from syncer.cli.ready import ready_by
    from syncer.target import Catalog, connect

    spec = specs.target_spec(sides.settings)
    with alone(sides), told_of_daemons(sides), connect(spec) as connection:
        retry = compose.retry_policy(sides.settings, stop.sleep, report.retrying)
        retry(connection.check_version)
        catalog = Catalog(connection)
        with opening.locked(sides, sides.alias):
            blue, at = retry(heart.blue_of, sides.store, catalog, sides.alias, to)
            old = _old_one(sides, to, lambda name: retry(catalog.exists, name))
            recipe = retry(catalog.describe, old.generation).recipe
        before = blue.generation if blue is not None else None
        report.say(f"bringing {old.generation} up to date; {before} goes on serving")
        with ready_by(sides, connection, retry, stop, old.generation, recipe) as found:
            _see_mapping(found, old)
            result = Change(found, report, old.generation, before, at, Phase.RETURNING).made()
    report.say(
        "the settings may ask for another recipe than the one that serves now: put them back too, "
        "or the next `syncer once` refuses"
    )
    return result


def _old_one(sides: Sides, to: str | None, is_there: Callable[[str], bool]) -> Generation:
    """Return the generation to go back to: the one named, or the last that served.

    One whose collection is gone, by a `gc` that was killed or by somebody's hand, is none.
    """
    ours = kept_ones(sides.store.generations(sides.alias))
    kept = [each for each in ours if is_there(each.generation)]
    found = next((each for each in kept if to in {None, each.generation}), None)
    if found is None:
        there = ", ".join(each.generation for each in kept) or "none"
        raise IdentityError(
            f"{to or sides.alias} has nothing to go back to; generations that are kept: {there}",
            hint="See `syncer status`. `syncer rebuild` makes a new one from SQLite.",
        )
    return found


def _see_mapping(found: Ready, old: Generation) -> None:
    """Let a generation that was kept by another mapping be walked through again."""
    from syncer.target import Catalog

    sides, catalog = found.sides, Catalog(found.connection)
    described = found.retry(catalog.describe, old.generation)
    if described.mapping == sides.mapping == old.mapping_digest:
        return
    sides.store.walk_again(old.generation)
    now = replace(compose.wanted(sides, found.embedder).description, recipe=described.recipe)
    found.retry(catalog.set_description, old.generation, now)
    sides.store.keep_by(old.generation, old.settings_digest, sides.mapping)


@contextmanager
def told_of_daemons(sides: Sides) -> Iterator[None]:
    """Say of a local folder that is taken what that means for a rebuild."""
    try:
        yield
    except LockedError as error:
        if sides.settings.target.path is not None and error.hint:
            error.hint += (
                " Local mode belongs to one process: stop the daemon for the rebuild, or set "
                'daemon.on_recipe_change = "rebuild", and it does it by itself.'
            )
        raise
