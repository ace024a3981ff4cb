"""Positions, tokens and quarantine in a real database file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import memory
import pytest

from syncer.errors import IdentityError, PositionMovedError, SchemaError, SourceBusyError
from syncer.model import Outcome, Position, Quarantined, Reason
from syncer.state import GenerationState, StateStore

TABLE = "memory_events"
NOW = "2029-01-01T00:00:00.000Z"
FIRST = Position("g", change_seq=5, expired_to=NOW)
SECOND = Position("g", "20", 8, walked=False, expired_to="2030-01-01T00:00:00.000Z")
BAD = Quarantined("7", Reason.FOREIGN_POINT, "a foreign point has this row's id")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with five memories."""
    return memory.make_memory(tmp_path, ["a", "b", "c", "d", "e"])


@pytest.fixture
def store(path: Path) -> Iterator[StateStore]:
    """A state with one generation in it."""
    with closing(StateStore(path, now=lambda: NOW)) as opened:
        opened.add("g", "memory", TABLE)
        yield opened


@pytest.fixture
def state(store: StateStore) -> GenerationState:
    """The part of the state that a run works with."""
    return store.bind("g")


def test_a_generation_begins_at_nothing_and_serves_when_told(store: StateStore) -> None:
    known = store.serving("memory")
    assert known is not None
    assert (known.serving, known.position, known.source_table) == (False, FIRST, TABLE)
    store.serve("g", "settings", "mapping")
    known = store.serving("memory")
    assert known is not None
    assert (known.serving, known.settings_digest, known.mapping_digest) == (
        True,
        "settings",
        "mapping",
    )
    assert store.serving("other") is None


def test_one_generation_serves_an_alias_at_a_time(store: StateStore) -> None:
    store.serve("g", "", "")
    store.add("h", "memory", TABLE)
    store.add("o", "other", TABLE)
    store.serve("o", "", "")
    store.serve("h", "", "")
    assert [(g.generation, g.serving) for g in store.generations("memory")] == [
        ("h", True),
        ("g", False),
    ]
    assert store.generations("other")[0].serving


def test_a_position_is_stored_whole(state: GenerationState) -> None:
    assert state.position() == FIRST
    state.commit(FIRST, SECOND, Outcome())
    assert state.position() == SECOND
    done = replace(SECOND, walked=True)
    state.commit(SECOND, done, Outcome())
    assert state.position() == done


def test_a_position_that_somebody_else_moved_is_not_overwritten(
    store: StateStore, state: GenerationState
) -> None:
    other = store.bind("g")
    other.commit(FIRST, SECOND, Outcome())
    with pytest.raises(PositionMovedError, match="moved by another process"):
        state.commit(FIRST, replace(FIRST, last_id="5"), Outcome(quarantined=(BAD,)))
    assert other.position() == SECOND
    assert store.quarantine("g") == []


def test_a_commit_of_nothing_writes_nothing(path: Path, state: GenerationState) -> None:
    with closing(memory.write(path)) as connection:
        (before,) = connection.execute("PRAGMA data_version").fetchone()
        state.commit(FIRST, FIRST, Outcome(settled=("1", "2")))
        assert connection.execute("PRAGMA data_version").fetchone() == (before,)
        state.commit(FIRST, SECOND, Outcome())
        assert connection.execute("PRAGMA data_version").fetchone() != (before,)


def test_a_token_is_known_from_the_moment_it_is_pending(state: GenerationState) -> None:
    assert state.tokens() == {None}
    state.begin_token("a", None)
    assert state.tokens() == {None, "a"}
    assert not state.owns_token()
    state.confirm_token("a")
    assert state.tokens() == {"a"}
    assert state.owns_token()
    state.begin_token("b", "a")
    assert state.tokens() == {"a", "b"}


def test_another_process_s_token_is_not_one_s_own(
    store: StateStore, state: GenerationState
) -> None:
    state.begin_token("a", None)
    state.confirm_token("a")
    other = store.bind("g")
    assert not other.owns_token()
    other.begin_token("b", "a")
    other.confirm_token("b")
    assert not state.owns_token()


def test_a_position_that_goes_back_under_a_running_process_is_noticed(
    path: Path, state: GenerationState
) -> None:
    state.begin_token("a", None)
    state.confirm_token("a")
    state.commit(FIRST, SECOND, Outcome())
    memory.execute(path, "UPDATE syncer_generations SET last_id = '10'")
    with pytest.raises(IdentityError, match="went back"):
        state.position()


