"""``syncer rebuild --adopt``: another tool's collection of the alias's own name is taken over."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syncer.cli import compose, opening
from syncer.cli.change import Change
from syncer.cli.opening import Sides
from syncer.cli.rebuild import alone, rebuild_on, told_of_daemons
from syncer.cli.recover import form_of, is_ours
from syncer.cli.run import everything, reported, stoppable, work_on_serving
from syncer.errors import ExitCode, SettingsError
from syncer.model import Phase
from syncer.settings import Settings

if TYPE_CHECKING:
    from syncer.adopt import Keep, Saved
    from syncer.cli.counted import Count
    from syncer.cli.ready import Ready
    from syncer.cli.report import Report
    from syncer.foreign import Form
    from syncer.ports import Pipeline
    from syncer.rebuild import Heirs
    from syncer.result import SyncResult
    from syncer.target import ForeignPoints
    from syncer.worker import Stop

_TRIES = 10  # while somebody goes on writing to the collection that is to go


def adopt(
    settings: Settings, report: Report, export: Path | None, *, with_vectors: bool
) -> ExitCode:
    """Build a generation, save what the collection holds, and let the alias take its name."""

    def work(sides: Sides) -> ExitCode:
        if export is None and not is_ours(settings):
            raise SettingsError(
                f"rows of {settings.source.table} in {settings.source.database} are not syncer's "
                "to write",
                hint="Name a file for the collection's points with --export FILE.",
            )
        wish = _Wish(export, with_vectors)
        return stoppable(sides, report, lambda stop: _adopt(sides, report, stop, wish))

    return reported(settings, report, work)


@dataclass(frozen=True, slots=True)
class _Wish:
    """Into which file the points go, if not into the table; and whether with vectors."""

    export: Path | None
    with_vectors: bool


def _adopt(sides: Sides, report: Report, stop: Stop, wish: _Wish) -> SyncResult:
    from syncer.cli.ready import ready

    with told_of_daemons(sides), ready(sides, report, stop) as found:
        with alone(sides):
            result = _adopted(found, report, wish)
        if result is not None:
            return result
        report.say(f"{sides.alias} is no collection of its own: there is nothing to adopt")
        return rebuild_on(found, report)


def _adopted(found: Ready, report: Report, wish: _Wish) -> SyncResult | None:
    """Take over, or finish what was interrupted; return None if there is nothing to adopt."""
    from syncer.target import Catalog

    sides = found.sides
    with opening.locked(sides, sides.alias):
        there = _is_to_go(found)
        if there:
            _check(found, wish)
        at = None if there else found.retry(Catalog(found.connection).resolve, sides.alias)
        greens = [e.generation for e in sides.store.generations(sides.alias) if e.phase.is_green]
        name = _begun(found) if there or (greens and at is None) else None
    if name is not None:
        return _replaced(found, report, wish, name)
    if at in greens:
        report.say(f"{sides.alias} is {at} already; that is noted now")
        return work_on_serving(found, report, everything)
    return None


def _check(found: Ready, wish: _Wish) -> None:
    """Raise RefusedError if the collection can never go: before anything is built or written."""
    from syncer.adopt import check_all_fit
    from syncer.target import Plain

    found.retry(Plain(found.connection, found.sides.alias).check_unused)
    if wish.export is None:
        check_all_fit(_origin(found, wish), _form(found.sides))


def _begun(found: Ready) -> str:
    """Return the generation to build, or to go on with."""
    from syncer.rebuild import begin
    from syncer.target import Catalog, Succession

    sides, catalog, heirs = found.sides, Catalog(found.connection), Succession(found.connection)
    wanted, new_name = compose.wanted(sides, found.embedder), compose.namer(sides)
    return found.retry(begin, sides.store, catalog, heirs, wanted, new_name)


def _replaced(found: Ready, report: Report, wish: _Wish, name: str) -> SyncResult:
    """Build the generation, and let the alias point at it instead of the collection."""
    sides = found.sides
    ours = sides.store.generations(sides.alias)
    blue = next((each.generation for each in ours if each.serving), None)
    report.say(f"building {name} beside {sides.alias}, which another tool has made")
    with ExitStack() as stack:
        keep = _keeper(found, wish, name, stack)
        return _Adoption(found, report, name, blue, None, Phase.VERIFIED, keep).made()


def _is_to_go(found: Ready) -> bool:
    from syncer.target import Plain

    return found.retry(Plain(found.connection, found.sides.alias).exists)


def _form(sides: Sides) -> Form:
    target = sides.settings.target
    return form_of(sides.settings, sides.alias, target.document_key, target.metadata_key)


def _origin(found: Ready, wish: _Wish) -> ForeignPoints:
    from syncer.target import ForeignPoints

    alias, vectors = found.sides.alias, wish.with_vectors
    return ForeignPoints(
        found.connection, alias, everything=True, vectors=vectors, retry=found.retry
    )


def _keeper(found: Ready, wish: _Wish, heir: str, stack: ExitStack) -> Keep:
    """Return what saves the collection's points, as rows or in the file."""
    from syncer.adopt import keep_as_rows, keep_in_file
    from syncer.canonical import CanonicalTable
    from syncer.exported import exporting
    from syncer.target import GenerationTarget

    sides, origin = found.sides, _origin(found, wish)
    if wish.export is not None:
        path = wish.export

        def into_file() -> Saved:
            with exporting(path) as file:
                return keep_in_file(file, origin, sides.alias)

        return into_file
    table = stack.enter_context(closing(CanonicalTable(sides.settings.source.database)))
    taken = GenerationTarget(found.connection, heir)
    return lambda: keep_as_rows(found.retry, table, taken, origin, _form(sides))


@dataclass(frozen=True, slots=True)
class _Adoption(Change):
    """A generation on its way to take over from a collection that has the alias's name."""

    keep: Keep

    def _built(self, pipeline: Pipeline) -> SyncResult:
        """Build it, then save the points: those that become rows are synced and compared, too."""
        from syncer.adopt import refuse_left

        total = Change._built(self, pipeline)  # noqa: SLF001 - slots know no super()
        if total.more or not _is_to_go(self.found):
            return total
        saved = self.keep()
        refuse_left(self.found.sides.alias, saved)
        self.report.say(f"{saved.new} points of {self.found.sides.alias} are saved")
        return total.plus(Change._built(self, pipeline))  # noqa: SLF001

    def _heirs(self) -> Heirs:
        from syncer.adopt import Successors
        from syncer.target import Plain

        plain = Plain(self.found.connection, self.found.sides.alias)
        return Successors(Change._heirs(self), plain, self.keep, self.report.say)  # noqa: SLF001

    def _taken_over(self, pipeline: Pipeline, count: Count) -> SyncResult:
        """Take over; what was written to the collection until then is brought in first."""
        from syncer.adopt import ArrivedError

        for _ in range(_TRIES - 1):
            try:
                return Change._taken_over(self, pipeline, count)  # noqa: SLF001
            except ArrivedError as error:
                self.report.say(error.message)
        return Change._taken_over(self, pipeline, count)  # noqa: SLF001
