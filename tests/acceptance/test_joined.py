"""Tags in a table of their own, as one of the texts has them that the project began with."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import memory
import pytest
from commands import Outcome, run

from syncer.settings import Settings, load

EXAMPLE = Path(__file__).parents[2] / "examples" / "shared_memories.toml"
HASH = ("--set", "embed.provider=hash")
SCHEMA = """
CREATE TABLE IF NOT EXISTS memories (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id    TEXT NOT NULL,
    session_id  TEXT,
    content     TEXT NOT NULL,
    content_type TEXT DEFAULT 'text',
    importance  INTEGER DEFAULT 1,
    created_at  DATETIME DEFAULT (datetime('now')),
    updated_at  DATETIME DEFAULT (datetime('now')),
    metadata    TEXT DEFAULT '{}'
);
CREATE VIRTUAL TABLE IF NOT EXISTS memories_fts
USING fts5(content, content_type, tokenize='unicode61');
CREATE TABLE IF NOT EXISTS memory_vectors (
    id          INTEGER PRIMARY KEY,
    vector      BLOB NOT NULL,
    model_name  TEXT DEFAULT 'all-MiniLM-L6-v2'
);
CREATE TABLE IF NOT EXISTS memory_tags (
    memory_id   INTEGER NOT NULL,
    tag         TEXT NOT NULL,
    PRIMARY KEY (memory_id, tag)
);
CREATE INDEX IF NOT EXISTS idx_tag ON memory_tags(tag);
INSERT INTO memories (agent_id, session_id, content, created_at, metadata) VALUES
    ('codex', 's1', 'use uv, not pip', '2026-07-27 09:00:00', '{"repo": "a"}'),
    ('planner', NULL, 'tests first', '2026-07-27 09:00:01', '{}');
INSERT INTO memory_tags VALUES (1, 'python'), (1, 'build');
"""


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Memories, attached and synced."""
    folder = tmp_path_factory.mktemp("shared")
    with closing(memory.write(folder / "memory.db")) as connection:
        connection.executescript(SCHEMA)
    shutil.copy(EXAMPLE, folder / "syncer.toml")
    for command in (("attach",), ("once", *HASH)):
        done = run(*command, cwd=folder)
        assert done.code == 0, done.err
        assert "warning" not in done.out + done.err
    return folder


