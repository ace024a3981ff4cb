"""Tables that are joined: which of their writes are logged, and as changes of which row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from syncer import changelog
from syncer.errors import SettingsError
from syncer.migrate import init_database
from syncer.table import Joined, TableSpec, quote

SCHEMA = """
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL);
CREATE TABLE memory_tags (
    memory_id INTEGER NOT NULL, tag TEXT NOT NULL, seen INTEGER, PRIMARY KEY (memory_id, tag)
);
INSERT INTO memories (content) VALUES ('one'), ('two');
INSERT INTO memory_tags VALUES (1, 'a', 0), (1, 'b', 0), (2, 'a', 0);
"""
TAGS = Joined("tags", "memory_tags", ("memory_id",), "tag")
SPEC = TableSpec("memories", joined=(TAGS,))


class Database:
    """A database with one attached table, and what was logged since the last look."""

    def __init__(self, recursive: str) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute(f"PRAGMA recursive_triggers = {recursive}")
        self.spec = SPEC

    def attach(self, sql: str = SCHEMA, spec: TableSpec = SPEC) -> None:
        """Make the tables and attach them."""
        self.connection.executescript(sql)
        self.spec = spec
        assert changelog.attach(self.connection, spec)
        assert changelog.find_faults(self.connection, spec) == {}

    def run(self, sql: str, values: Sequence[object] = ()) -> set[object]:
        """Run one statement and return the keys that it logged."""
        self.connection.execute(sql, values)
        log, names = quote(self.spec.changes), ", ".join(map(quote, self.spec.log_key))
        found = self.connection.execute(f"SELECT {names} FROM {log}").fetchall()
        self.connection.execute(f"DELETE FROM {log}")
        return {row[0] if len(row) == 1 else row for row in found}

    def schema(self) -> list[tuple[object, ...]]:
        """Return sqlite_master as it is."""
        return self.connection.execute(
            "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master "
            "WHERE name <> 'sqlite_sequence' ORDER BY rowid"
        ).fetchall()

    def triggers(self, table: str) -> int:
        """Return how many triggers there are on a table."""
        sql = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?"
        return int(self.connection.execute(sql, (table,)).fetchone()[0])


@pytest.fixture(params=["ON", "OFF"], ids=["recursive_triggers", "plain"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    made = Database(request.param)
    with closing(made.connection):
        yield made


def test_every_write_to_a_list_is_logged_as_a_change_of_its_row(db: Database) -> None:
    db.attach()
    assert db.run("INSERT INTO memory_tags VALUES (2, 'b', 0)") == {2}
    assert db.run("UPDATE memory_tags SET tag = 'c' WHERE tag = 'b'") == {1, 2}
    assert db.run("DELETE FROM memory_tags WHERE memory_id = 1 AND tag = 'c'") == {1}
    assert db.run("UPDATE OR REPLACE memory_tags SET memory_id = 2 WHERE memory_id = 1") == {1, 2}
    assert db.run("UPDATE OR REPLACE memory_tags SET tag = 'A'") == {2}


def test_a_write_that_changes_no_list_logs_nothing(db: Database) -> None:
    db.attach()
    assert db.run("UPDATE memory_tags SET seen = seen + 1") == set()
    assert db.run("UPDATE memory_tags SET tag = tag, memory_id = memory_id") == set()
    assert db.run("UPDATE OR REPLACE memory_tags SET seen = 5, tag = tag") == set()
    assert db.run("INSERT OR IGNORE INTO memory_tags VALUES (1, 'a', 9)") == set()


def test_what_decides_the_order_alone_counts_too(db: Database) -> None:
    db.attach(spec=replace(SPEC, joined=(replace(TAGS, order="seen DESC"),)))
    assert db.run("UPDATE memory_tags SET seen = 1 WHERE memory_id = 1 AND tag = 'b'") == {1}


def test_an_entry_that_replace_takes_from_the_same_or_another_list_is_logged(db: Database) -> None:
    sql = SCHEMA + "ALTER TABLE memory_tags ADD COLUMN slot INTEGER;"
    sql += "UPDATE memory_tags SET slot = rowid; CREATE UNIQUE INDEX slots ON memory_tags (slot);"
    db.attach(sql)
    assert db.run("UPDATE OR REPLACE memory_tags SET slot = 2 WHERE slot = 1") == {1}
    assert db.run("INSERT OR REPLACE INTO memory_tags VALUES (1, 'c', 0, 3)") == {1, 2}
    assert db.run("SELECT 1") == set()


def test_an_entry_that_replace_takes_away_by_the_rowid_is_logged(db: Database) -> None:
    db.attach()
    assert db.run("UPDATE OR REPLACE memory_tags SET rowid = 2 WHERE rowid = 1") == {1}
    assert db.run("UPDATE OR REPLACE memory_tags SET rowid = 3 WHERE rowid = 2") == {1, 2}


def test_a_row_that_goes_with_its_entries_is_logged(db: Database) -> None:
    tags = "memory_id INTEGER REFERENCES memories (id) ON DELETE CASCADE"
    db.attach(SCHEMA.replace("memory_id INTEGER NOT NULL", tags))
    db.connection.execute("PRAGMA foreign_keys = ON")
    assert db.run("DELETE FROM memories WHERE id = 1") == {1}
    assert db.connection.execute("SELECT count(*) FROM memory_tags").fetchone() == (1,)


def test_an_entry_that_belongs_to_no_row_is_no_hindrance(db: Database, tmp_path: Path) -> None:
    db.attach(SCHEMA.replace("memory_id INTEGER NOT NULL", "memory_id INTEGER"))
    assert db.run("INSERT INTO memory_tags VALUES (NULL, 'x', 0)") == set()
    assert db.run("UPDATE memory_tags SET memory_id = NULL WHERE memory_id = 2") == {2}
    assert db.run("DELETE FROM memory_tags WHERE memory_id IS NULL") == set()
    init_database(tmp_path / "memory.db")
    spec = TableSpec("memory_events", joined=(replace(TAGS, table="tags"),))
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE tags (memory_id INTEGER, tag TEXT)")
        changelog.attach_joined(connection, spec)
        connection.execute("INSERT INTO tags VALUES (NULL, 'x')")  # the log's id is NOT NULL
        connection.execute("INSERT OR REPLACE INTO tags (rowid, memory_id) VALUES (1, 7)")


def test_keys_that_are_equal_and_not_the_same_lead_to_the_row(db: Database) -> None:
    db.attach(
        "CREATE TABLE m (k TEXT COLLATE NOCASE PRIMARY KEY, content);"
        "CREATE TABLE tags (of TEXT, no INTEGER, tag);"
        "INSERT INTO m VALUES ('Ann', 'one'), ('07', 'two');",
        TableSpec(
            "m",
            key=("k",),
            joined=(Joined("a", "tags", ("of",), "tag"), Joined("b", "tags", ("no",), "tag")),
        ),
    )
    assert db.run("INSERT INTO tags VALUES ('ANN', 7, 'x')") == {"Ann", "07"}
    assert db.run("UPDATE tags SET of = 'ann'") == {"Ann"}
    assert db.run("UPDATE tags SET no = 8") == {"07"}
    assert db.run("DELETE FROM tags") == {"Ann"}


def test_composite_keys_and_odd_names_work(db: Database) -> None:
    db.attach(
        'CREATE TABLE "the ""m""" (a TEXT, b INTEGER, content, PRIMARY KEY (a, b)) WITHOUT ROWID;'
        'CREATE TABLE "new" ("of a" TEXT, "or" INTEGER, "the tag" TEXT);'
        'INSERT INTO "the ""m""" VALUES (\'x\', 1, \'one\');',
        TableSpec(
            'the "m"',
            key=("a", "b"),
            joined=(Joined("étiquettes", "new", ("of a", "or"), ("the tag",)),),
        ),
    )
    assert db.run("INSERT INTO new VALUES ('x', 1, 't')") == {("x", 1)}
    assert db.run("UPDATE new SET \"the tag\" = 'T'") == {("x", 1)}


