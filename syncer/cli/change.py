"""One generation takes another's place: built, compared with the table, then swapped for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syncer.cli import compose, opening
from syncer.cli.carried import carry_foreign
from syncer.cli.lenders import donors
from syncer.cli.run import narrow
from syncer.errors import DriftError, IdentityError, SyncerError
from syncer.model import Phase
from syncer.state import Generation

if TYPE_CHECKING:
    from syncer.cli.counted import Count
    from syncer.cli.ready import Ready
    from syncer.cli.report import Report
    from syncer.ports import Pipeline
    from syncer.rebuild import Heirs
    from syncer.result import SyncResult, VerifyResult
    from syncer.worker import Terms


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
        with opening.locked(sides, self.heir) as deaths:
            narrow(sides, self.report, deaths)
            return self._made()

    def _made(self) -> SyncResult:
        with self.found.counted(self.heir, self.report, fewer=True) as (own, count):
            lent = donors(self.found, self.heir, own.embedder.recipe)
            pipeline = replace(own, donors=own.donors + lent)
            with self._marked():
                total = self._built(pipeline)
                if not total.more:
                    total = total.plus(self._checked(pipeline, count))
                if not total.more:
                    total = replace(total, more=not self._carried())
            if not total.more:
                total = total.plus(self._taken_over(pipeline, count))
            if total.more:
                self._give_up()
            return total

    @contextmanager
    def _marked(self) -> Iterator[None]:
        """Keep the log for a generation on its way back; if it is not to be, no longer."""
        if self.phase is Phase.RETURNING:
            self.found.sides.store.enter(self.heir, Phase.RETURNING)
        try:
            yield
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Let a generation that did not get back be one that is kept, as before."""
        if self.phase is Phase.RETURNING:
            self.found.sides.store.enter(self.heir, Phase.KEPT)

    def _built(self, pipeline: Pipeline) -> SyncResult:
        from syncer.rebuild import build

        retry, source = self.found.retry, self.found.sides.source
        self.report.begin(retry(source.pending, retry(pipeline.state.position)))
        return build(pipeline, self._terms, lambda: retry(source.head), self.report.window)

    def _checked(self, pipeline: Pipeline, count: Count) -> SyncResult:
        """Compare the heir with the source, and mend it; raise unless it is whole then."""
        from syncer.cli.verify import comparing_bar
        from syncer.verify import mend

        self.report.rest()
        self.report.say(f"comparing {self.heir} with the table")
        terms = replace(self._terms, limit=None)
        with comparing_bar(self.found.sides) as read:
            written, _, after = mend(pipeline, terms, read=read, report=self.report.window)
        if written.more:
            return written
        self._check_drift(after)
        count.begin(after.points)  # what was lost by now has been put back
        self.found.sides.store.bind(self.heir).note_verified(after)
        self.found.sides.store.enter(self.heir, self.phase)
        self._check_size()
        return written

    def _carried(self) -> bool:
        """Let what others have put into blue's points go over, if asked to; False if stopped."""
        target = self.found.sides.settings.target
        if self.blue is None or not target.preserve_foreign_payload:
            return True
        return carry_foreign(self.found, self.report, self.blue, self.heir)

    def _check_drift(self, found: VerifyResult) -> None:
        """Raise DriftError if a row differs; foreign points have been there, and stay."""
        from syncer.result import Drift

        differing = {kind: rows for kind, rows in found.counts.items() if rows}
        if foreign := differing.pop(Drift.FOREIGN, 0):
            self.report.warn(f"{self.heir} holds {foreign} points that syncer did not write")
        if differing:
            raise DriftError(
                f"{self.heir} is not equal to the table, so the alias was not moved: "
                + ", ".join(f"{rows} {kind}" for kind, rows in differing.items()),
                hint="Run the same command again. If it stays so, somebody else writes to it, or "
                "the table changes without its log seeing it.",
            )

    def _check_size(self) -> None:
        from syncer.rebuild import check_size

        store = self.found.sides.store
        before = store.bind(self.blue).rows() if self.blue else 0
        heir, limit = self._known(), self._terms.limit
        if self.blue and limit is not None:
            check_size(self.blue, before, self.heir, heir.rows, limit, heir.confirmed_rows)

    def _taken_over(self, pipeline: Pipeline, count: Count) -> SyncResult:
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
            count.check()
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
        """Return how many foreign points blue holds; 0 if that cannot be found out just now.

        The alias has moved: nothing that is only to be told may make the run fail.
        """
        from syncer.target import Succession

        assert self.blue is not None  # noqa: S101 - asked for only then
        try:
            return Succession(self.found.connection).foreign(self.blue)
        except SyncerError:
            return 0

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
