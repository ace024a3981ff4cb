"""``syncer once``: catch up, then exit."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import compose, opening, specs
from syncer.cli.opening import Sides
from syncer.cli.run import How, check_target, everything, exit_code, reported, run
from syncer.errors import ExitCode, IdentityError, LockedError
from syncer.model import Position
from syncer.settings import Settings, digest
from syncer.state import Generation, utc_now

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.ports import Target
    from syncer.result import SyncResult
    from syncer.target import Connection


def once(
    settings: Settings, report: Report, *, start_over: bool = False, reconcile: bool = False
) -> ExitCode:
    """Bring everything that is committed now into the target; return the exit code."""
    how = How(start_over=start_over, reconcile=reconcile)
    return reported(
        settings, report, lambda sides: _once(sides, report, how), renew_state=reconcile
    )


def _once(sides: Sides, report: Report, how: How) -> ExitCode:
    for warning in sides.warnings():
        report.warn(warning)
    known = opening.patiently(sides.settings, lambda: sides.store.serving(sides.alias))
    if known is None or how.start_over or not is_idle(sides, known):
        return run(sides, report, how, everything)
    try:
        return _stay_idle(sides, report, known)
    except IdentityError:
        if not how.reconcile:
            raise
        return run(sides, report, how, everything)


def is_idle(sides: Sides, known: Generation) -> bool:
    """Say whether the run has nothing to do, without a word to the target."""
    now = utc_now()
    return (
        known.serving
        and known.settings_digest == digest(sides.settings)
        and known.mapping_digest == sides.mapping
        and opening.patiently(
            sides.settings,
            lambda: (
                sides.source.is_idle(known.position, now)
                and not sides.store.has_due(known.generation, now)
            ),
        )
    )


def _stay_idle(sides: Sides, report: Report, known: Generation) -> ExitCode:
    look = target_is_due(sides, known)
    try:
        if look:
            retry = compose.retry_policy(sides.settings, on_retry=report.retrying)
            retry(look_at_target, sides, known)
    except LockedError:  # somebody is at work right now, and looks at it all the time
        look = False
    report.nothing(known.position, looked_at_target=look)
    return exit_code(sides, known.generation)


def target_is_due(sides: Sides, known: Generation) -> bool:
    """Say whether nobody has looked at the target for longer than the settings allow."""
    age = compose.seconds_since_target_was_seen(sides, known.generation, time.time())
    return not 0 <= age < sides.settings.target.check_interval


def look_at_target(sides: Sides, known: Generation, open_one: Connection | None = None) -> None:
    """See that alias, collection and token are still those that were left; write nothing.

    Raises LockedError if somebody writes to the generation, or has put another in its place.
    """
    from syncer.target import connect

    name = known.generation
    with lock.held(sides.lock_path(name), f"the lock on {name}", named=False):
        now = sides.store.serving(sides.alias)
        if now is None or now.generation != name:
            raise LockedError(f"{name} has just been replaced")
        if open_one is not None:
            check_target(sides, now, open_one)
        else:
            with connect(specs.target_spec(sides.settings), to_write=False) as connection:
                check_target(sides, now, connection)
    lock.touch(sides.lock_path(known.generation))


def dry_run(settings: Settings) -> SyncResult:
    """Return what ``once`` would do; nothing is embedded or written.

    Raises what ``once`` would raise over database and collection; the model is not looked at.
    """
    from syncer.target import connect
    from syncer.worker import preview

    spec = specs.target_spec(settings)
    with opening.opened(settings) as sides, connect(spec, to_write=False) as connection:
        retry = compose.retry_policy(settings)
        position, target = retry(_begin, sides, connection)
        pipeline = replace(compose.preview_pipeline(sides, target), retry=retry)
        return preview(pipeline, position, head=sides.source.head(), now=utc_now)


def _begin(sides: Sides, connection: Connection) -> tuple[Position, Target]:
    """Return from where ``once`` would go on, and what holds the points that it would find."""
    from syncer.generations import check_unclaimed
    from syncer.target import Catalog, GenerationTarget

    known = sides.store.serving(sides.alias)
    if known is None or not known.serving:
        found = Catalog(connection).resolve(sides.alias)
        check_unclaimed(sides.alias, found, sides.store.generations(sides.alias))
        start = Position(sides.alias, change_seq=sides.source.head(), expired_to=utc_now())
        return start, compose.null_target()
    described = check_target(sides, known, connection)
    position, mapping = known.position, sides.mapping
    if mapping != described.mapping or mapping != known.mapping_digest:
        position = replace(position, last_id=None, walked=False)
    return position, GenerationTarget(connection, known.generation)