@pytest.fixture
def folder(synced: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "memory"
    shutil.copytree(synced, copy)
    return copy


def change(folder: Path, *statements: str) -> None:
    for sql in statements:
        memory.execute(folder / "memory.db", sql)


def settings_in(folder: Path) -> Settings:
    options = {"embed.provider": "hash"}
    return load(folder / "syncer.toml", environ={}, options=options)


def after(folder: Path, *statements: str) -> tuple[int, int, int]:
    """Change the tables and sync; return how many rows were embedded, described, deleted."""
    change(folder, *statements)
    found = memory.sync_memory(settings_in(folder))
    return found.embedded, found.payload_only, found.deleted


def once(folder: Path, *statements: str) -> Outcome:
    """Change the tables and sync by the command."""
    change(folder, *statements)
    return run("once", "--json", *HASH, cwd=folder)


def tags(folder: Path) -> dict[object, object]:
    """Return the tags of every point."""
    found = memory.points_in(settings_in(folder))
    return {key: payload["metadata"]["tags"] for key, (payload, _) in found.items()}  # type: ignore[index]


def test_a_memory_goes_along_with_its_tags_and_its_metadata(folder: Path) -> None:
    payload, _ = memory.points_in(settings_in(folder))[1]
    assert payload["document"] == "use uv, not pip"  # type: ignore[index]
    assert payload["metadata"] == {  # type: ignore[index]
        "agent_id": "codex",
        "session_id": "s1",
        "content_type": "text",
        "importance": 1,
        "created_at": "2026-07-27 09:00:00",
        "metadata": {"repo": "a"},
        "tags": ["build", "python"],
        "sqlite_id": 1,
    }
    assert tags(folder)[2] == []


def test_tags_that_come_change_or_go_arrive_without_any_embedding(folder: Path) -> None:
    """Rule CT-16."""
    assert after(folder, "INSERT INTO memory_tags VALUES (2, 'method')") == (0, 1, 0)
    assert tags(folder) == {1: ["build", "python"], 2: ["method"]}
    done = once(folder, "INSERT INTO memory_tags VALUES (2, 'tdd')")
    assert (done.code, json.loads(done.out)["payload_only"]) == (0, 1)
    assert tags(folder)[2] == ["method", "tdd"]
    assert after(folder, "DELETE FROM memory_tags WHERE tag = 'tdd'") == (0, 1, 0)
    assert after(folder, "UPDATE memory_tags SET tag = 'uv' WHERE tag = 'build'") == (0, 1, 0)
    assert tags(folder)[1] == ["python", "uv"]
    moved = "UPDATE OR REPLACE memory_tags SET memory_id = 2 WHERE tag = 'uv'"
    assert after(folder, moved) == (0, 2, 0)
    assert after(folder, "DELETE FROM memory_tags WHERE memory_id = 1") == (0, 1, 0)
    assert tags(folder) == {1: [], 2: ["method", "uv"]}


def test_a_memory_may_come_before_or_after_its_tags_and_go_with_them(folder: Path) -> None:
    new = "INSERT INTO memories (id, agent_id, content) VALUES (3, 'cline', 'a third')"
    assert after(folder, "INSERT INTO memory_tags VALUES (3, 'x')", new) == (1, 0, 0)
    assert tags(folder)[3] == ["x"]
    forget = ("DELETE FROM memory_tags WHERE memory_id = 3", "DELETE FROM memories WHERE id = 3")
    assert after(folder, *forget) == (0, 0, 1)
    assert set(tags(folder)) == {1, 2}


def test_writing_the_same_again_writes_nothing_to_the_index(folder: Path) -> None:
    same = "INSERT OR REPLACE INTO memory_tags SELECT memory_id, tag FROM memory_tags"
    assert after(folder, same) == (0, 0, 0)
    assert run("once", *HASH, cwd=folder).log[-1]["event"] == "nothing to do"
    twice = ("DELETE FROM memory_tags", "INSERT INTO memory_tags VALUES (1,'build'), (1,'python')")
    assert after(folder, *twice) == (0, 0, 0)
    change(folder, "UPDATE memories SET updated_at = datetime('now', '+1 day')")
    assert run("once", *HASH, cwd=folder).log[-1]["event"] == "nothing to do"


def test_a_memory_that_is_replaced_keeps_its_tags(folder: Path) -> None:
    sql = "INSERT OR REPLACE INTO memories (id, agent_id, content) VALUES (1, 'codex', 'use pipx')"
    assert after(folder, sql) == (1, 0, 0)
    assert tags(folder)[1] == ["build", "python"]


def test_tags_that_were_written_while_nobody_watched_are_found(folder: Path) -> None:
    """Rule CT-11."""
    change(
        folder,
        "CREATE TABLE new (memory_id INTEGER NOT NULL, tag TEXT NOT NULL, "
        "PRIMARY KEY (memory_id, tag))",
        "INSERT INTO new SELECT * FROM memory_tags",
        "DROP TABLE memory_tags",
        "ALTER TABLE new RENAME TO memory_tags",
        "INSERT INTO memory_tags VALUES (2, 'unseen')",
    )
    done = run("once", *HASH, cwd=folder)
    assert (done.code, "put back" in done.err) == (0, True)
    assert tags(folder)[2] == ["unseen"]
    assert after(folder, "DELETE FROM memory_tags WHERE memory_id = 2") == (0, 1, 0)


@pytest.mark.rule("SR-17")
def test_a_table_of_tags_that_goes_away_stops_the_sync_until_it_is_back(folder: Path) -> None:
    before = tags(folder)
    for away, back in (
        ("memory_tags RENAME TO aside", "aside RENAME TO memory_tags"),
        ("memory_tags RENAME COLUMN tag TO label", "memory_tags RENAME COLUMN label TO tag"),
    ):
        done = once(folder, f"ALTER TABLE {away}")
        assert (done.code, "source.joined[tags]" in done.err) == (4, True)
        assert tags(folder) == before
        assert once(folder, f"ALTER TABLE {back}").code == 0
        assert tags(folder) == before


def test_lists_that_are_joined_later_reach_every_row_without_embedding(folder: Path) -> None:
    more = '\n[[source.joined]]\nname = "n"\ntable = "memory_tags"\nkey = "memory_id"\n'
    text = (folder / "syncer.toml").read_text()
    (folder / "syncer.toml").write_text(text + more + 'value = ["tag"]\n')
    assert run("attach", cwd=folder).code == 0
    assert after(folder) == (0, 2, 0)
    (folder / "syncer.toml").write_text(text)
    assert run("attach", cwd=folder).code == 0
    assert after(folder) == (0, 2, 0)


def test_attach_shows_all_of_its_sql_and_detach_leaves_nothing(folder: Path) -> None:
    def schema(path: Path) -> list[object]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(
                "SELECT type, name, tbl_name, sql FROM sqlite_master "
                "WHERE name <> 'sqlite_sequence' ORDER BY 1, 2"
            ).fetchall()

    attached = schema(folder / "memory.db")
    assert run("detach", cwd=folder).code == 0
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        own = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    assert len(schema(folder / "memory.db")) == own - 1  # SQLite's own table is not counted
    shown = run("attach", "--dry-run", cwd=folder)
    with closing(memory.write(folder / "memory.db")) as connection:
        connection.executescript(shown.out)
    assert schema(folder / "memory.db") == attached
    assert "nothing to do" in run("attach", cwd=folder).out


def test_attach_and_doctor_warn_of_a_list_without_index(folder: Path) -> None:
    change(
        folder,
        "ALTER TABLE memory_tags RENAME TO aside",
        "CREATE TABLE memory_tags AS SELECT * FROM aside",
    )
    for command in ("attach", "doctor"):
        assert "CREATE INDEX … ON memory_tags (memory_id)" in run(command, *HASH, cwd=folder).out


def test_the_canonical_table_may_have_lists_too(tmp_path: Path) -> None:
    folder = tmp_path
    memory.make_memory(folder, ["one", "two"])
    change(folder, "CREATE TABLE tags (event INTEGER, tag TEXT, PRIMARY KEY (event, tag))")
    joined = '[[source.joined]]\nname = "tags"\ntable = "tags"\nkey = "event"\nvalue = "tag"\n'
    head = '[source]\ndatabase = "memory.db"\n'
    target = '[target]\ncollection = "shared_memories"\n'
    (folder / "syncer.toml").write_text(head + joined + target)
    refused = run("once", *HASH, cwd=folder)
    assert (refused.code, "syncer init" in refused.err) == (4, True)
    assert "joined.tags.insert" in run("init", cwd=folder).out
    assert after(folder) == (2, 0, 0)
    assert after(folder, "INSERT INTO tags VALUES (2, 'x')") == (0, 1, 0)
    assert tags(folder) == {1: [], 2: ["x"]}
    change(folder, 'DROP TRIGGER "syncer_changes_memory_events_joined.tags.delete"')
    done = run("once", *HASH, cwd=folder)
    assert (done.code, "joined.tags.delete" in done.err) == (0, True)
    (folder / "syncer.toml").write_text(head + target)
    assert run("init", "memory.db", cwd=folder).code == 0  # it knows of no settings
    assert after(folder) == (0, 2, 0)
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        left = connection.execute("SELECT name FROM sqlite_master WHERE tbl_name = 'tags'")
        assert not [name for (name,) in left if "syncer" in name]
