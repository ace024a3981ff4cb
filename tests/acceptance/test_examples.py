"""The settings in examples/ do their work on the schemas that they are made for."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import memory
from commands import Outcome, run

EXAMPLES = Path(__file__).parents[2] / "examples"
HASH = ("--set", "embed.provider=hash")

MEMORY_EVENTS = """
CREATE TABLE memory_events (
    id         INTEGER PRIMARY KEY,
    scope      TEXT NOT NULL,
    source     TEXT NOT NULL,
    content    TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', 'one'), ('s', 'x', 'two');
"""

MEMORIES = """
CREATE TABLE memories (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id       TEXT NOT NULL,
    memory_type   TEXT NOT NULL DEFAULT 'fact',
    content       TEXT NOT NULL,
    content_token TEXT NOT NULL,
    importance    REAL DEFAULT 0.5,
    created_at    REAL NOT NULL,
    last_access   REAL NOT NULL,
    access_count  INTEGER DEFAULT 0,
    metadata      TEXT DEFAULT '{}'
);
INSERT INTO memories (user_id, content, content_token, created_at, last_access, metadata)
VALUES ('u', 'no sugar', 'no sugar', 1760000000.5, 1760000000.5, '{"session": 7}'),
       ('u', 'a dog', 'a dog', 1760000001.5, 1760000001.5, '{}');
"""


def prepared(folder: Path, example: str, schema: str) -> None:
    """Make the database, attach its table and sync it."""
    with closing(memory.write(folder / "memory.db")) as connection:
        connection.executescript(schema)
    shutil.copy(EXAMPLES / example, folder / "syncer.toml")
    for command in ("attach", "once"):
        done = run(command, *(HASH if command == "once" else ()), cwd=folder)
        assert done.code == 0, done.err


def after(folder: Path, sql: str) -> Outcome:
    """Change the table and sync."""
    memory.execute(folder / "memory.db", sql)
    return run("once", *HASH, cwd=folder)


def points(folder: Path, alias: str) -> memory.Points:
    settings = memory.settings_for(folder, **{"target.collection": alias})
    return memory.points_in(settings)


def test_the_table_that_the_project_began_with(tmp_path: Path) -> None:
    prepared(tmp_path, "memory_events.toml", MEMORY_EVENTS)
    assert after(tmp_path, "UPDATE memory_events SET content = 'uno' WHERE id = 1").code == 0
    assert after(tmp_path, "DELETE FROM memory_events WHERE id = 2").code == 0
    found = points(tmp_path, "memory_demo")
    assert {key: payload["document"] for key, (payload, _) in found.items()} == {1: "uno"}  # type: ignore[index]


def test_an_assistant_s_memories_cost_nothing_when_they_are_recalled(tmp_path: Path) -> None:
    prepared(tmp_path, "assistant_memories.toml", MEMORIES)
    payload, _ = points(tmp_path, "memories")[1]
    assert payload["metadata"] == {  # type: ignore[index]
        "user_id": "u",
        "memory_type": "fact",
        "importance": 0.5,
        "created_at": 1760000000.5,
        "metadata": {"session": 7},
        "sqlite_id": 1,
    }
    recall = "UPDATE memories SET last_access = last_access + 1, access_count = access_count + 1"
    assert after(tmp_path, recall).log[-1]["event"] == "nothing to do"
    forget = "DELETE FROM memories WHERE last_access < 1e12 AND importance < 0.6 AND id = 1"
    assert after(tmp_path, forget).log[-1]["deleted"] == 1
    assert set(points(tmp_path, "memories")) == {2}
