"""What the application, the clock and the operator do in a schedule, one sentence each."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from property import writes
from property.process import Mapping
from property.stamping import HABITS, LOOK_BACK, NEGLIGENT, Habit
from property.world import MAPPINGS, World
from property.writes import (
    AGENTS,
    ANY_TEXTS,
    BLANKS,
    OBJECTS,
    ROWS,
    SCOPES,
    SECONDS,
    SECONDS_AWAY,
    SEVERAL,
    TEXTS,
    Write,
)

P = ParamSpec("P")

ALIASES = st.sampled_from(("memory", "other"))


def step(**drawn: st.SearchStrategy[object]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a method a rule of hypothesis's, each use of which is counted."""

    def decorate(method: Callable[P, None]) -> Callable[P, None]:
        @wraps(method)
        def counted(*args: P.args, **kwargs: P.kwargs) -> None:
            cast("Surroundings", args[0]).world.tally.steps += 1
            method(*args, **kwargs)

        return cast("Callable[P, None]", rule(**drawn)(counted))  # type: ignore[call-overload]

    return decorate


class Surroundings(RuleBasedStateMachine):
    """What happens around syncer: writes, time, other settings."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.earlier: dict[int, str] = {}

    @initialize(rows=st.lists(st.tuples(TEXTS, st.none() | SECONDS_AWAY), min_size=2, max_size=5))
    def the_table_has_some_rows(self, rows: list[tuple[str, int | None]]) -> None:
        """A schedule that begins with an empty table would take long to become interesting."""
        for text, seconds in rows:
            self.world.write(writes.insert(text, expires_at=self._moment(seconds)))

    @step(text=TEXTS, scope=SCOPES)
    def a_row_is_inserted(self, text: str, scope: str) -> None:
        """Most rows never expire."""
        self.world.write(writes.insert(text, scope))

    @step(text=TEXTS, seconds=SECONDS_AWAY)
    def a_row_is_inserted_that_expires(self, text: str, seconds: int) -> None:
        """It may have expired already."""
        self.world.write(writes.insert(text, expires_at=self._moment(seconds)))

    @step(row=ROWS, text=ANY_TEXTS)
    def a_row_is_put_under_an_id_by_insert_or_replace(self, row: int, text: str) -> None:
        """Whether or not the id is taken."""
        self.world.write(writes.replace_row(row, text))

    @step(row=ROWS, text=TEXTS)
    def a_row_is_edited(self, row: int, text: str) -> None:
        """Its text before is remembered."""
        self.earlier[row] = self.world.application.content_of(row) or text
        self.world.write(writes.edit(row, text))

    @step(row=ROWS)
    def the_last_edit_of_a_row_is_taken_back(self, row: int) -> None:
        """As if it had never been."""
        if row in self.earlier:
            self.world.write(writes.edit(row, self.earlier[row]))

    @step(row=ROWS, blank=BLANKS)
    def a_row_loses_its_text(self, row: int, blank: str) -> None:
        """There is nothing left to embed."""
        self.earlier[row] = self.world.application.content_of(row) or blank
        self.world.write(writes.edit(row, blank))

    @step(row=ROWS, text=TEXTS)
    def rows_are_edited_by_update_or_replace(self, row: int, text: str) -> None:
        """Two neighbours at once."""
        self.world.write(writes.edit_or_replace(row, text))

    @step(row=ROWS, other=ROWS)
    def a_row_takes_the_key_of_another(self, row: int, other: int) -> None:
        """The other is gone, and nobody has deleted it; the canonical schema refuses it."""
        if row == other or self.world.application.content_of(row) is None:
            return
        refused = False
        try:
            self.world.write(writes.move(row, other))
        except sqlite3.IntegrityError:
            refused = True
        assert refused == self.world.mode.table.keys_are_fixed, f"row {row} has become row {other}"

    @step(row=ROWS, spot=st.integers(1, 2))
    def a_row_takes_the_place_of_another(self, row: int, spot: int) -> None:
        """By UPDATE OR REPLACE, over another unique column than the key."""
        if self.world.mode.table.spot is not None:
            self.world.write(writes.take_spot(row, spot))

    @step(row=ROWS, agent=AGENTS, metadata=OBJECTS)
    def a_row_gets_other_metadata(self, row: int, agent: str, metadata: str) -> None:
        """Its text stays."""
        self.world.write(writes.describe(row, agent, metadata))

    @step(row=ROWS, scope=SCOPES)
    def a_row_moves_to_another_scope(self, row: int, scope: str) -> None:
        """One mapping leaves a scope out."""
        self.world.write(writes.rescope(row, scope))

    @step(row=ROWS)
    def a_row_is_deleted(self, row: int) -> None:
        """For good."""
        self.world.write(writes.delete(row))

    @step(row=ROWS, superseded_by=st.sampled_from((None, 99)), by=st.sampled_from((None, "me")))
    def a_row_is_superseded_or_deleted_softly_or_neither(
        self, row: int, superseded_by: int | None, by: str | None
    ) -> None:
        """The row stays in the table."""
        self.world.write(writes.supersede(row, superseded_by))
        self.world.write(writes.mark_deleted(row, by))

    @step(row=ROWS, seconds=st.none() | SECONDS_AWAY)
    def a_row_gets_another_expiry(self, row: int, seconds: int | None) -> None:
        """It may never expire, or may have expired already."""
        self.world.write(writes.expire(row, self._moment(seconds)))

    @step(changes=SEVERAL)
    def several_changes_are_committed_together(self, changes: list[Write]) -> None:
        """One transaction, several entries in the log."""
        self.world.write_together(changes, "COMMIT")

    @step(changes=SEVERAL)
    def several_changes_are_rolled_back(self, changes: list[Write]) -> None:
        """Nothing of them stays."""
        self.world.write_together(changes, "ROLLBACK")

    @step()
    def the_database_is_vacuumed(self) -> None:
        """Every page moves."""
        self.world.write(Write("VACUUM"))

    # Stamps

    @step(habit=HABITS)
    def the_application_stamps_in_another_way(self, habit: Habit) -> None:
        """Several forms in one column, and several rows with one stamp."""
        self.world.application.stamps.habit = habit

    @step(row=ROWS, text=TEXTS, habit=NEGLIGENT)
    def a_row_is_edited_under_a_stamp_that_is_too_old(
        self, row: int, text: str, habit: Habit
    ) -> None:
        """It may be that nobody sees it."""
        stamps = self.world.application.stamps
        stamps.habit, before = habit, stamps.habit
        self.world.write(writes.edit(row, text))
        stamps.habit = before

    @step(text=TEXTS)
    def all_rows_get_one_stamp(self, text: str) -> None:
        """More than a window holds."""
        self.world.write(writes.edit_all(text))

    @step()
    def the_index_on_the_stamps_comes_or_goes(self) -> None:
        """The rows are then read in another order."""
        if self.world.mode.table.stamp is not None:
            self.world.application.toggle_index()

    # Time and settings

    @step(seconds=SECONDS)
    def the_clock_moves_on(self, seconds: int) -> None:
        """Rows expire."""
        self.world.application.second += seconds

    @step(seconds=SECONDS)
    def the_clock_steps_back(self, seconds: int) -> None:
        """Rows that have expired are there again."""
        self.world.application.second = max(0, self.world.application.second - seconds)

    @step(seconds=st.integers(LOOK_BACK + 1, 20), row=ROWS, text=TEXTS)
    def a_row_is_edited_after_the_clock_was_set_back_far(
        self, seconds: int, row: int, text: str
    ) -> None:
        """By more than anybody looks back."""
        self.the_clock_steps_back(seconds)
        self.world.write(writes.edit(row, text))

    @step()
    def the_clock_moves_on_to_when_the_next_row_expires(self) -> None:
        """That very moment, at which a daemon wakes."""
        self.world.application.second = (
            self.world.application.next_expiry() or self.world.application.second
        )

    @step(mapping=st.sampled_from(MAPPINGS))
    def the_mapping_is_changed(self, mapping: Mapping) -> None:
        """The next process walks again."""
        self.world.mapping = mapping

    @step(alias=ALIASES)
    def the_settings_name_another_collection(self, alias: str) -> None:
        """One database may feed two collections."""
        self.world.alias = alias

    def _moment(self, seconds: int | None) -> str | None:
        return (
            None
            if seconds is None
            else writes.stamp(max(0, self.world.application.second + seconds))
        )
