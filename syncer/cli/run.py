"""A run that writes: opened, checked, locked, stopped by signals, and reported once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from syncer.cli import compose, opening, specs
from syncer.cli.opening import Sides
from syncer.errors import ExitCode, IdentityError, SyncerError
from syncer.settings import Settings
from syncer.state import Generation

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.embed.encoder import Encoder
    from syncer.model import Description
    from syncer.ports import Pipeline
    from syncer.result import SyncResult
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
    from syncer.target import connect

    retry = compose.retry_policy(sides.settings, stop.sleep, report.retrying)
    with (
        connect(specs.target_spec(sides.settings)) as connection,
        opening.locked(sides, sides.alias) as deaths,
        closing(compose.build_embedder(sides.settings, deaths)) as embedder,
    ):
        if deaths:
            sides.source.narrow(deaths)
            report.warn(
                f"the last {deaths} runs were killed; this one works in smaller portions, in case "
                "memory was the cause"
            )
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
    embedder: Encoder
    retry: Retry
    stop: Stop

    def do(self, work: Work, report: Report) -> SyncResult:
        """Settle on a generation, see that it is the one left behind, and work on it."""
        from syncer.cli.counted import keeping_count
        from syncer.target import Catalog, GenerationTarget
        from syncer.write import check_token

        sides, retry, catalog = self.sides, self.retry, Catalog(self.connection)
        generation = retry(compose.settle, sides, self.connection, self.embedder)
        if version := self.connection.version:
            report.connected(self.connection.spec.name, version)
        recipe = retry(catalog.describe, generation).recipe
        for difference in retry(catalog.differences, generation, recipe):
            report.warn(f"{generation} is stored otherwise than the settings ask: {difference}")
        embedder = self.embedder.by(recipe)  # with what was measured when it was made
        retry(sides.store.see_schema, generation, sides.schema)
        with opening.locked(sides, generation):
            pipeline = compose.pipeline(sides, self.connection, embedder, generation, retry)
            target = pipeline.target
            assert isinstance(target, GenerationTarget)  # noqa: S101 - it counts, too
            state = sides.store.bind(generation)
            retry(check_token, state, target)
            with keeping_count(state, target, generation, retry) as more:
                if more:
                    report.warn(f"{generation} has {more} points that syncer has not counted")
                terms = compose.terms(sides.settings, self.stop)
                result = work(pipeline, terms, report, sides)
                retry(check_token, state, target)
            return result
