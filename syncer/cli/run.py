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
    from syncer.cli.ready import Ready, Settling
    from syncer.cli.report import Report
    from syncer.model import Description
    from syncer.ports import Pipeline
    from syncer.result import SyncResult
    from syncer.target import Connection
    from syncer.worker import Stop, Terms

Work = Callable[["Pipeline", "Terms", "Report", Sides], "SyncResult"]
"""What a run does once everything is open and checked."""


@dataclass(frozen=True, slots=True)
class How:
    """What an operator has decided for this run about a state and a collection that differ."""

    start_over: bool = False
    reconcile: bool = False
    fewer: bool = False  # points that are missing are to be put back, and no reason to refuse


def reported(
    settings: Settings,
    report: Report,
    work: Callable[[Sides], ExitCode],
    *,
    renew_state: bool = False,
    to_write: bool = True,
) -> ExitCode:
    """Return the exit code of `work`; what goes wrong is reported here, once."""
    with closing(report):
        try:
            with opening.opened(settings, to_write=to_write, renew_state=renew_state) as sides:
                code = work(sides)
        except SyncerError as error:
            report.failed(error)
            return error.exit_code
        report.ended(code)
        return code


def run(sides: Sides, report: Report, how: How, work: Work) -> ExitCode:
    """Do `work` on the generation that serves, or on a new one; return the exit code."""
    return stoppable(sides, report, lambda stop: _settled(sides, report, stop, how, work))


def stoppable(sides: Sides, report: Report, work: Callable[[Stop], SyncResult]) -> ExitCode:
    """Do `work` until it ends or a signal stops it, and report it; return the exit code."""
    from syncer.worker import Stop, Stopped, stopping_on_signals

    stop = Stop()
    try:
        with stopping_on_signals(stop):
            result = work(stop)
    except Stopped:
        code = stop.exit_code or ExitCode.INTERRUPTED
        report.stopped(code)
        return code
    report.done(result)
    return stop.exit_code or exit_code(sides, result.generation, result)


def exit_code(sides: Sides, generation: str, result: SyncResult | None = None) -> ExitCode:
    """Return what a run that ended by itself says to cron and systemd."""
    if sides.store.withheld(generation):
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
    from syncer.result import SyncResult

    def add(total: SyncResult, result: SyncResult) -> SyncResult:
        report.window(result)
        return total.plus(result)

    position = pipeline.retry(pipeline.state.position)
    return reduce(add, results, SyncResult(position.generation, position))


def check_target(sides: Sides, known: Generation, connection: Connection) -> Description:
    """Return what the serving generation says of itself; raise unless it is the one left behind."""
    from syncer.cli.counted import check_count
    from syncer.generations import check_serving
    from syncer.target import Catalog, GenerationTarget
    from syncer.write import check_token

    source = (sides.store.source_id(), sides.settings.source.table)
    described = check_serving(Catalog(connection), sides.alias, known, source)
    state = sides.store.bind(known.generation)
    target = GenerationTarget(connection, known.generation)
    check_token(state, target)
    check_count(state, target.count(), known.generation)
    return described


def _settled(sides: Sides, report: Report, stop: Stop, how: How, work: Work) -> SyncResult:
    """Do `work`; where state and collection differ and it was asked for, make them agree first."""
    from syncer.cli.ready import ready

    with ready(sides, report, stop) as found:
        try:
            before = [compose.start_over] if how.start_over else []
            return work_on_serving(found, report, work, *before, fewer=how.fewer)
        except IdentityError as error:
            if not how.reconcile:
                raise
            report.warn(f"{error.message}; both stores are compared row by row")
        return work_on_serving(found, report, work, compose.reconcile)


def work_on_serving(
    found: Ready, report: Report, work: Work, *before: Settling, fewer: bool = False
) -> SyncResult:
    """Do `work` on the generation that is to be written to, after what is to be done `before`."""
    sides = found.sides
    with found.settled(*before, compose.settle) as (generation, deaths):
        narrow(sides, report, deaths)
        with found.pipeline(generation, report, fewer=fewer) as pipeline:
            return work(pipeline, compose.terms(sides.settings, found.stop), report, sides)


def narrow(sides: Sides, report: Report, deaths: int) -> None:
    """Let a run work in smaller portions if the last ones were killed, and say so."""
    if deaths:
        sides.source.narrow(deaths)
        report.warn(
            f"the last {deaths} runs were killed; this one works in smaller portions, in case "
            "memory was the cause"
        )
