"""``syncer rebuild`` and ``syncer rollback``: another generation takes over, once it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syncer.cli import compose, opening, specs
from syncer.cli.opening import Sides
from syncer.cli.run import everything, reported, stoppable, work_on_serving
from syncer.errors import DriftError, ExitCode, IdentityError, LockedError, RefusedError
from syncer.model import Phase
from syncer.settings import Settings
from syncer.state import Generation

if TYPE_CHECKING:
    from syncer.cli.ready import Ready
    from syncer.cli.report import Report
    from syncer.model import Recipe
    from syncer.ports import Donor, Pipeline
    from syncer.rebuild import Heirs
    from syncer.result import SyncResult
    from syncer.worker import Stop, Terms


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
    with opening.locked(sides, f"{sides.alias}--rebuild"):
        yield


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
                wanted = compose.wanted(sides, found.embedder)
                wanted = replace(wanted, measure=_measure(found, wanted.measure))
                new_name = compose.namer(sides)
                name = found.retry(heart.begin, sides.store, catalog, heirs, wanted, new_name)
        if blue is None:
            report.say("there is nothing to replace yet: the first generation is built")
            return work_on_serving(found, report, everything)
        report.say(f"building {name} beside {blue.generation}, which goes on serving")
        return Change(found, report, name, blue.generation, at, Phase.VERIFIED).made()


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
            blue, at = retry(heart.blue_of, sides.store, catalog, sides.alias)
            old = _old_one(sides, to)
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


def _old_one(sides: Sides, to: str | None) -> Generation:
    """Return the generation to go back to: the one named, or the last that served."""
    kept = kept_ones(sides.store.generations(sides.alias))
    found = next((each for each in kept if to in {None, each.generation}), None)
    if found is None:
        there = ", ".join(each.generation for each in kept) or "none"
        raise IdentityError(
            f"{to or sides.alias} has nothing to go back to; generations that are kept: {there}",
            hint="See `syncer status`. `syncer rebuild` makes a new one from SQLite.",
        )
    return found


def kept_ones(ours: Sequence[Generation]) -> list[Generation]:
    """Return the generations that served before, the one that did last first."""
    kept = [each for each in ours if each.phase in {Phase.KEPT, Phase.RETURNING}]
    return sorted(kept, key=lambda each: each.kept_since or "", reverse=True)


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


def _measure(found: Ready, measure: Callable[[], Recipe] | None) -> Callable[[], Recipe]:
    """Return what measures a new recipe; a length close to that of a lender's stays as it is."""
    from syncer.reuse import with_length_of

    def measured() -> Recipe:
        recipe = measure() if measure else found.embedder.recipe
        for _, theirs in _lenders(found, ""):
            recipe = with_length_of(theirs, recipe)
        return recipe

    return measured


def _lenders(found: Ready, but: str) -> Iterator[tuple[str, Recipe]]:
    """Yield the generations that may lend vectors, with their recipes: the serving one first."""
    from syncer.target import Catalog

    catalog = Catalog(found.connection)
    ours = found.sides.store.generations(found.sides.alias)
    serving = [each for each in ours if each.serving]
    for each in (*serving, *kept_ones(ours)):
        if each.generation != but and found.retry(catalog.exists, each.generation):
            try:
                yield each.generation, found.retry(catalog.describe, each.generation).recipe
            except RefusedError:  # somebody has changed it: nothing of it is used
                continue


def donors(found: Ready, generation: str, recipe: Recipe) -> tuple[Donor, ...]:
    """Return the other generations that have vectors which `recipe` would make too."""
    lenders = (
        compose.donor(found.connection, name, theirs, recipe)
        for name, theirs in _lenders(found, generation)
    )
    return tuple(donor for donor in lenders if donor.vectors)