def test_the_application_may_make_either_table_anew(db: Database) -> None:
    """A trigger that named the source's table would let the RENAME fail."""
    db.attach()
    db.connection.executescript(
        "BEGIN; CREATE TABLE new (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT, more);"
        "INSERT INTO new (id, content) SELECT id, content FROM memories; DROP TABLE memories;"
        "ALTER TABLE new RENAME TO memories; COMMIT"
    )
    assert {name.count("joined") for name in changelog.find_faults(db.connection, SPEC)} == {0}
    changelog.attach(db.connection, SPEC)
    db.connection.executescript(
        "BEGIN; CREATE TABLE new (memory_id INTEGER, tag TEXT);"
        "INSERT INTO new SELECT memory_id, tag FROM memory_tags; DROP TABLE memory_tags;"
        "ALTER TABLE new RENAME TO memory_tags; COMMIT"
    )
    faults = changelog.find_faults(db.connection, SPEC)
    assert set(faults.values()) == {"missing"}
    assert {"joined.tags." in name for name in faults} == {True}
    changelog.attach(db.connection, SPEC)
    assert db.run("DELETE FROM memory_tags WHERE memory_id = 2") == {2}


def test_two_lists_may_come_from_one_table_and_one_from_the_table_itself(db: Database) -> None:
    spec = TableSpec(
        "notes",
        content="title",
        joined=(
            Joined("replies", "notes", ("parent",), "title"),
            Joined("insert", "marks", ("note",), "mark"),
            Joined("Update", "marks", ("of",), "mark"),
        ),
    )
    db.attach(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, parent INTEGER, title);"
        "CREATE TABLE marks (note INTEGER, of INTEGER, mark);",
        spec,
    )
    assert db.run("INSERT INTO notes VALUES (1, NULL, 'a'), (2, 1, 'b')") == {1, 2}
    assert db.run("UPDATE notes SET title = 'c' WHERE id = 2") == {1, 2}
    assert db.run("UPDATE notes SET parent = 2 WHERE id = 2") == {1, 2}
    assert db.run("INSERT INTO marks VALUES (1, 2, 'm')") == {1, 2}
    assert db.run("UPDATE marks SET of = 1") == {1, 2}
    assert db.run("DELETE FROM notes WHERE id = 2") == {2}


