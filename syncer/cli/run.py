"""A run that writes: opened, checked, locked, stopped by signals, and reported once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from syncer.cli import compose, opening
from syncer.cli.opening import Sides
from syncer.errors import ExitCode, IdentityError, SyncerError
from syncer.settings import Settings
from syncer.state import Generation

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.model import Description, SyncResult
    from syncer.ports import Embedder, Pipeline
    from syncer.retry import Retry
    from syncer.target import Connection
    from syncer.worker import Stop, Terms

Work = Callable[["Pipeline", "Terms", "Report", Sides], "SyncResult"]
"""What a run does once everything is open and checked."""


@dataclass(frozen=True, slots=True)
class How:
    """What an operator has decided for this run about a state and a collection that differ."""

    start_over: bool = False
    reconcile: bool = False


def reported(
    settings: Settings,
    report: Report,
    work: Callable[[Sides], ExitCode],
    *,
    renew_state: bool = False,
) -> ExitCode:
    """Return the exit code of `work`; what goes wrong is reported here, once."""
    with closing(report):
        try:
            with opening.opened(settings, to_write=True, renew_state=renew_state) as sides:
                code = work(sides)
        except SyncerError as error:
            report.failed(error)
            return error.exit_code
        report.ended(code)
        return code


def run(sides: Sides, report: Report, how: How, work: Work) -> ExitCode:
    """Do `work` on the generation that serves, or on a new one; return the exit code."""
    from syncer.worker import Stop, Stopped, stopping_on_signals

    stop = Stop()
    try:
        with stopping_on_signals(stop):
            result = _settled(sides, report, stop, how, work)
    except Stopped:
        code = stop.exit_code or ExitCode.INTERRUPTED
        report.stopped(code)
        return code
    report.done(result)
    return stop.exit_code or exit_code(sides, result.generation, result)


def exit_code(sides: Sides, generation: str, result: SyncResult | None = None) -> ExitCode:
    """Return what a run that ended by itself says to cron and systemd."""
    if sides.store.bind(generation).withheld():
        return ExitCode.WITHHELD
    newly_quarantined = result is not None and result.newly_quarantined
    return ExitCode.QUARANTINED if newly_quarantined else ExitCode.OK


def everything(pipeline: Pipeline, terms: Terms, report: Report, sides: Sides) -> SyncResult:
    """Catch up with everything that is committed now."""
    from syncer.worker import catch_up

    position = pipeline.retry(pipeline.state.position)
    report.begin(pipeline.retry(sides.source.pending, position))
    head = pipeline.retry(sides.source.head)
    return catch_up(pipeline, terms, head=head, report=report.window)


def sum_of(pipeline: Pipeline, results: Iterator[SyncResult], report: Report) -> SyncResult:
    """Report each of `results` and return their sum."""
    from syncer.model import SyncResult

    def add(total: SyncResult, result: SyncResult) -> SyncResult:
        report.window(result)
        return total.plus(result)

    position = pipeline.retry(pipeline.state.position)
    return reduce(add, results, SyncResult(position.generation, position))


def check_target(sides: Sides, known: Generation, connection: Connection) -> Description:
    """Return what the serving generation says of itself; raise unless it is the one left behind."""
    from syncer.generations import check_serving
    from syncer.target import Catalog, GenerationTarget
    from syncer.write import check_token

    source = (sides.store.source_id(), sides.settings.source.table)
    described = check_serving(Catalog(connection), sides.alias, known, source)
    state = sides.store.bind(known.generation)
    target = GenerationTarget(connection, known.generation)
    check_token(state, target)
    _check_count(state.points(), target.count(), known.generation)
    return described


def _settled(sides: Sides, report: Report, stop: Stop, how: How, work: Work) -> SyncResult:
    """Do `work`; where state and collection differ and it was asked for, make them agree first."""
    from syncer.target import connect

    retry = compose.retry_policy(sides.settings, stop.sleep, report.retrying)
    with (
        connect(compose.target_spec(sides.settings)) as connection,
        closing(compose.build_embedder(sides.settings)) as embedder,
        opening.locked(sides, sides.alias),
    ):
        ready = _Ready(sides, connection, embedder, retry, stop)
        if how.start_over:
            retry(compose.start_over, sides, connection, embedder)
        try:
            return ready.do(work, report)
        except IdentityError as error:
            if not how.reconcile:
                raise
            report.warn(f"{error.message}; both stores are compared row by row")
        retry(compose.reconcile, sides, connection, embedder)
        return ready.do(work, report)


@dataclass(frozen=True, slots=True)
class _Ready:
    """Everything that a run needs, open."""

    sides: Sides
    connection: Connection
    embedder: Embedder
    retry: Retry
    stop: Stop

    def do(self, work: Work, report: Report) -> SyncResult:
        """Settle on a generation, see that it is the one left behind, and work on it."""
        from syncer.target import GenerationTarget
        from syncer.write import check_token

        sides, retry = self.sides, self.retry
        generation = retry(compose.settle, sides, self.connection, self.embedder)
        retry(sides.store.see_schema, generation, sides.schema)
        with opening.locked(sides, generation):
            pipeline = compose.pipeline(sides, self.connection, self.embedder, generation, retry)
            target = GenerationTarget(self.connection, generation)
            retry(check_token, pipeline.state, target)
            state = sides.store.bind(generation)
            more = _check_count(state.points(), retry(target.count), generation)
            if more:
                report.warn(f"{generation} has {more} points that syncer has not counted")
            result = work(pipeline, compose.terms(sides.settings, self.stop), report, sides)
            state.note_points(retry(target.count))
            return result


def _check_count(noted: int | None, found: int, generation: str) -> int:
    """Return how many points there are beyond those `noted`; raise if there are fewer."""
    if noted is not None and found < noted:
        raise IdentityError(
            f"{generation} has {found} points, but had {noted} after the last run: it was emptied, "
            "restored or written to by somebody else",
            hint="To compare both stores and mend what is missing, run "
            "`syncer once --on-regression reconcile`.",
        )
    return 0 if noted is None else found - noted
