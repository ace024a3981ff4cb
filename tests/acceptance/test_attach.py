"""A table that somebody else made: attached, synced, changed in every way, and let go again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import commands
import memory
import pytest

from syncer import changelog
from syncer.cli import specs
from syncer.settings import Settings, load

TABLE = """
CREATE TABLE "the user's notes" (
    "of user" TEXT, "no" INTEGER, [a "title"] TEXT UNIQUE, body TEXT, extra JSON,
    last_access REAL,
    PRIMARY KEY ("of user", "no")
);
CREATE TABLE other (id INTEGER PRIMARY KEY, content TEXT);
CREATE TRIGGER own AFTER INSERT ON other BEGIN UPDATE other SET content = trim(content); END;
CREATE VIEW shown AS SELECT * FROM "the user's notes";
INSERT INTO other VALUES (1, 'kept');
"""
SETTINGS = r"""
[source]
database = "app.db"
table = "the user's notes"
key = ["of user", "no"]
content = '[a "title"] || char(10) || body'
metadata = ["*"]
[target]
path = "qdrant"
lock_wait = 0
[embed]
provider = "hash"
dimension = 8
[log]
format = "json"
"""
INSERT = """INSERT OR REPLACE INTO "the user's notes" VALUES (?, ?, ?, ?, ?, ?)"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with settings and an application's database."""
    (tmp_path / "syncer.toml").write_text(SETTINGS)
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection, connection:
        connection.executescript(TABLE)
    for no, name in enumerate(("one", "two", "three"), 1):
        write(tmp_path, INSERT, ("ann b", no, name, f"body {no}", '{"stars": 3}', 0.5))
    write(tmp_path, INSERT, ("bob", 1, "four", "body 4", None, 0.5))
    return tmp_path


def write(folder: Path, sql: str, values: tuple[object, ...] = ()) -> None:
    memory.execute(folder / "app.db", sql, values)


def settings_in(folder: Path) -> Settings:
    options = {"source.database": str(folder / "app.db"), "target.path": str(folder / "qdrant")}
    return load(folder / "syncer.toml", environ={}, options=options)


def expected(folder: Path) -> dict[str, tuple[str, object]]:
    """Return what the table says: document and metadata by key."""
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        rows = connection.execute("""SELECT * FROM "the user's notes" """).fetchall()
    found: dict[str, tuple[str, object]] = {}
    for user, no, title, body, extra, last in rows:
        key = json.dumps([user, no], separators=(",", ":"), ensure_ascii=False)
        metadata = {
            'a "title"': title,
            "body": body,
            "extra": None if extra is None else json.loads(extra),
            "last_access": last,
            "sqlite_id": key,
        }
        found[key] = (f"{title}\n{body}", metadata)
    return found


def indexed(folder: Path) -> dict[str, tuple[str, object]]:
    """Return what the collection says."""
    points = memory.points_in(settings_in(folder)).values()
    found = {}
    for payload, _ in points:
        assert isinstance(payload, dict)
        found[payload["_sync"]["row"]] = (payload["document"], payload["metadata"])
    return found


def once(folder: Path) -> None:
    """Sync as the command does, here in this process, and compare both stores."""
    memory.sync_memory(settings_in(folder))
    assert indexed(folder) == expected(folder)


def dump(folder: Path) -> list[str]:
    """Return the whole schema, and the rows of the application's tables."""
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        rows = connection.execute(
            "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master "
            "WHERE name <> 'sqlite_sequence' ORDER BY rowid"
        ).fetchall()
        for table in ("the user's notes", "other"):
            rows += connection.execute(f'SELECT rowid, * FROM "{table}"').fetchall()
    return [repr(row) for row in rows]


