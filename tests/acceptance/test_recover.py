"""``syncer recover``: killed at any moment, and after the official MCP server has stored."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import commands
import dying
import foreigners
import memories
import memory
import pytest
from acceptance.recover_child import MOMENTS
from acceptance.test_mcp import TESTS, variables_in
from acceptance.test_mcp import server as server  # noqa: PLC0414 - a fixture
from foreigners import UUID
from fresh_environment import Environment, attempt, run

from syncer.cli.recover import Wish, recover
from syncer.errors import ExitCode

CHILD = "recover_child.py"
LONG = {"nothing done", "token pending", "before own points", "state knows", "last token left"}


def as_parameter(moment: str) -> object:
    """Return a moment as a parameter; some are close to others, and left to the long tests."""
    return pytest.param(moment, marks=[pytest.mark.long] if moment in LONG else [])


FOREIGN: foreigners.Payloads = {
    UUID: {"document": "one that is foreign and longer", "metadata": {"agent": "m"}},
    3: {"document": "on the id of a row"},
    5: {"document": "on the id of the next row"},
    9: {"no": "text"},
}
TEXTS = [
    "one",
    "one that is foreign and longer",
    "on the id of a row",
    "on the id of the next row",
    "three",
    "two",
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with foreign points in its collection; one of them has the id of a row."""
    folder = tmp_path_factory.mktemp("base")
    settings = memory.settings_for(folder)
    path = memory.make_memory(folder, ["one", "two"])
    memory.sync_memory(settings)
    foreigners.put(settings, FOREIGN)
    sql = "INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', 'three')"
    memory.execute(path, sql)
    memory.sync_memory(settings)
    return folder


def texts_in(folder: Path) -> tuple[list[str], list[str]]:
    """Return the texts in the table and in the collection, the one without any left out."""
    found = memory.points_in(memory.settings_for(folder)).values()
    held = [p["document"] for p, _ in found if "document" in p]  # type: ignore[index,operator]
    return foreigners.texts(folder / "memory.db"), sorted(held)


def all_texts(folder: Path) -> set[str]:
    table, collection = texts_in(folder)
    return set(table) | set(collection)


@pytest.mark.rule("CT-21")
@pytest.mark.parametrize("moment", [as_parameter(moment) for moment in MOMENTS])
def test_killed_at_any_moment_nothing_is_lost_and_nothing_comes_home_twice(
    base: Path, tmp_path: Path, moment: str
) -> None:
    folder = tmp_path / "memory"
    dying.left_behind(CHILD, base, folder, moment)
    assert all_texts(folder) == set(TEXTS)

    settings = memory.settings_for(folder)
    assert recover(settings, Wish()) is ExitCode.QUARANTINED  # one has no text
    assert texts_in(folder) == (sorted(TEXTS), sorted(TEXTS))
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        records = connection.execute("SELECT point, row_id FROM audit_recovered").fetchall()
    assert {json.loads(point) for point, _ in records} == {UUID, 3, 5}
    assert len(records) == 3
    before = memory.points_in(settings)
    assert recover(settings, Wish()) is ExitCode.QUARANTINED
    assert memory.points_in(settings) == before


def test_the_child_that_is_not_killed_ends_by_itself(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    shutil.copytree(base, folder)
    assert dying.child(CHILD, folder, "never").returncode == ExitCode.QUARANTINED
    assert texts_in(folder) == (sorted(TEXTS), sorted(TEXTS))


def test_without_a_terminal_nothing_is_deleted_unless_the_command_says_yes(tmp_path: Path) -> None:
    folder = memories.in_sync(tmp_path / "m")
    foreigners.put(memories.settings_of(folder), {9: {"no": "text"}})
    refused = commands.run("recover", "--delete-foreign", cwd=folder)
    assert (refused.code, refused.out) == (2, "")
    assert "--yes" in refused.err
    assert 9 in memory.points_in(memories.settings_of(folder))
    done = commands.run("recover", "--delete-foreign", "--yes", cwd=folder)
    assert done.code == 0, done.err
    assert 9 not in memory.points_in(memories.settings_of(folder))


MINE = {
    "Carla moved the weekly review to Thursday at ten.": {"agent": "planner", "scope": "office"},
    "The spare key of the archive hangs behind the printer.": None,
    "Dmitri prefers invoices as PDF, never on paper.": {"source": "mail", "customer": 17},
}


@pytest.fixture
def stored(server: Environment, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A memory into whose collection mcp-server-qdrant has stored three memories of its own."""
    variables = {**variables_in(tmp_path), "QDRANT_LOCAL_PATH": str(tmp_path / "qdrant")}
    memory.make_memory(tmp_path, ["The lift is out of order until Monday."])
    syncer("once", folder=tmp_path, variables=variables)
    store, wrapper = TESTS / "mcp_store.py", TESTS / "mcp_server_wrapper.py"
    command = map(str, (server.python, store, wrapper, json.dumps(MINE)))
    run(*command, cwd=tmp_path, variables=variables)
    return tmp_path, variables


def syncer(*arguments: str, folder: Path, variables: dict[str, str]) -> str:
    words = (sys.executable, "-m", "syncer", *arguments)
    return run(*words, cwd=folder, variables=variables).stdout


@pytest.mark.timeout(600)  # seconds; the first run installs the MCP server
@pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="mcp-server-qdrant 0.8.1 wants pydantic < 2.12, which has no wheel for Python 3.14",
)
def test_what_the_official_mcp_server_stored_past_sqlite_comes_home_and_stays(
    stored: tuple[Path, dict[str, str]],
) -> None:
    folder, variables = stored
    listed = syncer("recover", "--dry-run", "--json", folder=folder, variables=variables)
    assert json.loads(listed.splitlines()[-1])["foreign"]["found"] == len(MINE)

    assert foreign_by_verify(folder, variables) == len(MINE)
    syncer("recover", folder=folder, variables=variables)
    table = folder / "memory.db"
    columns = "content, agent, scope, source, metadata"
    found = foreigners.rows(table, f"SELECT {columns} FROM memory_events")
    by_text = {text: rest for text, *rest in found}
    assert len(found) == len(by_text) == len(MINE) + 1
    assert by_text.keys() > MINE.keys()
    first, second, third = MINE
    assert by_text[first][:2] == ["planner", "office"]
    assert by_text[second][2] == "recovered"
    assert by_text[third][2] == "mail"
    assert json.loads(by_text[third][3])["customer"] == 17

    again = syncer("recover", "--json", folder=folder, variables=variables)
    assert not any(json.loads(again)["foreign"].values())
    assert len(foreigners.rows(table)) == len(MINE) + 1
    assert foreign_by_verify(folder, variables) == 0
    answers(folder, variables)
    syncer("rebuild", folder=folder, variables=variables)
    answers(folder, variables)


def answers(folder: Path, variables: dict[str, str]) -> None:
    """See that searches find what was brought home, as rows."""
    hits = json.loads(
        syncer("search", "Where is the key?", "--json", folder=folder, variables=variables)
    )
    assert "archive" in hits[0]["document"]
    assert hits[0]["row"]


def foreign_by_verify(folder: Path, variables: dict[str, str]) -> int:
    """Return how many foreign points a comparison of both stores finds, and nothing else."""
    words = (sys.executable, "-m", "syncer", "verify", "--json")
    done = attempt(*words, cwd=folder, variables=variables)
    drift = json.loads(done.stdout)["drift"]
    assert done.returncode == (3 if drift["foreign"] else 0), done.stdout
    assert {kind for kind, number in drift.items() if number} <= {"foreign"}
    return int(drift["foreign"])