def test_another_process_that_moves_the_position_is_no_restored_database(
    store: StateStore, state: GenerationState
) -> None:
    state.begin_token("a", None)
    state.confirm_token("a")
    state.commit(FIRST, SECOND, Outcome())
    third = replace(SECOND, change_seq=9)
    store.bind("g").commit(SECOND, third, Outcome())
    assert state.position() == third


def test_a_generation_begins_at_the_head_of_the_log_at_that_moment(
    path: Path, store: StateStore
) -> None:
    memory.execute(path, "DELETE FROM memory_events WHERE id = 1")
    store.add("later", "memory", TABLE)
    assert store.bind("later").position() == Position("later", change_seq=6, expired_to=NOW)


def test_a_state_that_cannot_be_opened_leaves_no_connection_behind(path: Path) -> None:
    with closing(memory.write(path)) as writer:
        writer.execute("PRAGMA journal_mode = DELETE")
        writer.execute("BEGIN EXCLUSIVE")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            with pytest.raises(SourceBusyError):
                StateStore(path, busy=0.01)
        # SQLite itself keeps one, as long as this process has a lock on the file.
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_a_quarantined_row_is_counted_and_released(
    store: StateStore, state: GenerationState
) -> None:
    state.commit(FIRST, FIRST, Outcome(settled=("7", "8"), quarantined=(BAD,)))
    state.commit(FIRST, FIRST, Outcome(settled=("7",), quarantined=(BAD,)))
    (record,) = store.quarantine("g")
    assert (record.row, record.reason, record.attempts) == ("7", "foreign_point", 2)
    state.commit(FIRST, FIRST, Outcome(settled=("8",)))
    assert len(store.quarantine("g")) == 1
    state.commit(FIRST, FIRST, Outcome(settled=("7",)))
    assert store.quarantine("g") == []


def test_served_changes_are_pruned_below_the_slowest_generation(
    path: Path, store: StateStore, state: GenerationState
) -> None:
    store.add("slow", "other", TABLE)
    slow = store.bind("slow")
    for number in range(1, 4):
        memory.execute(path, "UPDATE memory_events SET content = 'x' WHERE id = ?", (number,))
    assert log_of(path) == [1, 2, 3, 4, 5, 6, 7, 8]
    state.commit(FIRST, replace(FIRST, change_seq=8), Outcome())
    assert log_of(path) == [6, 7, 8]
    start = replace(FIRST, generation="slow")
    slow.commit(start, replace(start, change_seq=7), Outcome())
    assert log_of(path) == [8]


def log_of(path: Path) -> list[int]:
    """Return the sequence numbers that the change log still has."""
    with closing(memory.write(path)) as connection:
        return [
            seq for (seq,) in connection.execute("SELECT seq FROM syncer_changes_memory_events")
        ]


def test_the_seed_s_view_shows_how_far_each_collection_is(
    path: Path, store: StateStore, state: GenerationState
) -> None:
    store.serve("g", "", "")
    state.commit(FIRST, SECOND, Outcome())
    with closing(memory.write(path)) as connection:
        assert connection.execute("SELECT * FROM sync_status").fetchall() == [("memory", 20)]


def test_forgetting_a_generation_leaves_nothing_of_it(
    store: StateStore, state: GenerationState
) -> None:
    state.commit(FIRST, SECOND, Outcome(quarantined=(BAD,)))
    store.forget("g")
    assert store.generations("memory") == []
    assert store.quarantine("g") == []


def test_a_locked_database_is_busy_and_the_position_stays(path: Path) -> None:
    opened = StateStore(path, now=lambda: NOW, busy=0.05)
    with closing(opened) as store, closing(memory.write(path)) as writer:
        store.add("g", "memory", TABLE)
        state = store.bind("g")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(SourceBusyError, match="locked"):
            state.commit(FIRST, SECOND, Outcome())
        writer.rollback()
        assert state.position() == FIRST


def test_a_database_without_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    memory.execute(path, "CREATE TABLE notes (id)")
    with pytest.raises(SchemaError, match="holds no state"):
        StateStore(path)


def test_the_source_keeps_its_identity(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = memory.make_memory(tmp_path / "other")
    with closing(StateStore(path)) as first, closing(StateStore(other)) as second:
        assert len(first.source_id()) == 32
        assert first.source_id() != second.source_id()