def test_the_collection_follows_an_attached_table_through_every_kind_of_change(
    folder: Path,
) -> None:
    """Rules CT-10, CT-14, CT-18, QT-07, SR-19, SE-07."""
    before = dump(folder)
    assert commands.run("attach", cwd=folder).code == 0
    done = commands.run("once", "--json", cwd=folder)
    assert (done.code, json.loads(done.out)["embedded"]) == (0, 4)
    assert indexed(folder) == expected(folder)
    write(folder, """UPDATE "the user's notes" SET body = 'new' WHERE "no" = 2""")
    write(folder, """DELETE FROM "the user's notes" WHERE "of user" = 'bob'""")
    once(folder)
    write(folder, INSERT, ("bob", 9, "one", "takes the title of another", "[1]", 1.0))
    once(folder)
    assert len(indexed(folder)) == 3
    write(folder, """UPDATE OR REPLACE "the user's notes" SET [a "title"] = 'two' WHERE no = 3""")
    once(folder)
    assert set(indexed(folder)) == {'["bob",9]', '["ann b",3]'}
    write(folder, """UPDATE "the user's notes" SET "of user" = 'BOB', no = -1 WHERE no = 9""")
    once(folder)
    write(folder, """UPDATE "the user's notes" SET extra = '{"stars": [1]}'""")
    once(folder)
    assert commands.run("once", cwd=folder).code == 0
    write(folder, """DELETE FROM "the user's notes" """)
    once(folder)
    for no, name in enumerate(("one", "two", "three"), 1):
        write(folder, INSERT, ("ann b", no, name, f"body {no}", '{"stars": 3}', 0.5))
    write(folder, INSERT, ("bob", 1, "four", "body 4", None, 0.5))
    once(folder)
    assert commands.run("detach", cwd=folder).code == 0
    assert dump(folder) == before


def test_attach_shows_its_sql_first_and_does_just_that(folder: Path) -> None:
    before = dump(folder)
    shown = commands.run("attach", "--dry-run", cwd=folder)
    assert shown.code == 0
    assert dump(folder) == before
    copy = folder / "copy"
    copy.mkdir()
    with (
        closing(sqlite3.connect(folder / "app.db")) as source,
        closing(sqlite3.connect(copy / "app.db", isolation_level=None)) as target,
    ):
        source.backup(target)
        target.executescript(shown.out)
    done = commands.run("attach", cwd=folder)
    assert done.code == 0
    assert "DROP COLUMN" in done.out
    assert dump(copy) == dump(folder)
    (copy / "syncer.toml").write_text(SETTINGS)
    for where in (folder, copy):
        assert "nothing to do" in commands.run("attach", cwd=where).out
        assert commands.run("attach", "--dry-run", cwd=where).out == "-- there is nothing to do\n"


def test_attach_and_detach_leave_the_journal_mode_and_the_rows_alone(folder: Path) -> None:
    """Rule SE-07."""
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    before = dump(folder)
    commands.run("attach", cwd=folder)
    assert [line for line in dump(folder) if "syncer" not in line] == before
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == (mode,)
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        sql = commands.run("detach", "--dry-run", cwd=folder).out
        assert commands.run("detach", "--dry-run", cwd=folder).out == sql
        connection.executescript(sql)
    assert dump(folder) == before
    done = commands.run("detach", cwd=folder)
    assert (done.code, "nothing to do" in done.out) == (0, True)


def test_detach_keeps_the_state_while_another_table_is_attached(folder: Path) -> None:
    commands.run("attach", cwd=folder)
    other = ("source.table=other", "source.key=id", "source.content=content", "source.metadata=")
    settings = tuple(
        part for each in (*other, "target.collection=second") for part in ("--set", each)
    )
    attached = commands.run("attach", *settings, cwd=folder)
    assert attached.code == 0, attached.err
    assert commands.run("once", *settings, cwd=folder).code == 0
    once(folder)
    done = commands.run("detach", cwd=folder)
    assert "left in Qdrant" in done.out
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        tables = connection.execute("SELECT source_table FROM syncer_generations").fetchall()
        assert tables == [("other",)]
    again = commands.run("once", *settings, cwd=folder)
    assert (again.code, "nothing to do" in again.err) == (0, True)
    assert commands.run("detach", *settings, cwd=folder).code == 0
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        left = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '%syncer%'")
        assert left.fetchall() == []


