"""``syncer once``: catch up, then exit."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import compose
from syncer.cli.compose import Sides
from syncer.errors import ExitCode
from syncer.settings import Settings, digest
from syncer.state import Generation, utc_now

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.model import SyncResult
    from syncer.ports import Pipeline
    from syncer.worker import Stop


def once(settings: Settings, report: Report, *, start_over: bool = False) -> ExitCode:
    """Bring everything that is committed now into the target; return the exit code."""
    with compose.opened(settings) as sides:
        for warning in sides.source.warnings():
            report.warn(warning)
        known = sides.store.serving(sides.alias)
        idle = known is not None and compose.patiently(settings, lambda: _is_idle(sides, known))
        if known is not None and idle and not start_over:
            look = _target_is_due(sides, known)
            if look:
                _look_at_target(sides, known)
            report.nothing(known.generation, looked_at_target=look)
            return ExitCode.OK
        return _run(sides, report, start_over=start_over)


def _is_idle(sides: Sides, known: Generation) -> bool:
    """Say whether the run has nothing to do, without a word to the target."""
    return (
        known.serving
        and known.settings_digest == digest(sides.settings)
        and sides.source.is_idle(known.position, utc_now())
    )


def _target_is_due(sides: Sides, known: Generation) -> bool:
    age = compose.seconds_since_target_was_seen(sides, known.generation, time.time())
    return not 0 <= age < sides.settings.target.check_interval


def _look_at_target(sides: Sides, known: Generation) -> None:
    """See that alias, collection and token are still those that were left; write nothing."""
    from syncer.generations import check_alias
    from syncer.sync import check_token
    from syncer.target import Catalog, GenerationTarget, connect

    with connect(compose.target_spec(sides.settings), to_write=False) as connection:
        catalog = Catalog(connection)
        check_alias(sides.alias, known.generation, catalog.resolve(sides.alias))
        catalog.describe(known.generation)
        target = GenerationTarget(connection, known.generation)
        check_token(sides.store.bind(known.generation), target)
    lock.touch(sides.lock_path(known.generation))


def _run(sides: Sides, report: Report, *, start_over: bool) -> ExitCode:
    from syncer.target import connect
    from syncer.worker import Stop, stopping_on_signals

    stop = Stop()
    retry = compose.retry_policy(sides.settings, stop.sleep, report.retrying)
    with (
        stopping_on_signals(stop),
        connect(compose.target_spec(sides.settings)) as connection,
        closing(compose.build_embedder(sides.settings)) as embedder,
    ):
        with compose.locked(sides, sides.alias):
            generation = retry(compose.settle, sides, connection, embedder, start_over=start_over)
        with compose.locked(sides, generation):
            pipeline = compose.pipeline(sides, connection, embedder, generation, retry)
            result = _catch_up(sides, pipeline, report, stop)
    report.done(result)
    return stop.exit_code or (ExitCode.QUARANTINED if result.quarantined else ExitCode.OK)


def _catch_up(sides: Sides, pipeline: Pipeline, report: Report, stop: Stop) -> SyncResult:
    from syncer.sync import check_token
    from syncer.worker import catch_up

    pipeline.retry(check_token, pipeline.state, pipeline.target)
    report.begin(sides.source.pending(pipeline.state.position()))
    head = sides.source.head()
    return catch_up(pipeline, head=head, now=utc_now, stop=stop, report=report.window)


def dry_run(settings: Settings) -> SyncResult:
    """Return what ``once`` would do; nothing is embedded or written."""
    from syncer.model import Position
    from syncer.target import GenerationTarget, connect
    from syncer.worker import preview

    with compose.opened(settings) as sides, ExitStack() as stack:
        known = sides.store.serving(sides.alias)
        position, target = Position(sides.alias), compose.null_target()
        if known is not None and known.serving:
            spec = compose.target_spec(settings)
            connection = stack.enter_context(connect(spec, to_write=False))
            position, target = known.position, GenerationTarget(connection, known.generation)
        pipeline = compose.preview_pipeline(sides, target)
        return preview(pipeline, position, head=sides.source.head(), now=utc_now)
