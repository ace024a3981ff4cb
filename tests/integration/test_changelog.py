"""The change log of a table that somebody else made: which writes leave which entries."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from syncer import changelog
from syncer.changelog import statements
from syncer.errors import SchemaError, SettingsError
from syncer.table import TableSpec, quote

NOTES = "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT, last_access REAL);"
SPEC = TableSpec("notes", content="title || char(10) || body")


class Database:
    """A database with one attached table, and what was logged since the last look."""

    def __init__(self, recursive: str) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute(f"PRAGMA recursive_triggers = {recursive}")
        self.spec = SPEC

    def attach(self, sql: str, spec: TableSpec) -> None:
        """Make a table and attach it."""
        self.connection.executescript(sql)
        self.spec = spec
        assert changelog.attach(self.connection, spec)
        assert changelog.find_faults(self.connection, spec) == {}

    def run(self, sql: str, values: Sequence[object] = ()) -> set[tuple[object, ...]]:
        """Run one statement and return the keys that it logged."""
        self.connection.execute(sql, values)
        return self.logged()

    def logged(self) -> set[tuple[object, ...]]:
        """Return the keys logged since the last look, and forget them."""
        log, names = quote(self.spec.changes), ", ".join(map(quote, self.spec.log_key))
        found = self.connection.execute(f"SELECT {names} FROM {log}").fetchall()
        self.connection.execute(f"DELETE FROM {log}")
        return set(found)

    def schema(self) -> list[tuple[object, ...]]:
        """Return sqlite_master as it is."""
        return self.connection.execute(
            "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master ORDER BY rowid"
        ).fetchall()


@pytest.fixture(params=["ON", "OFF"], ids=["recursive_triggers", "plain"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    made = Database(request.param)
    with closing(made.connection):
        yield made


def test_insert_update_and_delete_are_logged(db: Database) -> None:
    db.attach(NOTES, SPEC)
    assert db.run("INSERT INTO notes VALUES (1, 'a', 'b', 0), (2, 'c', 'd', 0)") == {(1,), (2,)}
    assert db.run("UPDATE notes SET body = 'e' WHERE id = 2") == {(2,)}
    assert db.run("DELETE FROM notes") == {(1,), (2,)}


def test_a_column_that_the_mapping_does_not_read_may_change_at_every_recall(db: Database) -> None:
    db.attach(NOTES + "CREATE UNIQUE INDEX titles ON notes (title);", SPEC)
    db.run("INSERT INTO notes VALUES (1, 'a', 'b', 0), (2, 'c', 'd', 0)")
    assert db.run("UPDATE notes SET last_access = 5") == set()
    assert db.run("UPDATE notes SET last_access = 6, title = title, body = body, id = id") == set()
    assert db.run("UPDATE OR REPLACE notes SET last_access = 7, title = title") == set()
    upsert = (
        "INSERT INTO notes VALUES (1, 'a', 'b', 0) ON CONFLICT (id) DO UPDATE SET last_access = 8"
    )
    assert db.run(upsert) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'a'", "'A'"),
        ("'a'", "'a '"),
        ("'a'", "x'61'"),
        ("1", "1.0"),
        ("1", "'1'"),
        ("'a'", "NULL"),
        ("NULL", "''"),
        ("'a'", "'a' || char(0)"),
    ],
)
@pytest.mark.parametrize("declared", ["", "COLLATE NOCASE", "COLLATE RTRIM"])
def test_values_are_compared_byte_by_byte_and_by_type(
    db: Database, declared: str, old: str, new: str
) -> None:
    db.attach(f"CREATE TABLE n (id INTEGER PRIMARY KEY, c {declared})", TableSpec("n", content="c"))
    db.run(f"INSERT INTO n VALUES (1, {old})")
    assert db.run(f"UPDATE n SET c = {new}") == {(1,)}
    assert db.run(f"UPDATE n SET c = {old}") == {(1,)}
    assert db.run(f"UPDATE n SET c = {old}") == set()


def test_a_changed_key_logs_both_keys_by_whatever_name_it_goes(db: Database) -> None:
    db.attach(NOTES, SPEC)
    db.run("INSERT INTO notes VALUES (1, 'a', 'b', 0)")
    assert db.run("UPDATE notes SET id = 2") == {(1,), (2,)}
    assert db.run("UPDATE notes SET rowid = 3") == {(2,), (3,)}
    assert db.run("UPDATE notes SET _rowid_ = 4, body = 'z'") == {(3,), (4,)}


def test_a_key_that_changes_its_case_logs_both_forms(db: Database) -> None:
    spec = TableSpec("n", key=("k",), content="c")
    db.attach("CREATE TABLE n (k TEXT COLLATE NOCASE PRIMARY KEY, c) WITHOUT ROWID", spec)
    db.run("INSERT INTO n VALUES ('a', 1)")
    assert db.run("UPDATE n SET k = 'A'") == {("a",), ("A",)}
    assert db.run("INSERT OR REPLACE INTO n VALUES ('a', 1)") == {("a",), ("A",)}


def test_a_replace_logs_the_row_that_another_unique_index_takes_away(db: Database) -> None:
    """Rule CT-10."""
    db.attach(NOTES + "CREATE UNIQUE INDEX titles ON notes (title);", SPEC)
    db.run("INSERT INTO notes VALUES (1, 'a', '', 0), (2, 'b', '', 0), (3, 'c', '', 0)")
    assert db.run("INSERT OR REPLACE INTO notes VALUES (4, 'a', '', 0)") == {(1,), (4,)}
    assert db.run("INSERT OR REPLACE INTO notes (title) VALUES ('a')") == {(4,), (5,)}
    assert db.run("UPDATE OR REPLACE notes SET title = 'b' WHERE id = 3") == {(2,), (3,)}
    assert db.run("REPLACE INTO notes VALUES (5, 'b', '', 0)") == {(3,), (5,)}


def test_a_row_that_has_the_number_of_a_rowid_to_come_is_logged_when_it_is_evicted(
    db: Database,
) -> None:
    db.attach(NOTES + "CREATE UNIQUE INDEX titles ON notes (title);", SPEC)
    db.run("INSERT INTO notes VALUES (-1, 'a', '', 0)")
    assert db.run("INSERT OR REPLACE INTO notes (title) VALUES ('a')") > {(-1,)}


def test_a_replace_by_the_rowid_logs_the_key_in_another_column(db: Database) -> None:
    spec = TableSpec("n", key=("k",), content="c")
    db.attach("CREATE TABLE n (id INTEGER PRIMARY KEY, k TEXT UNIQUE, c)", spec)
    db.run("INSERT INTO n VALUES (1, 'a', 1), (2, 'b', 1)")
    assert db.run("INSERT OR REPLACE INTO n VALUES (1, 'c', 1)") == {("a",), ("c",)}
    assert db.run("UPDATE OR REPLACE n SET id = 1 WHERE k = 'b'") == {("c",)}


@pytest.mark.parametrize("taken", [(), ("rowid",), ("rowid", "_rowid_")])
def test_a_hidden_rowid_is_found_even_if_columns_bear_its_names(
    db: Database, taken: tuple[str, ...]
) -> None:
    columns = "".join(f"{name} TEXT, " for name in taken)
    spec = TableSpec("n", key=("k",), content="c")
    db.attach(f"CREATE TABLE n ({columns}k TEXT PRIMARY KEY, c)", spec)
    db.run("INSERT INTO n (oid, k, c) VALUES (1, 'a', 1)")
    assert db.run("INSERT OR REPLACE INTO n (oid, k, c) VALUES (1, 'b', 1)") == {("a",), ("b",)}


def test_a_default_that_replace_puts_for_null_evicts_as_well(db: Database) -> None:
    sql = (
        "CREATE TABLE n (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL DEFAULT 'x', name TEXT, "
        "body, UNIQUE (tenant, name))"
    )
    db.attach(sql, TableSpec("n", content="body"))
    db.run("INSERT INTO n VALUES (1, 'x', 'a', ''), (2, 'y', 'a', ''), (3, 'x', 'b', '')")
    found = db.run("INSERT OR REPLACE INTO n VALUES (4, NULL, 'a', '')")
    assert {(1,), (4,)} <= found
    assert (3,) not in found
    assert {(3,)} <= db.run("UPDATE OR REPLACE n SET tenant = NULL, name = 'b' WHERE id = 4")


def test_partial_and_expression_indexes_evict_too(db: Database) -> None:
    sql = (
        NOTES + 'CREATE UNIQUE INDEX live ON notes (lower(title) DESC, "body" COLLATE NOCASE) '
        "/* only, (some) */ WHERE notes.last_access > 5 -- and no more"
    )
    db.attach(sql, SPEC)
    db.run("INSERT INTO notes VALUES (1, 'A', 'x', 9), (2, 'b', 'x', 9), (3, 'a', 'x', 1)")
    assert db.run("INSERT OR REPLACE INTO notes VALUES (4, 'a', 'X', 9)") == {(1,), (4,)}
    assert db.run("UPDATE OR REPLACE notes SET last_access = 6 WHERE id = 3") == {(4,)}


def test_an_index_whose_expression_depends_on_affinity_evicts_too(db: Database) -> None:
    sql = (
        "CREATE TABLE n (id INTEGER PRIMARY KEY, live INTEGER, name TEXT, body);"
        "CREATE UNIQUE INDEX u ON n (CASE WHEN live = '1' THEN name END);"
    )
    db.attach(sql, TableSpec("n", content="body"))
    db.run("INSERT INTO n VALUES (1, 1, 'a', ''), (2, 0, 'a', '')")
    assert db.run("INSERT OR REPLACE INTO n VALUES (3, 1, 'a', '')") == {(1,), (3,)}


@pytest.mark.parametrize("kind", ["VIRTUAL", "STORED"])
def test_generated_columns_are_followed_to_what_they_are_made_of(db: Database, kind: str) -> None:
    sql = (
        "CREATE TABLE n (id INTEGER PRIMARY KEY, a TEXT, b TEXT, last, "
        f"g AS (a || b) {kind}, h AS (g || '!') {kind});"
        "CREATE UNIQUE INDEX u ON n (h);"
    )
    db.attach(sql, TableSpec("n", content="h"))
    db.run("INSERT INTO n (id, a, b) VALUES (1, 'x', 'y'), (2, 'x', 'z')")
    assert db.run("UPDATE n SET b = 'w' WHERE id = 1") == {(1,)}
    assert db.run("UPDATE n SET a = 'xw', b = '' WHERE id = 1") == set()
    assert db.run("UPDATE n SET last = 1") == set()
    assert db.run("UPDATE OR REPLACE n SET a = 'x', b = 'z' WHERE id = 1") == {(1,), (2,)}
    db.run("INSERT INTO n (id, a, b) VALUES (2, 'x', 'q')")
    assert db.run("UPDATE OR REPLACE n SET b = 'z' WHERE id = 2") == {(1,), (2,)}


def test_a_row_that_a_before_trigger_of_the_application_pushes_into_the_way_is_logged(
    db: Database,
) -> None:
    own = (
        "CREATE UNIQUE INDEX slugs ON notes (last_access); CREATE TRIGGER own BEFORE INSERT "
        "ON notes BEGIN UPDATE notes SET last_access = NEW.last_access WHERE id = 1; END;"
    )
    db.attach(NOTES + own, SPEC)
    db.run("INSERT INTO notes VALUES (1, 'a', '', 1)")
    assert db.run("INSERT OR REPLACE INTO notes VALUES (2, 'b', '', 2)") >= {(1,), (2,)}
    assert db.connection.execute("SELECT id FROM notes").fetchall() == [(2,)]


def test_an_index_on_the_rowid_evicts_when_the_rowid_is_set(db: Database) -> None:
    sql = NOTES + "CREATE UNIQUE INDEX digits ON notes (id % 10);"
    db.attach(sql, SPEC)
    db.run("INSERT INTO notes VALUES (1, 'a', '', 0), (2, 'b', '', 0)")
    assert db.run("UPDATE OR REPLACE notes SET rowid = 12 WHERE id = 1") == {(1,), (2,), (12,)}


def test_a_constraint_that_always_replaces_is_seen(db: Database) -> None:
    sql = "CREATE TABLE n (id INTEGER PRIMARY KEY, u UNIQUE ON CONFLICT REPLACE, c)"
    db.attach(sql, TableSpec("n", content="c"))
    db.run("INSERT INTO n VALUES (1, 'a', 1)")
    assert db.run("INSERT INTO n VALUES (2, 'a', 1)") == {(1,), (2,)}


def test_in_a_column_without_a_type_1_and_1_0_are_two_keys_that_evict_each_other(
    db: Database,
) -> None:
    db.attach("CREATE TABLE n (k PRIMARY KEY, c)", TableSpec("n", key=("k",), content="c"))
    db.run("INSERT INTO n VALUES (1, 'a')")
    db.connection.execute("INSERT OR REPLACE INTO n VALUES (1.0, 'a')")
    kinds = db.connection.execute(f"SELECT typeof(k) FROM {db.spec.changes}").fetchall()
    assert set(kinds) == {("integer",), ("real",)}


def test_composite_keys_of_any_type_and_odd_names_are_logged_as_they_are(db: Database) -> None:
    sql = (
        'CREATE TABLE "or""der by" ("seq" TEXT, "changed_at" BLOB, "gröup" INT, "se""lect" TEXT, '
        'PRIMARY KEY ("seq", "changed_at", "gröup"))'
    )
    key = ("seq", "changed_at", "gröup")
    db.attach(sql, TableSpec('or"der by', key=key, content='"se""lect"'))
    insert = 'INSERT INTO "or""der by" VALUES (?, ?, ?, ?)'
    assert db.run(insert, ("a b", b"\0x", -5, "t")) == {("a b", b"\0x", -5)}
    assert db.run(insert, (None, None, 1.5, "t")) == {(None, None, 1.5)}
    assert db.run('UPDATE "or""der by" SET "se""lect" = 1 WHERE seq IS NULL') == {(None, None, 1.5)}


@pytest.mark.parametrize(
    "name", ["new", "old", "t", "NEW", "select", "a'b", "[x]", "sp ace", "日本"]
)
def test_any_name_will_do_for_a_table(db: Database, name: str) -> None:
    sql = (
        f"CREATE TABLE {quote(name)} (id INTEGER PRIMARY KEY, u UNIQUE, new, old, content);"
        f"CREATE UNIQUE INDEX i ON {quote(name)} (abs(new)) WHERE old > 1;"
    )
    db.attach(sql, TableSpec(name))
    db.run(f"INSERT INTO {quote(name)} VALUES (1, 'a', 1, 2, 'x'), (2, 'b', 2, 2, 'x')")
    found = db.run(f"INSERT OR REPLACE INTO {quote(name)} VALUES (3, 'a', -2, 2, 'x')")
    assert found == {(1,), (2,), (3,)}


def test_triggers_of_the_application_that_write_the_same_row_are_followed(db: Database) -> None:
    own = (
        "CREATE TRIGGER own AFTER INSERT ON notes BEGIN "
        "UPDATE notes SET id = NEW.id + 100, body = 'by trigger' WHERE id = NEW.id; END;"
    )
    db.attach(NOTES + own, SPEC)
    assert db.run("INSERT INTO notes VALUES (1, 'a', 'b', 0)") == {(1,), (101,)}


def test_rows_that_a_foreign_key_takes_along_are_logged(db: Database) -> None:
    sql = (
        "PRAGMA foreign_keys = ON; CREATE TABLE n (id INTEGER PRIMARY KEY, u UNIQUE, content, "
        "parent REFERENCES n (id) ON DELETE CASCADE ON UPDATE CASCADE);"
    )
    db.attach(sql, TableSpec("n", metadata=("parent",)))
    db.run("INSERT INTO n VALUES (1, 'a', '', NULL), (2, 'b', '', 1), (3, 'c', '', 2)")
    assert db.run("UPDATE n SET id = 9 WHERE id = 1") == {(1,), (9,), (2,)}
    assert db.run("INSERT OR REPLACE INTO n VALUES (5, 'a', '', NULL)") == {(9,), (2,), (3,), (5,)}


def test_what_is_rolled_back_or_fails_leaves_nothing(db: Database) -> None:
    db.attach(NOTES + "CREATE UNIQUE INDEX titles ON notes (title);", SPEC)
    db.run("INSERT INTO notes VALUES (1, 'a', 'b', 0)")
    db.connection.execute("BEGIN")
    db.connection.execute("INSERT OR REPLACE INTO notes VALUES (2, 'a', 'b', 0)")
    db.connection.execute("ROLLBACK")
    with pytest.raises(sqlite3.IntegrityError):
        db.connection.execute("INSERT INTO notes VALUES (2, 'a', 'b', 0)")
    assert db.logged() == set()


def test_the_application_sees_its_own_counts_and_ids(db: Database) -> None:
    db.attach(NOTES + "CREATE UNIQUE INDEX titles ON notes (title);", SPEC)
    cursor = db.connection.execute("INSERT OR REPLACE INTO notes VALUES (7, 'a', 'b', 0)")
    assert (cursor.lastrowid, cursor.rowcount) == (7, 1)
    cursor = db.connection.execute("UPDATE notes SET body = 'c'")
    assert cursor.rowcount == 1
    assert db.connection.execute("SELECT changes(), last_insert_rowid()").fetchone() == (1, 7)


def test_every_look_at_the_table_goes_by_an_index() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE n (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT '', b, c, content, "
            "UNIQUE (a, b));"
            "CREATE UNIQUE INDEX i ON n (b COLLATE NOCASE) WHERE c > 5;"
            "CREATE UNIQUE INDEX j ON n (CASE WHEN c = 1 THEN lower(b) END DESC);"
            "CREATE UNIQUE INDEX k ON n (a || b COLLATE NOCASE);"
        )
        found = changelog.plan(connection, TableSpec("n"))
        selects = [
            select
            for one in found
            for select in re.findall(r"SELECT \"n\"\..*?(?=; |$)", one.sql, re.DOTALL)
            if "evict_open" not in one.name
        ]
        assert len(selects) == 10
        for select in selects:
            bound = re.sub(r"(?:NEW|OLD)\.\"\w+\"", "?", select)
            plan = connection.execute(
                f"EXPLAIN QUERY PLAN {bound}", (None,) * bound.count("?")
            ).fetchall()
            assert any(step[3].startswith("SEARCH n USING") for step in plan), bound


def test_attach_again_does_nothing_and_takes_no_lock(db: Database) -> None:
    db.attach(NOTES, SPEC)
    db.run("INSERT INTO notes VALUES (1, 'a', 'b', 0)")
    db.connection.execute("INSERT INTO notes VALUES (2, 'a', 'b', 0)")
    db.connection.execute("PRAGMA query_only = ON")
    assert changelog.attach(db.connection, SPEC) == []
    db.connection.execute("PRAGMA query_only = OFF")
    assert db.logged() == {(2,)}


def test_a_changed_mapping_or_version_or_index_replaces_the_triggers_and_keeps_the_log(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.attach(NOTES, SPEC)
    db.connection.execute("INSERT INTO notes VALUES (1, 'a', 'b', 0)")
    other = TableSpec("notes", content="title", metadata=("last_access",))
    assert changelog.find_faults(db.connection, other) == {"syncer_changes_notes_update": "altered"}
    changelog.attach(db.connection, other)
    db.connection.execute("CREATE UNIQUE INDEX titles ON notes (title)")
    assert set(changelog.find_faults(db.connection, other).values()) == {"missing"}
    changelog.attach(db.connection, other)
    db.connection.execute("DROP INDEX titles")
    assert set(changelog.find_faults(db.connection, other).values()) == {"left over"}
    changelog.attach(db.connection, other)
    monkeypatch.setattr(statements, "VERSION", 99)
    assert len(changelog.find_faults(db.connection, other)) == 5
    changelog.attach(db.connection, other)
    assert changelog.find_faults(db.connection, other) == {}
    assert db.logged() == {(1,)}
    assert db.run("UPDATE notes SET last_access = 7") == {(1,)}


def test_a_column_that_somebody_adds_is_no_fault(db: Database) -> None:
    sql = NOTES + "CREATE UNIQUE INDEX i ON notes (CASE WHEN last_access > 5 THEN title END);"
    db.attach(sql, SPEC)
    db.connection.execute("ALTER TABLE notes ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
    assert changelog.find_faults(db.connection, SPEC) == {}


def test_a_trigger_that_is_missing_or_was_altered_is_named_and_put_back(db: Database) -> None:
    """Rule CT-11."""
    db.attach(NOTES, SPEC)
    db.connection.execute("DROP TRIGGER syncer_changes_notes_delete")
    db.connection.execute("DROP TRIGGER syncer_changes_notes_insert")
    db.connection.execute(
        "CREATE TRIGGER syncer_changes_notes_insert AFTER INSERT ON notes BEGIN SELECT 1; END"
    )
    assert changelog.find_faults(db.connection, SPEC) == {
        "syncer_changes_notes_insert": "altered",
        "syncer_changes_notes_delete": "missing",
    }
    changelog.attach(db.connection, SPEC)
    assert changelog.find_faults(db.connection, SPEC) == {}


def test_another_key_makes_the_log_anew_and_its_numbers_go_on(db: Database) -> None:
    db.attach(NOTES + "CREATE UNIQUE INDEX titles ON notes (title);", SPEC)
    db.connection.execute("INSERT INTO notes VALUES (1, 'a', 'b', 0), (2, 'b', 'b', 0)")
    db.spec = TableSpec("notes", key=("title",), content="body")
    changelog.attach(db.connection, db.spec)
    assert db.logged() == set()
    assert db.run("UPDATE notes SET body = 'x' WHERE id = 1") == {("a",)}
    head = db.connection.execute("SELECT seq FROM sqlite_sequence").fetchall()
    assert head == [(3,)]


def test_names_that_begin_alike_are_told_apart(db: Database) -> None:
    for name in ("a", "a_b"):
        sql = f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, content)"
        db.attach(sql, TableSpec(name))
    for name in ("a", "a_b"):
        assert changelog.find_faults(db.connection, TableSpec(name)) == {}
    for statement in changelog.detaching(db.connection, TableSpec("a")):
        db.connection.execute(statement)
    assert changelog.find_faults(db.connection, TableSpec("a_b")) == {}


def test_what_is_taken_out_leaves_the_schema_as_it_was_to_the_byte(db: Database) -> None:
    """Rule SE-07; only SQLite's own sqlite_sequence stays, which nobody can drop."""
    db.connection.executescript(
        NOTES + "CREATE UNIQUE INDEX i ON notes (title); CREATE VIEW v AS SELECT * FROM notes;"
        "CREATE TABLE mine (id INTEGER PRIMARY KEY AUTOINCREMENT);"
        "CREATE TRIGGER own AFTER INSERT ON notes BEGIN SELECT 1; END;"
        "INSERT INTO notes VALUES (1, 'a', 'b', 0)"
    )
    before, dump = db.schema(), list(db.connection.iterdump())
    changelog.attach(db.connection, SPEC)
    db.connection.execute("UPDATE notes SET body = 'c'")
    db.connection.execute("UPDATE notes SET body = 'b'")
    assert db.schema() != before
    for statement in changelog.detaching(db.connection, SPEC):
        db.connection.execute(statement)
    assert db.schema() == before
    assert list(db.connection.iterdump()) == dump


