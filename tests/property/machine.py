"""Schedules: everything that may happen to a database and to the syncer that follows it.

Hypothesis draws the order of the rules. Whatever it is, a run that nobody disturbs afterwards must
leave the target equal to the table, row by row.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from hypothesis import strategies as st
from property import writes
from property.faults import CALLS, TURNS, Consequence, Fault, Meanwhile, faults, faults_of
from property.operators import GUARDS, LIMITS, Operators
from property.process import Beginning, Mapping
from property.stamping import LOOK_BACK
from property.surroundings import ALIASES, step
from property.world import ENOUGH, MAPPINGS, Run, World
from property.writes import LONG_TEXTS, ROWS, SECONDS, SEVERAL, TEXTS, Write

from syncer.source import Limits

WINDOWS = st.integers(1, 5)
RUNS = st.builds(Run, LIMITS, WINDOWS, fresh=st.booleans(), tick=st.integers(0, 1), guard=GUARDS)
TARGET_FAILS = faults_of("target") | faults(
    "target.open_rows", "target.upsert", "target.overwrite", "target.delete"
)
HALF_WRITTEN = faults(
    "target.upsert",
    "target.delete",
    turns=st.just(1),
    consequences=st.just(Consequence.KILL),
)
MAKING_FAILS = faults_of("store", "catalog")
REMAPPING_FAILS = faults(
    "store.walk_again", "store.serve", "catalog.set_description", turns=st.just(1)
)
COMMIT_FAILS = faults("state.commit", turns=st.just(1))
TOKEN_FAILS = faults(
    "target.write_token",
    "state.begin_token",
    "state.confirm_token",
    turns=st.just(1),
    consequences=st.just(Consequence.KILL),
)
OTHERS_FAIL = faults_of("state", "source", "embedder")
RUN_FAILS = TARGET_FAILS | OTHERS_FAIL
ANY_FAILURE = RUN_FAILS | MAKING_FAILS


class Schedules(Operators):
    """Everything that may happen; each rule is one sentence of a schedule."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        world.tally.schedules += 1

    def teardown(self) -> None:
        """Compare once more, unless something was found, and leave nothing behind."""
        tally, nothing_yet = self.world.tally, sys.exception() is None
        try:
            if nothing_yet:
                self.compare(Run(Limits(2)))
                return
        finally:
            self.world.close()
            if isinstance(sys.exception(), Exception) and tally.found_after is None:
                tally.found_after = tally.steps

    @step(run=RUNS)
    def syncer_runs_for_some_windows(self, run: Run) -> None:
        """It may not reach the end."""
        self.world.run(run)

    @step(changes=SEVERAL, run=RUNS, fault=TARGET_FAILS)
    def the_target_fails(self, changes: list[Write], run: Run, fault: Fault) -> None:
        """At any call, before it, in the middle or after it."""
        self.world.write_together(changes, "COMMIT")
        self.world.run(replace(run, fault=fault))

    @step(row=ROWS, text=TEXTS, run=RUNS, fault=TARGET_FAILS)
    def the_target_fails_over_an_edit(self, row: int, text: str, run: Run, fault: Fault) -> None:
        """The row may get more chunks or fewer."""
        self.world.write(writes.edit(row, text))
        self.world.run(replace(run, fault=fault))

    @step(text=LONG_TEXTS, run=RUNS, fault=TARGET_FAILS)
    def the_target_fails_over_a_new_row(self, text: str, run: Run, fault: Fault) -> None:
        """It has several chunks."""
        self.world.write(writes.insert(text))
        self.world.run(replace(run, fault=fault))

    @step(row=ROWS, run=RUNS, fault=TARGET_FAILS)
    def the_target_fails_over_a_row_that_goes(self, row: int, run: Run, fault: Fault) -> None:
        """All its chunks have to go."""
        self.world.write(writes.delete(row))
        self.world.run(replace(run, fault=fault))

    @step(changes=SEVERAL, run=RUNS, fault=OTHERS_FAIL)
    def the_state_the_source_or_the_embedder_fails(
        self, changes: list[Write], run: Run, fault: Fault
    ) -> None:
        """Before a call or after it."""
        self.world.write_together(changes, "COMMIT")
        self.world.run(replace(run, fault=fault))

    @step(alias=ALIASES, run=RUNS, fault=MAKING_FAILS)
    def finding_or_making_the_generation_fails(self, alias: str, run: Run, fault: Fault) -> None:
        """Where a process starts."""
        self.world.alias = alias
        self.world.run(replace(run, fault=fault, fresh=True))

    @step(mapping=st.sampled_from(MAPPINGS), run=RUNS, fault=REMAPPING_FAILS)
    def beginning_the_walk_again_fails(self, mapping: Mapping, run: Run, fault: Fault) -> None:
        """Where a process starts by another mapping."""
        self.world.mapping = mapping
        self.world.run(replace(run, fault=fault, fresh=True))

    @step(text=TEXTS, run=RUNS, first=TOKEN_FAILS, second=TOKEN_FAILS)
    def two_processes_fail_to_leave_their_tokens(
        self, text: str, run: Run, first: Fault, second: Fault
    ) -> None:
        """The collection carries one of several that were meant for it."""
        self.world.write(writes.insert(text))
        self.world.run(replace(run, fault=first, fresh=True))
        self.world.run(replace(run, fault=second, fresh=True))

    @step(changes=SEVERAL, run=RUNS, first=RUN_FAILS, second=RUN_FAILS)
    def two_runs_fail_one_after_the_other(
        self, changes: list[Write], run: Run, first: Fault, second: Fault
    ) -> None:
        """The second finds what the first has left behind."""
        self.world.write_together(changes, "COMMIT")
        self.world.run(replace(run, fault=first))
        self.world.run(replace(run, fault=second))

    @step(row=ROWS, text=TEXTS, edited=LONG_TEXTS, run=RUNS, fault=TARGET_FAILS)
    def the_target_fails_over_an_edit_that_is_then_taken_back(
        self, row: int, text: str, edited: str, run: Run, fault: Fault
    ) -> None:
        """The row looks as it did before the edit."""
        self.world.write(writes.replace_row(row, text))
        self.world.run(replace(run, windows=ENOUGH))
        self.world.write(writes.edit(row, edited))
        self.world.run(replace(run, fault=fault))
        self.world.write(writes.edit(row, text))

    @step(row=ROWS, text=LONG_TEXTS, run=RUNS, fault=TARGET_FAILS)
    def the_target_fails_over_a_new_row_that_is_then_deleted(
        self, row: int, text: str, run: Run, fault: Fault
    ) -> None:
        """What was written of it must go."""
        self.world.write(writes.delete(row))
        self.world.run(replace(run, windows=ENOUGH))
        self.world.write(writes.replace_row(row, text))
        self.world.run(replace(run, fault=fault))
        self.world.write(writes.delete(row))

    @step(
        text=LONG_TEXTS,
        edited=TEXTS,
        run=RUNS,
        fault=st.none() | HALF_WRITTEN,
        pause=st.sampled_from((0, LOOK_BACK + 1)),
    )
    def a_walk_ends_amid_rows_that_are_edited_then(
        self, text: str, edited: str, run: Run, fault: Fault | None, pause: int
    ) -> None:
        """They may get fewer chunks than were written."""
        self.world.write(writes.edit_all(text))
        self.world.run(replace(run, beginning=Beginning.START_OVER, fault=fault))
        self.world.write(writes.edit_all(edited))
        self.world.application.second += pause

    @step(row=ROWS, seconds=SECONDS, run=RUNS, fault=COMMIT_FAILS)
    def a_run_fails_while_the_clock_is_back_before_an_expiry(
        self, row: int, seconds: int, run: Run, fault: Fault
    ) -> None:
        """What has expired is in scope again only while it lasts."""
        self.world.write(writes.expire(row, self._moment(seconds)))
        self.world.application.second += seconds
        self.world.run(replace(run, windows=ENOUGH))
        self.world.application.second -= seconds
        self.world.run(replace(run, fault=fault))
        self.world.application.second += seconds

    @step(row=ROWS, seconds=SECONDS, limits=LIMITS, windows=st.sampled_from((1, ENOUGH)))
    def the_clock_steps_back_before_an_expiry(
        self, row: int, seconds: int, limits: Limits, windows: int
    ) -> None:
        """A row that had expired when a window was read is in scope again."""
        self.world.run(Run(limits))
        self.world.write(writes.expire(row, self._moment(seconds)))
        self.world.application.second += seconds
        self.world.run(Run(limits, windows))
        self.world.application.second -= seconds

    @step(run=RUNS, changes=SEVERAL, call=st.sampled_from(CALLS), turn=TURNS)
    def the_application_writes_while_syncer_runs(
        self, run: Run, changes: list[Write], call: str, turn: int
    ) -> None:
        """Between any two calls."""
        self.world.run(run, self._writing(changes, call, turn))

    @step(run=RUNS, fault=ANY_FAILURE, changes=SEVERAL, call=st.sampled_from(CALLS), turn=TURNS)
    def the_application_writes_while_syncer_fails(
        self, run: Run, fault: Fault, changes: list[Write], call: str, turn: int
    ) -> None:
        """Both at once."""
        self.world.run(replace(run, fault=fault), self._writing(changes, call, turn))

    @step(run=RUNS, fault=st.none() | MAKING_FAILS)
    def syncer_starts_over(self, run: Run, fault: Fault | None) -> None:
        """It makes another generation, if it gets that far."""
        self.world.run(replace(run, beginning=Beginning.START_OVER, fault=fault))

    @step()
    def the_process_ends(self) -> None:
        """The next run is another process, with bindings of its own."""
        self.world.end_process()

    def _writing(self, changes: list[Write], call: str, turn: int) -> Meanwhile:
        return Meanwhile(call, turn, lambda: self.world.write_together(changes, "COMMIT"))