def test_a_table_that_is_not_attached_or_no_longer_whole_is_refused(folder: Path) -> None:
    """Rules CT-11, SR-14."""
    refused = commands.run("once", cwd=folder)
    assert (refused.code, "syncer attach" in refused.err) == (4, True)
    commands.run("attach", cwd=folder)
    once(folder)
    write(folder, """DROP TRIGGER "syncer_changes_the user's notes_delete" """)
    strict = ("--set", "source.repair_triggers=false")
    refused = commands.run("once", *strict, cwd=folder)
    assert refused.code == 4
    assert "syncer_changes_the user's notes_delete is missing" in refused.err
    assert "syncer attach" in refused.err
    commands.run("attach", cwd=folder)
    once(folder)
    write(folder, """CREATE UNIQUE INDEX later ON "the user's notes" (body)""")
    assert commands.run("once", *strict, cwd=folder).code == 4
    commands.run("attach", cwd=folder)
    once(folder)
    refused = commands.run("once", "--set", "source.content=body", cwd=folder)
    assert refused.code == 0, refused.err
    view = commands.run("attach", "--set", "source.table=shown", cwd=folder)
    assert (view.code, "is a view" in view.err, "updated_at" in view.err) == (2, True, True)


def test_a_unique_index_on_the_canonical_table_is_refused_until_init_was_run_again(
    tmp_path: Path,
) -> None:
    """Rule CT-10."""
    path = memory.make_memory(tmp_path, ["one", "two"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings)
    memory.execute(path, "CREATE UNIQUE INDEX mine ON memory_events (source, content)")
    arguments = ("--set", f"source.database={path}", "--set", f"target.path={tmp_path / 'qdrant'}")
    hash_provider = ("--set", "embed.provider=hash", "--set", "embed.dimension=8")
    strict = ("--set", "source.repair_triggers=false")
    refused = commands.run("once", *arguments, *hash_provider, *strict, cwd=tmp_path)
    assert (refused.code, "syncer init" in refused.err) == (4, True)
    assert "evict_insert" in commands.run("init", str(path), cwd=tmp_path).out
    memory.execute(
        path,
        "INSERT OR REPLACE INTO memory_events (agent, scope, source, content) "
        "VALUES ('a', 's', 'x', 'one')",
    )
    memory.sync_memory(settings)
    assert set(memory.points_in(settings)) == {2, 3}
    with closing(memory.write(path)) as connection:
        assert changelog.find_eviction_faults(connection, specs.table_spec(settings)) == {}


def test_rows_without_a_usable_key_are_quarantined_and_keep_nothing_from_the_others(
    tmp_path: Path,
) -> None:
    """Rule SR-16."""
    memory.execute(tmp_path / "app.db", "CREATE TABLE n (k PRIMARY KEY, content)")
    for key in (None, None, 1.5, "a", b"a", 7, -7):
        memory.execute(tmp_path / "app.db", "INSERT INTO n VALUES (?, 'text')", (key,))
    database = f"source.database={tmp_path / 'app.db'}"
    for options in (("attach",), ("once", "--json"), ("once", "--json")):
        done = commands.run(
            *options,
            *("--set", database, "--set", "source.table=n", "--set", "source.key=k"),
            *("--set", f"target.path={tmp_path / 'qdrant'}", "--set", "embed.provider=hash"),
            cwd=tmp_path,
        )
        if options == ("attach",):
            assert done.code == 0, done.err
    assert json.loads(done.out)["caught_up"]
    given = {"target.path": str(tmp_path / "qdrant"), "source.database": str(tmp_path / "app.db")}
    points = memory.points_in(load(None, environ={}, options=given)).values()
    assert {payload["_sync"]["row"] for payload, _ in points} == {  # type: ignore[index]
        '"a"',
        '{"blob":"YQ=="}',
        "7",
        "-7",
    }
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        rows = connection.execute("SELECT row, reason FROM syncer_quarantine ORDER BY row")
        assert rows.fetchall() == [("1.5", "key_type"), ("null", "key_type")]