@pytest.mark.parametrize(
    ("sql", "spec", "message"),
    [
        ("CREATE VIEW v AS SELECT 1 AS id, 'x' AS content", TableSpec("v"), "v is a view"),
        (
            "CREATE VIRTUAL TABLE f USING fts5 (content)",
            TableSpec("f", key=("content",)),
            "f is a virtual table",
        ),
        ("CREATE TABLE n (id INT, content)", TableSpec("n"), "source.key = id is not unique"),
        (
            "CREATE TABLE n (id INT, content); CREATE UNIQUE INDEX i ON n (id) WHERE id > 0",
            TableSpec("n"),
            "source.key = id is not unique",
        ),
        (
            NOTES + "CREATE TABLE tags (note, tag)",
            TableSpec("notes", content="(SELECT group_concat(tag) FROM tags WHERE note = id)"),
            "reads tags",
        ),
        (NOTES, TableSpec("note"), r"no table note \(did you mean notes\?\)"),
        (
            NOTES,
            TableSpec("notes", content="titel"),
            r"no column titel .*\(did you mean title\?\)",
        ),
        (
            NOTES,
            TableSpec("notes", content='"titel" || body'),
            r"no column titel .*\(did you mean title\?\)",
        ),
    ],
)
def test_what_cannot_be_watched_is_refused_before_anything_is_changed(
    db: Database, sql: str, spec: TableSpec, message: str
) -> None:
    """Rules SR-14, SR-19, SE-03."""
    db.connection.executescript(sql)
    before = db.schema()
    with pytest.raises(SettingsError, match=message) as caught:
        changelog.attach(db.connection, spec)
    assert caught.value.hint
    assert db.schema() == before


