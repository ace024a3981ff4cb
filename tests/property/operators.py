"""Quiet points, and what an operator does: confirm, try again, restore, reconcile, start over."""

from __future__ import annotations

from enum import StrEnum

from hypothesis import strategies as st
from property import writes
from property.embedding import by_characters
from property.expected import by_row
from property.process import ANY_NUMBER, Beginning
from property.stamping import LOOK_BACK, Habit
from property.surroundings import Surroundings, step
from property.world import MAPPINGS, Run
from property.writes import SEVERAL, TEXTS, Write

from syncer.guard import Limit
from syncer.keys import PointId, encode_key
from syncer.source import Limits

LIMITS = st.builds(Limits, st.integers(1, 3), st.sampled_from((1, 20, 10**6)))
GUARDS = st.sampled_from((ANY_NUMBER, ANY_NUMBER, ANY_NUMBER, Limit(0, 0), Limit(2, 0.3)))
FEW = Limit(1, 0.3)
_MINUTES = 600  # seconds
_DAY = 86_400


class Departure(StrEnum):
    """How all rows leave at once."""

    DELETED = "the table is emptied"
    SOFTLY = "the rows are marked"
    OUT_OF_SCOPE = "the settings leave them out"


class Operators(Surroundings):
    """Who looks after syncer, and what must hold each time nobody disturbs it."""

    @step(limits=LIMITS, guard=GUARDS)
    def a_run_that_nobody_disturbs_leaves_the_target_equal_to_the_table(
        self, limits: Limits, guard: Limit
    ) -> None:
        """A quiet point: by a fresh process, or by one that has been through everything."""
        self.compare(Run(limits, guard=guard))

    @step(limits=LIMITS)
    def a_collection_that_is_begun_anew_equals_the_table(self, limits: Limits) -> None:
        """Every mode promises this."""
        self.compare(Run(limits, beginning=Beginning.START_OVER), strictly=True)

    @step(limits=LIMITS, guard=GUARDS)
    def both_stores_are_reconciled(self, limits: Limits, guard: Limit) -> None:
        """Every mode promises this too."""
        self.compare(Run(limits, beginning=Beginning.RECONCILE, guard=guard), strictly=True)

    @step(limits=LIMITS)
    def an_operator_has_quarantined_rows_tried_again(self, limits: Limits) -> None:
        """Only those stay that the embedder still refuses."""
        self.compare(Run(limits))
        self.world.retry_quarantined()
        self.world.check()

    @step(refused=st.sampled_from((("q",), ("zzzz", "abcd"), ("efgx",))))
    def the_embedder_refuses_some_texts(self, refused: tuple[str, ...]) -> None:
        """It has no vector for them."""
        self.world.embedder.refuses = frozenset(refused)

    @step()
    def the_embedder_refuses_nothing_any_more(self) -> None:
        """Rows in quarantine wait until their time comes, or they change."""
        self.world.embedder.refuses = frozenset()

    @step()
    def a_day_goes_by(self) -> None:
        """By then every quarantined row has to be tried again."""
        self.world.application.second += _DAY

    @step(limits=LIMITS)
    def the_look_back_ends(self, limits: Limits) -> None:
        """Then nothing is read again but rows without a time, or with one that is still to come."""
        application = self.world.application
        began = application.second
        for runs in range(3):
            application.second += LOOK_BACK if runs else 0
            self.compare(Run(limits))
        stamps = [application.stamps.second(one.stamp) for one in application.records().values()]
        if all(one is not None and one <= began for one in stamps):
            assert self.world.process.is_idle(), "rows are read again although nothing is new"

    @step(row=writes.ROWS, other=writes.ROWS, text=TEXTS, limits=LIMITS)
    def a_stamp_in_the_future_hides_no_later_change(
        self, row: int, other: int, text: str, limits: Limits
    ) -> None:
        """It is never taken for what was settled."""
        stamps = self.world.application.stamps
        stamps.habit = Habit("Z", -_MINUTES)
        self.world.write(writes.edit(row, text))
        stamps.habit = Habit("Z")
        self.the_look_back_ends(limits)
        self.world.write(writes.edit(other, text[::-1]))
        self.compare(Run(limits))

    @step(row=writes.ROWS, text=TEXTS, run=st.builds(Run, LIMITS))
    def the_embedder_refuses_a_row_for_a_day(self, row: int, text: str, run: Run) -> None:
        """Then it comes back by itself."""
        self.world.embedder.refuses = frozenset(by_characters(text))
        self.world.write(writes.replace_row(row, text))
        self.world.run(run)
        self.the_embedder_refuses_nothing_any_more()
        self.a_day_goes_by()

    @step(run=st.builds(Run, LIMITS, guard=st.just(FEW)), how=st.sampled_from(Departure))
    def too_many_rows_go_at_once(self, run: Run, how: Departure) -> None:
        """None of them is taken out before somebody confirms it."""
        self.world.mapping = MAPPINGS[0]
        self.compare(Run(run.limits))
        world, before = self.world, self._payloads()
        rows = before.keys() & {encode_key(key) for key in world.application.records()}
        are_too_many = FEW.is_exceeded(len(rows), world.process.indexed())
        self._leave(how)
        world.run_undisturbed(run)
        if are_too_many:
            after = self._payloads()
            lost = [row for row in rows if after.get(row) != before[row]]
            assert not lost, f"taken out although they are too many: {lost}"
            assert world.withheld(), "nobody is told of the rows that are gone"

    @step(row=writes.ROWS, text=TEXTS, run=st.builds(Run, LIMITS, guard=st.just(Limit(0, 0))))
    def a_row_whose_deletion_is_withheld_comes_back(self, row: int, text: str, run: Run) -> None:
        """It stays, whatever is confirmed."""
        self.world.write(writes.mark_deleted(row, "me"))
        self.world.run_undisturbed(run)
        self.world.write(writes.mark_deleted(row, None))
        self.world.confirm_deletes()
        self.world.write(writes.edit(row, text))

    @step()
    def a_copy_of_the_database_is_kept(self) -> None:
        """While no syncer is running."""
        self.world.back_up(("memory", "other"))

    @step(changes=SEVERAL, run=st.builds(Run, LIMITS))
    def the_database_is_restored(self, changes: list[Write], run: Run) -> None:
        """From a copy; it is noticed where the state came from it as well."""
        if self.world.application.backup is None:
            self.a_copy_of_the_database_is_kept()
            self.world.write(writes.edit_all("newer"))
            self.world.run(run)
        self.world.restore()
        self.world.write_together(changes, "COMMIT")
        self.world.run(run)

    def compare(self, run: Run, *, strictly: bool = False) -> None:
        """Compare target and table after a run that nobody disturbs."""
        self.world.run_undisturbed(run)
        self.world.confirm_deletes()
        self.world.check(strictly=strictly)

    def _leave(self, how: Departure) -> None:
        """Let all rows go in this way, or in another that the mode can see."""
        if how is Departure.DELETED and self.world.mode.logged:
            self.world.write(writes.delete_all())
        elif how is Departure.SOFTLY and self.world.mode.name != "append_only":
            self.world.write(writes.mark_all_deleted("me"))
        else:
            self.world.write(writes.rescope_all("out"))
            self.world.mapping = MAPPINGS[2]

    def _payloads(self) -> dict[str, dict[PointId, object]]:
        """Return what the target holds of each row but for the vectors, which local mode rounds."""
        rows = by_row(self.world.held())
        return {row: {point: held[point][0] for point in held} for row, held in rows.items()}
