"""Killed at any moment, whatever happens next, the collection ends as in an undisturbed run.

Real processes die by SIGKILL while they write to the real local mode; rows have one chunk, several,
more than before, fewer than before, none any more.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import dying
import memory
import pytest

CHILD = "kill_child.py"

MOMENTS = (
    "before-token",
    "token-pending",
    "token-written",
    "before-write",
    "half-opened",
    "opened",
    "between-chunks",
    "between-payloads",
    "between-deletes",
    "before-chunk-0",
    "between-rows",
    "before-position",
    "after-position",
)

LONG = "alpha beta gamma delta epsilon zeta eta theta"  # 4 chunks of 12 characters
BEFORE = (
    LONG,
    LONG + " iota kappa lambda",
    LONG + " mu",
    LONG + " nu",
    "one chunk",
    LONG + " xi",
    "two",
)

CHANGE = f"""
UPDATE memory_events SET content = content || ' and then some more words' WHERE id = 1;
UPDATE memory_events SET content = 'fewer chunks than there were' WHERE id = 2;
UPDATE memory_events SET scope = 'other' WHERE id IN (3, 7);
DELETE FROM memory_events WHERE id = 4;
UPDATE memory_events SET content = 'one chunk, edited to be two' WHERE id = 5;
UPDATE memory_events SET content = '  ' WHERE id = 6;
INSERT INTO memory_events (agent, scope, source, content) VALUES ('n', 's', 'x', '{LONG} new');
INSERT INTO memory_events (agent, scope, source, content) VALUES ('n', 's', 'x', 'new');
"""


def nothing(_connection: object) -> None:
    """Leave everything as it was when the process died."""


def edit(connection: sqlite3.Connection) -> None:
    """Give every row another text."""
    connection.execute("UPDATE memory_events SET content = 'edited again: ' || content || id")


def take_back(connection: sqlite3.Connection) -> None:
    """Put every row back to what it was before the interrupted run."""
    connection.execute("DELETE FROM memory_events WHERE id > ?", (len(BEFORE),))
    connection.execute(
        "INSERT OR IGNORE INTO memory_events (id, agent, scope, source, content) "
        "SELECT 4, 'a', 's', 'x', 'x'"
    )
    for number, content in enumerate(BEFORE, 1):
        connection.execute(
            "UPDATE memory_events SET content = ?, scope = 's' WHERE id = ?", (content, number)
        )


def delete(connection: sqlite3.Connection) -> None:
    """Take every row away that the interrupted run was about."""
    connection.execute("DELETE FROM memory_events WHERE id <> 3")


SEQUELS = (nothing, edit, take_back, delete)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that is in sync, with the change committed that the child will be killed over."""
    folder = tmp_path_factory.mktemp("base")
    path = memory.make_memory(folder, BEFORE)
    memory.sync_memory(memory.settings_for(folder), chunker=memory.by_characters)
    with closing(memory.write(path)) as connection:
        connection.executescript(CHANGE)
    return folder


@pytest.fixture(scope="module", params=MOMENTS)
def killed(
    request: pytest.FixtureRequest, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A copy of the memory, left behind by a process that died at the moment."""
    folder = tmp_path_factory.mktemp(request.param) / "memory"
    dying.left_behind(CHILD, base, folder, request.param)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.rule("CT-21")
@pytest.mark.parametrize("sequel", SEQUELS)
def test_after_a_kill_the_collection_ends_as_in_an_undisturbed_run(
    killed: Path, sequel: Callable[[sqlite3.Connection], None], tmp_path: Path
) -> None:
    folder = tmp_path / "memory"
    shutil.copytree(killed, folder)
    with closing(memory.write(folder / "memory.db")) as connection, connection:
        sequel(connection)

    memory.sync_memory(memory.settings_for(folder), chunker=memory.by_characters)

    found = memory.points_in(memory.settings_for(folder))
    expected = undisturbed(folder, tmp_path / "undisturbed")
    assert found.keys() == expected.keys()
    for identifier, (payload, vectors) in expected.items():
        assert found[identifier][0] == payload
        assert found[identifier][1].keys() == vectors.keys()
        for name, vector in vectors.items():
            assert found[identifier][1][name] == pytest.approx(vector, abs=1e-5)


def undisturbed(folder: Path, fresh: Path) -> memory.Points:
    """Return what a run over the same rows makes that nobody disturbs."""
    fresh.mkdir()
    path = memory.make_memory(fresh)
    with closing(memory.write(path)) as connection, connection:
        connection.execute("ATTACH ? AS other", (str(folder / "memory.db"),))
        connection.execute("INSERT INTO memory_events SELECT * FROM other.memory_events")
    settings = memory.settings_for(fresh)
    memory.sync_memory(settings, chunker=memory.by_characters)
    return memory.points_in(settings)


def test_the_child_that_is_not_killed_ends_by_itself(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    shutil.copytree(base, folder)
    ended = dying.child(CHILD, folder, "never")
    assert ended.returncode == 0, ended.stderr
    settings = memory.settings_for(folder)
    assert memory.points_in(settings) == undisturbed(folder, tmp_path / "undisturbed")