@dataclass(frozen=True, slots=True)
class Change:
    """A generation on its way to take over from `blue`, to which the alias points `at`."""

    found: Ready
    report: Report
    heir: str
    blue: str | None
    at: str | None
    phase: Phase

    def made(self) -> SyncResult:
        """Bring the heir up to date, see that it is whole, and let it take over."""
        sides = self.found.sides
        with (
            opening.locked(sides, self.heir),
            self.found.pipeline(self.heir, self.report) as own,
        ):
            lent = donors(self.found, self.heir, own.embedder.recipe)
            pipeline = replace(own, donors=own.donors + lent)
            with self._marked():
                total = self._built(pipeline)
                if not total.more:
                    total = total.plus(self._checked(pipeline))
            return total if total.more else total.plus(self._taken_over(pipeline))

    @contextmanager
    def _marked(self) -> Iterator[None]:
        """Keep the log for a generation on its way back; if it is not to be, no longer."""
        store = self.found.sides.store
        if self.phase is not Phase.RETURNING:
            yield
            return
        store.enter(self.heir, Phase.RETURNING)
        try:
            yield
        except BaseException:
            store.enter(self.heir, Phase.KEPT)
            raise

    def _built(self, pipeline: Pipeline) -> SyncResult:
        from syncer.rebuild import build

        retry, source = self.found.retry, self.found.sides.source
        self.report.begin(retry(source.pending, retry(pipeline.state.position)))
        return build(pipeline, self._terms, lambda: retry(source.head), self.report.window)

    def _checked(self, pipeline: Pipeline) -> SyncResult:
        """Compare the heir with the source, and mend it; raise unless it is whole then."""
        from syncer.verify import mend

        self.report.say(f"comparing {self.heir} with the table")
        written, _, after = mend(pipeline, replace(self._terms, limit=None))
        if not after.clean and not written.more:
            raise DriftError(
                f"{self.heir} is not equal to the table, so the alias was not moved: "
                + ", ".join(f"{len(rows)} {kind}" for kind, rows in after.drift.items() if rows),
                hint="Run the same command again. If it stays so, somebody else writes to it, or "
                "the table changes without its log seeing it.",
            )
        self.found.sides.store.enter(self.heir, self.phase)
        self._check_size()
        return written

    def _check_size(self) -> None:
        from syncer.rebuild import check_size

        store = self.found.sides.store
        before = store.bind(self.blue).rows() if self.blue else 0
        heir, limit = self._known(), self._terms.limit
        if self.blue and limit is not None:
            check_size(self.blue, before, self.heir, heir.rows, limit, heir.confirmed_rows)

    def _taken_over(self, pipeline: Pipeline) -> SyncResult:
        """Bring in the last changes while nobody writes to blue, then move the alias."""
        from syncer.rebuild import take_over
        from syncer.worker import catch_up

        found, sides = self.found, self.found.sides
        heirs, terms = self._heirs(), replace(self._terms, limit=None)
        with opening.locked(sides, sides.alias), self._blue_locked():
            head = found.retry(sides.source.head)
            last = catch_up(pipeline, terms, head=head, report=self.report.window)
            if last.more:
                return last
            self._check_size()
            heir = self._known()
            found.retry(take_over, sides.store, heirs, sides.alias, self.at, heir, self.phase)
        self.report.say(f"{sides.alias} is {self.heir} now" + self._kept())
        head = found.retry(sides.source.head)
        return last.plus(catch_up(pipeline, terms, head=head, report=self.report.window))

    def _heirs(self) -> Heirs:
        from syncer.target import Succession

        return Succession(self.found.connection)

    def _kept(self) -> str:
        if self.blue is None or self.at is None:
            return ""
        foreign = self._foreign()
        more = f"; it holds {foreign} points that syncer did not write" if foreign else ""
        return f"; {self.blue} is kept for `syncer rollback`, until `syncer gc`{more}"

    def _foreign(self) -> int:
        from syncer.target import Succession

        assert self.blue is not None  # noqa: S101 - asked for only then
        return self.found.retry(Succession(self.found.connection).foreign, self.blue)

    @contextmanager
    def _blue_locked(self) -> Iterator[None]:
        if self.blue is None:
            yield
            return
        with opening.locked(self.found.sides, self.blue):
            yield

    def _known(self) -> Generation:
        ours = self.found.sides.store.generations(self.found.sides.alias)
        known = next((each for each in ours if each.generation == self.heir), None)
        if known is None:
            raise IdentityError(
                f"{self.heir} was given up meanwhile, by `syncer once --start-over`",
                hint="Run the same command again if another generation is still to take over.",
            )
        return known

    @property
    def _terms(self) -> Terms:
        return compose.terms(self.found.sides.settings, self.found.stop)