def test_a_foreign_table_of_the_logs_name_is_left_alone(db: Database) -> None:
    db.connection.executescript(NOTES + "CREATE TABLE syncer_changes_notes (mine)")
    with pytest.raises(SchemaError, match="syncer_changes_notes"):
        changelog.attach(db.connection, SPEC)
    assert db.connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (2,)


def test_functions_and_collations_that_only_the_application_has_are_no_hindrance(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as app:
        app.create_function("fold", 1, lambda value: str(value).lower(), deterministic=True)
        app.create_collation("german", lambda a, b: (a > b) - (a < b))
        app.executescript(
            "CREATE TABLE n (id INTEGER PRIMARY KEY, a, b COLLATE german, content);"
            "CREATE UNIQUE INDEX i ON n (fold(a)) WHERE fold(content) <> '';"
            "CREATE UNIQUE INDEX j ON n (b);"
        )
        with closing(sqlite3.connect(path, isolation_level=None)) as ours:
            changelog.attach(ours, TableSpec("n"))
            assert changelog.find_faults(ours, TableSpec("n")) == {}
        app.execute("INSERT INTO n VALUES (1, 'A', 'x', 't'), (2, 'B', 'y', 't')")
        app.execute("DELETE FROM syncer_changes_n")
        app.execute("INSERT OR REPLACE INTO n VALUES (3, 'a', 'y', 't')")
        found = app.execute("SELECT id FROM syncer_changes_n").fetchall()
        assert set(found) == {(1,), (2,), (3,)}


YOUNG = re.compile(
    r"\b(ON CONFLICT|UPSERT|RETURNING|FILTER|OVER|WITH|json\w*|iif|printf|format|unixepoch|TRUE|"
    r"FALSE|NULLS|MATERIALIZED|STRICT|DISTINCT FROM|IF NOT EXISTS|subsec|row_number)\b|->",
    re.IGNORECASE,
)


def test_the_triggers_know_nothing_that_old_builds_of_sqlite_do_not() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(NOTES + "CREATE UNIQUE INDEX i ON notes (lower(title)) WHERE id>1")
        found = changelog.plan(connection, SPEC)
        assert len(found) == 8
        for one in found:
            assert YOUNG.search(one.sql) is None, one.sql
            assert re.search(r"\)\s*(?:[<>=]+|IN)\s*\((?!SELECT)", one.sql) is None  # row values


def test_a_unique_index_on_the_canonical_table_gets_its_eviction_triggers(db: Database) -> None:
    db.connection.executescript(
        "CREATE TABLE memory_events (id INTEGER PRIMARY KEY AUTOINCREMENT, content, u);"
        "CREATE TABLE syncer_changes_memory_events "
        "(seq INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL);"
    )
    db.spec = TableSpec("memory_events")
    assert changelog.evictions(db.connection, db.spec) == []
    db.connection.execute("CREATE UNIQUE INDEX mine ON memory_events (u)")
    assert set(changelog.find_eviction_faults(db.connection, db.spec).values()) == {"missing"}
    assert changelog.attach_evictions(db.connection, db.spec)
    assert changelog.attach_evictions(db.connection, db.spec) == []
    db.run("INSERT INTO memory_events VALUES (1, 'x', 'a')")
    assert db.run("INSERT OR REPLACE INTO memory_events VALUES (2, 'x', 'a')") == {(1,)}
    db.connection.execute("DROP INDEX mine")
    assert set(changelog.find_eviction_faults(db.connection, db.spec).values()) == {"left over"}
    changelog.attach_evictions(db.connection, db.spec)
    assert changelog.find_eviction_faults(db.connection, db.spec) == {}


@pytest.mark.parametrize("child", ["INTEGER", "TEXT"])
@pytest.mark.parametrize("parent", ["INTEGER", "TEXT"])
def test_a_key_is_logged_as_it_was_whatever_the_type_of_a_foreign_key(
    parent: str, child: str
) -> None:
    """SQLite shows AFTER triggers the old key converted to the type of an indexed foreign key."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA foreign_keys = ON; CREATE TABLE m (k {parent} PRIMARY KEY, content);"
            f"CREATE TABLE c (of {child} REFERENCES m ON DELETE CASCADE ON UPDATE CASCADE);"
            "CREATE INDEX i ON c (of); INSERT INTO m VALUES ('1', 'x'), ('3', 'y');"
        )
        changelog.attach(connection, TableSpec("m", key=("k",)))
        connection.execute("UPDATE m SET k = '2' WHERE k = '1'")
        connection.execute("DELETE FROM m WHERE k = '3'")
        logged = connection.execute("SELECT k FROM syncer_changes_m ORDER BY seq").fetchall()
    as_stored = int if parent == "INTEGER" else str
    assert logged == [(as_stored(key),) for key in (1, 2, 3)]
