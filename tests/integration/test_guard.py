"""Too many deletes at once are withheld, recorded, and applied when they are confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import memory
import pytest

from syncer.errors import ExitCode
from syncer.guard import Limit
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.target import Connection
from syncer.worker import Stop, Terms, catch_up, look_at

LIMIT = Limit(rows=5, share=0.2)
ROWS = 30


@dataclass
class Memory:
    """A memory of thirty rows, in sync."""

    path: Path
    pipeline: Pipeline
    connection: Connection

    def execute(self, sql: str) -> None:
        """Run and commit a statement."""
        memory.execute(self.path, sql)

    def sync(self, now: str = "2029-06-01T12:00:00.000Z") -> SyncResult:
        """Catch up, as carefully as ``syncer once``."""
        return memory.sync(self.pipeline, limit=LIMIT, now=lambda: now)

    def confirm(self) -> list[SyncResult]:
        """Confirm the deletes that are withheld."""
        keys = self.pipeline.state.withheld()
        terms = Terms(lambda: "2029-06-01T12:00:00.000Z", Stop())
        return list(look_at(self.pipeline, keys, terms))

    def withheld(self) -> int:
        """Return how many deletes are withheld."""
        return len(self.pipeline.state.withheld())

    def ids(self) -> set[object]:
        """Return the ids of all points."""
        return set(memory.all_points(self.connection))


@pytest.fixture(params=[1, 500], ids=["small windows", "one window"])
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Memory]:
    path = memory.make_memory(tmp_path, [f"text {n}" for n in range(1, ROWS + 1)])
    settings = memory.settings_for(tmp_path, **{"sync.window_rows": request.param})
    with memory.pipeline_for(settings) as (pipeline, connection):
        found = Memory(path, pipeline, connection)
        assert found.sync().withheld == 0
        assert pipeline.state.rows() == ROWS
        yield found


def test_a_few_deletes_are_applied(made: Memory) -> None:
    made.execute("DELETE FROM memory_events WHERE id <= 5")
    assert (made.sync().deleted, made.withheld()) == (5, 0)
    assert made.pipeline.state.rows() == ROWS - 5


@pytest.mark.rule("CT-19")
def test_an_emptied_table_takes_nothing_out(made: Memory) -> None:
    made.execute("DELETE FROM memory_events")
    result = made.sync()
    assert (result.deleted, result.withheld, result.more) == (0, ROWS, False)
    assert made.ids() == set(range(1, ROWS + 1))
    assert made.withheld() == ROWS
    assert made.sync().read == 0  # the position has passed them, since they are recorded


def test_edits_go_through_while_deletes_are_withheld(made: Memory) -> None:
    made.execute("DELETE FROM memory_events WHERE id > 10")
    made.execute("UPDATE memory_events SET content = 'new' WHERE id = 1")
    assert (made.sync().embedded, made.withheld()) == (1, 20)


@pytest.mark.rule("CT-19")
def test_confirmed_deletes_are_applied(made: Memory) -> None:
    made.execute("DELETE FROM memory_events WHERE id > 10")
    made.sync()
    assert sum(result.deleted for result in made.confirm()) == 20
    assert made.ids() == set(range(1, 11))
    assert made.withheld() == 0
    assert made.pipeline.state.rows() == 10


def test_a_row_that_is_back_leaves_the_set_and_stays(made: Memory) -> None:
    made.execute("DELETE FROM memory_events WHERE id > 10")
    made.sync()
    made.execute(
        "INSERT INTO memory_events (id, scope, source, content) VALUES (30, 's', 'x', 'back')"
    )
    made.sync()
    assert made.withheld() == 19
    made.confirm()
    assert made.ids() == {*range(1, 11), 30}


def test_a_row_that_is_back_is_left_alone_by_the_confirmation_itself(made: Memory) -> None:
    made.execute("DELETE FROM memory_events WHERE id > 10")
    made.sync()
    made.execute(
        "INSERT INTO memory_events (id, scope, source, content) VALUES (30, 's', 'x', 'back')"
    )
    made.confirm()
    assert made.ids() == {*range(1, 11), 30}
    assert made.withheld() == 0


def test_deletes_of_the_last_hour_count_and_older_ones_do_not(made: Memory) -> None:
    clock = "2029-06-01T12:00:00.000Z"
    made.pipeline.state._now = lambda: clock  # type: ignore[attr-defined] # noqa: SLF001
    made.execute("DELETE FROM memory_events WHERE id <= 4")
    assert made.sync(clock).deleted == 4
    clock = "2029-06-01T12:59:00.000Z"
    made.execute("DELETE FROM memory_events WHERE id <= 8")
    assert made.sync(clock).withheld == 4
    clock = "2029-06-01T13:00:01.000Z"
    made.execute("DELETE FROM memory_events WHERE id <= 9")
    assert made.sync(clock).deleted == 1


def test_rows_that_leave_the_scope_count(made: Memory) -> None:
    made.execute("UPDATE memory_events SET deleted_by = 'somebody'")
    assert (made.sync().deleted, made.withheld()) == (0, ROWS)


def test_rows_that_expire_do_not_count(made: Memory) -> None:
    made.execute("UPDATE memory_events SET expires_at = '2029-06-02'")
    made.sync()
    result = made.sync("2029-06-03T00:00:00.000Z")
    assert (result.deleted, result.withheld) == (ROWS, 0)
    assert made.ids() == set()


def test_rows_that_were_never_indexed_do_not_count(made: Memory) -> None:
    for _ in range(20):
        made.execute("INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', 'y')")
    made.execute(f"DELETE FROM memory_events WHERE id > {ROWS} OR id = 1")
    assert (made.sync().deleted, made.withheld()) == (1, 0)


def test_a_narrower_scope_that_would_take_out_nearly_all_is_withheld(made: Memory) -> None:
    folder = made.path.parent
    made.connection.close()
    settings = memory.settings_for(folder, **{"source.where": "id <= 2"})
    with memory.pipeline_for(settings) as (pipeline, connection):
        narrowed = Memory(made.path, pipeline, connection)
        assert (narrowed.sync().deleted, narrowed.withheld()) == (0, ROWS - 2)


def test_without_the_guard_they_would_all_go(made: Memory) -> None:
    made.execute("DELETE FROM memory_events")
    unlimited = memory.sync(replace(made.pipeline, withhold=False))
    assert unlimited.deleted == ROWS


def test_deletes_that_a_stopped_run_has_withheld_count_with_those_it_left(
    tmp_path: Path,
) -> None:
    path = memory.make_memory(tmp_path, [f"text {n}" for n in range(1, ROWS + 1)])
    settings = memory.settings_for(tmp_path, **{"sync.window_rows": 5})
    with memory.pipeline_for(settings) as (pipeline, connection):
        made = Memory(path, pipeline, connection)
        made.sync()
        made.execute("DELETE FROM memory_events WHERE id <= 9")
        terms = Terms(lambda: "2029-06-01T12:00:00.000Z", stop := Stop(), LIMIT)
        head = memory.head_of(pipeline)
        catch_up(pipeline, terms, head=head, report=lambda _: stop.ask(ExitCode.TERMINATED))
        assert made.withheld() == 5
        made.sync()
        assert made.withheld() == 9
        assert len(made.ids()) == ROWS


def test_a_withheld_row_that_is_back_but_cannot_be_indexed_leaves_the_set(made: Memory) -> None:
    made.execute("DELETE FROM memory_events")
    made.sync()
    assert made.withheld() == ROWS
    made.execute(
        "INSERT INTO memory_events (id, scope, source, content) "
        "VALUES (1, 's', 'x', CAST(x'ff' AS BLOB))"
    )
    made.sync()
    assert made.withheld() == ROWS - 1
    assert 1 not in made.ids()