def test_what_is_taken_out_leaves_the_schema_as_it_was(db: Database) -> None:
    db.connection.executescript(SCHEMA)
    before = db.schema()
    changelog.attach(db.connection, SPEC)
    assert changelog.attach(db.connection, SPEC) == []
    for statement in changelog.detaching(db.connection, SPEC):
        db.connection.execute(statement)
    assert db.schema() == before


def test_triggers_on_a_table_that_is_not_joined_any_more_are_left_over_and_go(db: Database) -> None:
    db.attach()
    alone = TableSpec("memories")
    assert db.triggers("memory_tags") > 0
    assert set(changelog.find_faults(db.connection, alone).values()) == {"left over"}
    changelog.attach(db.connection, alone)
    assert db.triggers("memory_tags") == 0
    assert db.run("DELETE FROM memory_tags") == set()


def test_the_triggers_of_another_log_on_the_same_table_are_left_alone(db: Database) -> None:
    db.attach()
    tags = TableSpec("memory_tags", key=("memory_id", "tag"), content="tag")
    more = TableSpec(
        "memory_tags_more", joined=(Joined("x", "memory_tags", ("memory_id",), "tag"),)
    )
    db.connection.execute("CREATE TABLE memory_tags_more (id INTEGER PRIMARY KEY, content)")
    for spec in (tags, more):
        changelog.attach(db.connection, spec)
    for spec in (SPEC, tags, more):
        assert changelog.find_faults(db.connection, spec) == {}
    for statement in changelog.detaching(db.connection, tags):
        db.connection.execute(statement)
    for spec in (SPEC, more):
        assert changelog.find_faults(db.connection, spec) == {}
    assert db.run("DELETE FROM memory_tags WHERE memory_id = 1") == {1}


def test_an_altered_trigger_is_named_and_put_back(db: Database) -> None:
    db.attach()
    name = "syncer_changes_memories_joined.tags.insert"
    db.connection.execute(f'DROP TRIGGER "{name}"')
    db.connection.execute(
        f'CREATE TRIGGER "{name}" AFTER INSERT ON memory_tags BEGIN SELECT 1; END'
    )
    assert changelog.find_faults(db.connection, SPEC) == {name: "altered"}
    changelog.attach(db.connection, SPEC)
    assert db.run("INSERT INTO memory_tags VALUES (1, 'z', 0)") == {1}


@pytest.mark.parametrize(
    ("joined", "words"),
    [
        (replace(TAGS, table="memory_tag"), ["no table memory_tag (did you mean memory_tags?)"]),
        (
            replace(TAGS, key=("memory",), value="tga", order="sen"),
            [
                "joined[tags].key) (did you mean memory_id?)",
                "no column tga (source.joined[tags].value) (did you mean tag?)",
                "no column sen (source.joined[tags].order) (did you mean seen?)",
            ],
        ),
        (replace(TAGS, value=("tag", "wight")), ["no column wight (source.joined[tags].value)"]),
        (replace(TAGS, value="upper(tag"), ["source.joined[tags].value is no SQL expression"]),
        (replace(TAGS, order="rowid DESC"), ["joined[tags].order is no SQL expression"]),
        (replace(TAGS, order="tag LIMIT 1"), ["source.joined[tags].order is no SQL expression"]),
        (replace(TAGS, value='lower("tga")'), ["no column tga (source.joined[tags].value)"]),
        (replace(TAGS, value="(SELECT content FROM memories)"), ["reads memories"]),
        (replace(TAGS, order="(SELECT count(*) FROM memories)"), ["reads memories"]),
        (replace(TAGS, table="shown"), ["shown is a view", "source.joined[tags]"]),
        (replace(TAGS, table="found", key=("tag",)), ["found is a virtual table"]),
        (replace(TAGS, name="Content"), ["has the name of a column in source.metadata"]),
    ],
)
def test_what_cannot_be_watched_is_refused_before_anything_is_changed(
    db: Database, joined: Joined, words: list[str]
) -> None:
    db.connection.executescript(
        SCHEMA + "CREATE VIEW shown AS SELECT * FROM memory_tags;"
        "CREATE VIRTUAL TABLE found USING fts5(tag);"
    )
    before = db.schema()
    with pytest.raises(SettingsError) as caught:
        changelog.attach(
            db.connection, TableSpec("memories", content="id", metadata=("*",), joined=(joined,))
        )
    for word in words:
        assert word in str(caught.value)
    assert db.schema() == before


def test_the_triggers_know_nothing_that_old_builds_of_sqlite_do_not() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        for one in changelog.plan(connection, SPEC):
            words = one.sql.upper()
            assert all(new not in words for new in ("UPSERT", "JSON", "WITH ", "OVER (", "->"))
