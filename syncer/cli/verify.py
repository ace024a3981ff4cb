"""``syncer verify``: compare both stores, and mend what differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syncer.cli import compose, opening, specs
from syncer.cli.opening import Sides
from syncer.cli.run import How, Work, exit_code, reported, run, work_on_serving
from syncer.cli.terminal_report import colours, interactive
from syncer.errors import ExitCode, IdentityError, SourceError
from syncer.result import VerifyResult
from syncer.settings import Settings
from syncer.state import Generation

if TYPE_CHECKING:
    from collections.abc import Callable

    from syncer.cli.ready import Ready
    from syncer.cli.report import Report
    from syncer.ports import Pipeline
    from syncer.result import SyncResult
    from syncer.retry import Retry
    from syncer.target import Connection
    from syncer.verify import Sampling
    from syncer.worker import Terms


@dataclass(frozen=True, slots=True)
class Asked:
    """What an operator wants: whether to mend, and how many rows are embedded again."""

    repair: bool = False
    sample: int = 0
    seed: int | None = None


def verify(settings: Settings, report: Report, asked: Asked) -> ExitCode:
    """Compare both stores; return the exit code."""

    def work(sides: Sides) -> ExitCode:
        known = opening.patiently(settings, lambda: sides.store.serving(sides.alias))
        if known is None or not known.serving:
            raise IdentityError(
                f"there is no collection {sides.alias} that syncer has built",
                hint="Run `syncer once` to build it.",
            )
        return (_mended if asked.repair else _looked)(sides, report, asked, known)

    return reported(settings, report, work, to_write=asked.repair)


def look(found: Ready, report: Report, *, repair: bool) -> None:
    """Compare both stores, and mend what differs if `repair`, as a daemon does now and then."""
    sides = found.sides
    if repair:
        report.done(work_on_serving(found, report, _mending(Asked(), []), fewer=True))
        return
    known = sides.store.serving(sides.alias)
    if known is not None and known.serving:
        terms = compose.terms(sides.settings, found.stop)
        _compare(sides, report, Asked(), known, found.connection, found.retry, terms)


def _mended(sides: Sides, report: Report, asked: Asked, _known: Generation) -> ExitCode:
    """Compare and mend, as any run that writes."""
    last: list[VerifyResult] = []
    code = run(sides, report, How(fewer=True), _mending(asked, last))
    return code if code or not last or last[0].clean else ExitCode.DRIFT


def _mending(asked: Asked, last: list[VerifyResult]) -> Work:
    """Return what compares and mends, and leaves what it found in the end in `last`."""

    def work(pipeline: Pipeline, terms: Terms, report: Report, sides: Sides) -> SyncResult:
        from syncer.verify import mend

        with comparing_bar(sides) as read:
            result, before, after = mend(pipeline, terms, read=read, sampling=_sample(asked))
        report.verified(before)
        if after is not before:
            report.verified(after)
        last.append(after)
        _keep(sides, after)
        return result

    return work


def _looked(sides: Sides, report: Report, asked: Asked, known: Generation) -> ExitCode:
    """Compare only: no lock is held, and nothing is written but the result."""
    from syncer.target import connect
    from syncer.worker import Stop, Stopped, stopping_on_signals

    stop = Stop()
    retry = compose.retry_policy(sides.settings, stop.sleep, report.retrying)
    terms = compose.terms(sides.settings, stop)
    spec = specs.target_spec(sides.settings)
    try:
        with stopping_on_signals(stop), connect(spec, to_write=False) as connection:
            result = _compare(sides, report, asked, known, connection, retry, terms)
    except Stopped:
        code = stop.exit_code or ExitCode.INTERRUPTED
        report.stopped(code)
        return code
    return exit_code(sides, known.generation) or (ExitCode.OK if result.clean else ExitCode.DRIFT)


def _compare(  # noqa: PLR0913, PLR0917 - all that is open
    sides: Sides,
    report: Report,
    asked: Asked,
    known: Generation,
    connection: Connection,
    retry: Retry,
    terms: Terms,
) -> VerifyResult:
    from syncer.verify import verify

    with (
        _pipeline(sides, report, known, connection, retry, asked) as pipeline,
        comparing_bar(sides) as read,
    ):
        result = verify(pipeline, terms, report=read, sampling=_sample(asked))
    report.verified(result)
    _keep(sides, result)
    return result


@contextmanager
def _pipeline(
    sides: Sides,
    report: Report,
    known: Generation,
    connection: Connection,
    retry: Retry,
    asked: Asked,
) -> Iterator[Pipeline]:
    """Give what a comparison works with; a model is loaded only for a sample."""
    from syncer.cli.ready import by_recipe
    from syncer.generations import check_serving
    from syncer.target import Catalog, GenerationTarget
    from syncer.write import check_token

    source = (sides.store.source_id(), sides.settings.source.table)
    described = retry(check_serving, Catalog(connection), sides.alias, known, source)
    if not sides.mapping == described.mapping == known.mapping_digest:
        report.warn("the mapping has changed; rows differ until `syncer once` has walked again")
    target = GenerationTarget(connection, known.generation)
    state = sides.store.bind(known.generation)
    try:
        retry(check_token, state, target)
    except IdentityError as error:
        report.warn(f"{error.message}; both stores are compared all the same")
    with ExitStack() as stack:
        pipeline = replace(
            compose.preview_pipeline(sides, target),
            state=state,
            layout=compose.layout(sides, described.recipe),
            retry=retry,
        )
        if asked.sample:
            encoder = stack.enter_context(
                closing(by_recipe(sides, known.generation, described.recipe))
            )
            pipeline = replace(pipeline, embedder=encoder, chunker=encoder.split)
        yield pipeline


def _sample(asked: Asked) -> Sampling:
    from syncer.verify import Sampling

    return Sampling(asked.sample, asked.seed)


def _keep(sides: Sides, result: VerifyResult) -> None:
    """Keep the result for ``status``, where the state can be written at all."""
    with suppress(SourceError):
        sides.store.bind(result.generation).note_verified(result)


@contextmanager
def comparing_bar(sides: Sides) -> Iterator[Callable[[int], None]]:
    """Show how many points and rows were read, if somebody is looking."""
    if not interactive():
        yield lambda _: None
        return
    from syncer.cli.progress import progress_bar

    known = sides.store.serving(sides.alias)
    points = known.points if known and known.points is not None else sides.source.count()
    with progress_bar(no_colour=not colours()) as bar:
        task = bar.add_task("comparing", total=points + sides.source.count())
        yield lambda number: bar.advance(task, number)
