"""``syncer once``: catch up, then exit."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import compose
from syncer.cli.compose import Sides
from syncer.errors import ExitCode, LockedError, SyncerError
from syncer.model import Position
from syncer.settings import Settings, digest, mapping_digest
from syncer.state import Generation, utc_now

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.model import Description, SyncResult
    from syncer.ports import Pipeline, Target
    from syncer.target import Connection
    from syncer.worker import Stop


def once(settings: Settings, report: Report, *, start_over: bool = False) -> ExitCode:
    """Bring everything that is committed now into the target; return the exit code.

    What goes wrong is reported here, once, in the form that the report has.
    """
    with closing(report):
        try:
            with compose.opened(settings) as sides:
                code = _once(sides, report, start_over=start_over)
        except SyncerError as error:
            report.failed(error)
            return error.exit_code
        report.ended(code)
        return code


def _once(sides: Sides, report: Report, *, start_over: bool) -> ExitCode:
    for warning in sides.source.warnings():
        report.warn(warning)
    known = compose.patiently(sides.settings, lambda: sides.store.serving(sides.alias))
    if known is None or start_over:
        return _run(sides, report, start_over=start_over)
    if compose.patiently(sides.settings, lambda: _is_idle(sides, known)):
        return _stay_idle(sides, report, known)
    return _run(sides, report, start_over=False)


def _is_idle(sides: Sides, known: Generation) -> bool:
    """Say whether the run has nothing to do, without a word to the target."""
    return (
        known.serving
        and known.settings_digest == digest(sides.settings)
        and sides.source.is_idle(known.position, utc_now())
    )


def _stay_idle(sides: Sides, report: Report, known: Generation) -> ExitCode:
    look = _target_is_due(sides, known)
    try:
        if look:
            _look_at_target(sides, known)
    except LockedError:  # somebody is at work right now, and looks at it all the time
        look = False
    report.nothing(known.position, looked_at_target=look)
    return ExitCode.OK


def _target_is_due(sides: Sides, known: Generation) -> bool:
    age = compose.seconds_since_target_was_seen(sides, known.generation, time.time())
    return not 0 <= age < sides.settings.target.check_interval


def _look_at_target(sides: Sides, known: Generation) -> None:
    """See that alias, collection and token are still those that were left; write nothing."""
    from syncer.target import connect

    with (
        lock.held(sides.lock_path(sides.alias), f"the lock on {sides.alias}", named=False),
        connect(compose.target_spec(sides.settings), to_write=False) as connection,
    ):
        check_target(sides, known, connection)
    lock.touch(sides.lock_path(known.generation))


def check_target(sides: Sides, known: Generation, connection: Connection) -> Description:
    """Return what the serving generation says of itself; raise unless it is the one left behind."""
    from syncer.generations import check_serving
    from syncer.target import Catalog, GenerationTarget
    from syncer.write import check_token

    source = (sides.store.source_id(), sides.settings.source.table)
    described = check_serving(Catalog(connection), sides.alias, known, source)
    target = GenerationTarget(connection, known.generation)
    check_token(sides.store.bind(known.generation), target)
    return described


def _run(sides: Sides, report: Report, *, start_over: bool) -> ExitCode:
    from syncer.worker import Stop, Stopped, stopping_on_signals

    stop = Stop()
    try:
        with stopping_on_signals(stop):
            result = _sync(sides, report, stop, start_over=start_over)
    except Stopped:
        code = stop.exit_code or ExitCode.INTERRUPTED
        report.stopped(code)
        return code
    report.done(result)
    return stop.exit_code or (ExitCode.QUARANTINED if result.quarantined else ExitCode.OK)


def _sync(sides: Sides, report: Report, stop: Stop, *, start_over: bool) -> SyncResult:
    from syncer.target import connect

    retry = compose.retry_policy(sides.settings, stop.sleep, report.retrying)
    with (
        connect(compose.target_spec(sides.settings)) as connection,
        closing(compose.build_embedder(sides.settings)) as embedder,
        compose.locked(sides, sides.alias),
    ):
        generation = retry(compose.settle, sides, connection, embedder, start_over=start_over)
        retry(sides.store.see_schema, generation, sides.schema)
        with compose.locked(sides, generation):
            pipeline = compose.pipeline(sides, connection, embedder, generation, retry)
            return _catch_up(sides, pipeline, report, stop)


def _catch_up(sides: Sides, pipeline: Pipeline, report: Report, stop: Stop) -> SyncResult:
    from syncer.worker import catch_up
    from syncer.write import check_token

    retry = pipeline.retry
    retry(check_token, pipeline.state, pipeline.target)
    report.begin(retry(sides.source.pending, retry(pipeline.state.position)))
    head = retry(sides.source.head)
    return catch_up(pipeline, head=head, now=utc_now, stop=stop, report=report.window)


def dry_run(settings: Settings) -> SyncResult:
    """Return what ``once`` would do; nothing is embedded or written.

    Raises what ``once`` would raise over database and collection; the model is not looked at.
    """
    from syncer.target import connect
    from syncer.worker import preview

    spec = compose.target_spec(settings)
    with compose.opened(settings) as sides, connect(spec, to_write=False) as connection:
        position, target = _begin(sides, connection)
        pipeline = compose.preview_pipeline(sides, target)
        return preview(pipeline, position, head=sides.source.head(), now=utc_now)


def _begin(sides: Sides, connection: Connection) -> tuple[Position, Target]:
    """Return from where ``once`` would go on, and what holds the points that it would find."""
    from syncer.generations import check_unclaimed
    from syncer.target import Catalog, GenerationTarget

    known = sides.store.serving(sides.alias)
    if known is None or not known.serving:
        found = Catalog(connection).resolve(sides.alias)
        check_unclaimed(sides.alias, found, sides.store.generations(sides.alias))
        return Position(sides.alias), compose.null_target()
    described = check_target(sides, known, connection)
    position, mapping = known.position, mapping_digest(sides.settings)
    if mapping != described.mapping or mapping != known.mapping_digest:
        position = replace(position, last_id=None, walked=False)
    return position, GenerationTarget(connection, known.generation)
