"""What audit_log records, and what it is safe from."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from syncer.migrate import init_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Database = sqlite3.Connection


@pytest.fixture(params=["ON", "OFF"], ids=["recursive_triggers", "plain"])
def db(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    path = tmp_path / "memory.db"
    init_database(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA recursive_triggers = {request.param}")
        yield connection


Record = tuple[object, ...]
FULL = "operation, row_id, agent_before, agent_after, source_before, source_after, changed, "
FULL += "content_length_before, content_length_after"


def add(db: Database, row: int | None = None, agent: str = "a", content: str = "text") -> None:
    db.execute(
        "INSERT INTO memory_events (id, agent, scope, source, content) VALUES (?, ?, 's', 'x', ?)",
        (row, agent, content),
    )


def replace(db: Database, row: int, agent: str = "b", content: str = "longer text") -> None:
    db.execute(
        "INSERT OR REPLACE INTO memory_events (id, agent, scope, source, content) "
        "VALUES (?, ?, 's', 'y', ?)",
        (row, agent, content),
    )


def records(db: Database, columns: str = "operation, row_id") -> list[Record]:
    return db.execute(f"SELECT {columns} FROM audit_log ORDER BY id").fetchall()


def age(db: Database, days: int) -> None:
    """Make every record older, which takes the trigger away for a moment."""
    (sql,) = db.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'audit_log_is_never_updated'"
    ).fetchone()
    db.execute("DROP TRIGGER audit_log_is_never_updated")
    db.execute(
        "UPDATE audit_log SET at = strftime('%Y-%m-%dT%H:%M:%fZ', at, ?)", (f"-{days} days",)
    )
    db.execute(sql)


def prune(db: Database) -> int:
    return db.execute("DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_expired)").rowcount


def test_insert_update_and_delete_are_recorded_with_before_and_after(db: Database) -> None:
    add(db)
    db.execute("UPDATE memory_events SET agent = 'b', source = 'y', content = 'longer text'")
    db.execute("DELETE FROM memory_events")
    assert records(db, FULL) == [
        ("insert", 1, None, "a", None, "x", "", None, 4),
        ("update", 1, "a", "b", "x", "y", "agent,source,content", 4, 11),
        ("delete", 1, "b", None, "y", None, "", 11, None),
    ]


def test_a_record_says_when(db: Database) -> None:
    add(db)
    (row,) = records(
        db, "at GLOB '????-??-??T??:??:??.???Z', abs(julianday(at) - julianday('now')) < 0.1"
    )
    assert row == (1, 1)


def test_every_changed_column_is_listed_and_no_other(db: Database) -> None:
    add(db)
    new = {
        "agent": "A",
        "scope": "S",
        "source": "X",
        "content": "Text",
        "metadata": "[]",
        "importance": 0.75,
        "created_at": "2001-01-01",
        "expires_at": "2030-01-01",
        "superseded_by": 2,
        "deleted_by": "a",
    }
    for column, value in new.items():
        db.execute(f"UPDATE memory_events SET {column} = ?", (value,))
    assert records(db, "changed")[1:] == [(column,) for column in new]


def test_an_update_that_changes_nothing_is_not_recorded(db: Database) -> None:
    add(db)
    db.execute("UPDATE memory_events SET agent = agent, content = 'text', importance = 0.5")
    db.execute("UPDATE memory_events SET updated_at = '2030-01-01'")
    assert records(db) == [("insert", 1)]


def test_bringing_an_expiry_into_its_stored_form_is_not_recorded(db: Database) -> None:
    db.execute(
        "INSERT INTO memory_events (scope, source, content, expires_at) "
        "VALUES ('s', 'x', 'text', '2030-01-01')"
    )
    db.execute("UPDATE memory_events SET expires_at = '2031-01-01 01:00+01:00'")
    db.execute("UPDATE memory_events SET expires_at = '2031-01-01'")
    assert records(db, "operation, changed") == [("insert", ""), ("update", "expires_at")]


@pytest.mark.rule("SE-06")
def test_no_text_of_a_row_is_in_any_other_table(db: Database) -> None:
    add(db, content="a secret")
    db.execute(
        "UPDATE memory_events SET content = 'another secret', metadata = '{\"k\":\"secret\"}'"
    )
    replace(db, 1, content="third secret")
    db.execute("INSERT OR IGNORE INTO memory_events SELECT * FROM memory_events")
    tables = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'memory_events'"
    ).fetchall()
    assert len(tables) > 5
    assert not [
        name
        for (name,) in tables
        if "secret" in str(db.execute(f"SELECT * FROM {name}").fetchall())
    ]


def test_a_length_counts_every_byte_even_after_a_nul(db: Database) -> None:
    add(db, content="é\0tail")
    assert records(db, "content_length_after") == [(7,)]


def test_a_replaced_row_is_recorded_as_gone_exactly_once(db: Database) -> None:
    add(db)
    replace(db, 1)
    replace(db, 1, agent="c")
    assert records(db, FULL) == [
        ("insert", 1, None, "a", None, "x", "", None, 4),
        ("delete", 1, "a", None, "x", None, "", 4, None),
        ("insert", 1, None, "b", None, "y", "", None, 11),
        ("delete", 1, "b", None, "y", None, "", 11, None),
        ("insert", 1, None, "c", None, "y", "", None, 11),
    ]


def test_an_insert_that_is_ignored_and_an_upsert_are_no_deletes(db: Database) -> None:
    add(db)
    db.execute(
        "INSERT OR IGNORE INTO memory_events (id, scope, source, content) VALUES (1,'','','')"
    )
    db.execute(
        "INSERT INTO memory_events (id, scope, source, content) VALUES (1, 's', 'x', 'new') "
        "ON CONFLICT (id) DO UPDATE SET content = excluded.content"
    )
    db.execute(
        "INSERT INTO memory_events (id, scope, source, content) VALUES (1, 's', 'x', 'new') "
        "ON CONFLICT (id) DO NOTHING"
    )
    assert records(db) == [("insert", 1), ("update", 1)]


def test_what_follows_an_ignored_insert_is_recorded_as_it_is(db: Database) -> None:
    ignored = "INSERT OR IGNORE INTO memory_events (id, scope, source, content) VALUES (1,'','','')"
    add(db)
    db.execute(ignored)
    db.execute("DELETE FROM memory_events")
    add(db, 1, agent="b")
    db.execute(ignored)
    replace(db, 1, agent="c")
    assert records(db, "operation, agent_before, agent_after") == [
        ("insert", None, "a"),
        ("delete", "a", None),
        ("insert", None, "b"),
        ("delete", "b", None),
        ("insert", None, "c"),
    ]


def test_a_replacement_is_seen_after_the_audit_was_pruned(db: Database) -> None:
    add(db)
    db.execute("UPDATE memory_events SET agent = 'b'")
    db.execute("UPDATE audit_retention SET days = 1")
    age(db, 2)
    prune(db)
    replace(db, 1)
    assert records(db) == [("update", 1), ("delete", 1), ("insert", 1)]


def test_a_trigger_of_the_application_that_updates_new_rows_makes_no_false_delete(
    db: Database,
) -> None:
    db.execute(
        "CREATE TRIGGER mine AFTER INSERT ON memory_events "
        "BEGIN UPDATE memory_events SET agent = 'filled in' WHERE id = NEW.id; END"
    )
    add(db)
    assert ("delete", 1) not in records(db)
    assert records(db, "agent_after")[-1] == ("filled in",)


def test_a_new_row_that_a_trigger_of_the_application_deletes_is_recorded_as_gone(
    db: Database,
) -> None:
    db.execute(
        "CREATE TRIGGER mine AFTER INSERT ON memory_events "
        "BEGIN DELETE FROM memory_events WHERE id = NEW.id; END"
    )
    add(db)
    assert records(db)[-1] == ("delete", 1)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', 'text')",
        "UPDATE memory_events SET content = 'new', expires_at = NULL WHERE id = 1",
        "DELETE FROM memory_events WHERE id = 1",
    ],
)
def test_no_trigger_makes_sqlite_fill_a_temporary_table(db: Database, sql: str) -> None:
    opcodes = [row[1] for row in db.execute(f"EXPLAIN {sql}")]
    assert opcodes.count("Program") > 1
    assert "OpenEphemeral" not in opcodes


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE audit_log SET agent_after = 'b'",
        "UPDATE OR IGNORE audit_log SET agent_after = 'b'",
        "UPDATE OR REPLACE audit_log SET id = 2 WHERE id = 1",
        "UPDATE audit_log SET rowid = 9 WHERE id = 1",
        "DELETE FROM audit_log",
        "DELETE FROM audit_log WHERE id = 1",
        "INSERT OR REPLACE INTO audit_log (id, operation, row_id) VALUES (1, 'delete', 1)",
        "INSERT OR IGNORE INTO audit_log (id, operation, row_id) VALUES (1, 'delete', 1)",
        "REPLACE INTO audit_log (rowid, operation, row_id) VALUES (2, 'delete', 1)",
        "INSERT INTO audit_log (id, operation, row_id) VALUES (-1, 'delete', 1)",
        "INSERT INTO audit_log (operation, row_id) VALUES ('nothing', 1)",
    ],
)
def test_a_record_is_never_changed_replaced_or_deleted(db: Database, sql: str) -> None:
    add(db)
    add(db)
    before = records(db, "*")
    with pytest.raises(sqlite3.IntegrityError, match=r"audit_log: |operation_is_known"):
        db.execute(sql)
    assert records(db, "*") == before
    add(db)


def test_without_a_retention_records_are_kept_for_ever(db: Database) -> None:
    add(db)
    db.execute("DELETE FROM memory_events")
    age(db, 100_000)
    assert db.execute("SELECT days FROM audit_retention").fetchall() == [(None,)]
    with pytest.raises(sqlite3.IntegrityError, match="this record is kept"):
        db.execute("DELETE FROM audit_log")
    db.execute("DELETE FROM audit_retention")
    with pytest.raises(sqlite3.IntegrityError, match="this record is kept"):
        db.execute("DELETE FROM audit_log")


def test_records_older_than_the_retention_may_be_deleted_and_no_younger_ones(db: Database) -> None:
    add(db)
    db.execute("DELETE FROM memory_events")
    db.execute("UPDATE audit_retention SET days = 30")
    age(db, 29)
    with pytest.raises(sqlite3.IntegrityError, match="this record is kept"):
        db.execute("DELETE FROM audit_log")
    age(db, 2)
    add(db)
    assert prune(db) == 2
    assert records(db) == [("insert", 2)]


def test_a_living_row_keeps_its_newest_record_however_old(db: Database) -> None:
    add(db)
    db.execute("UPDATE memory_events SET agent = 'b'")
    add(db)
    db.execute("DELETE FROM memory_events WHERE id = 2")
    db.execute("UPDATE audit_retention SET days = 1")
    age(db, 2)
    with pytest.raises(sqlite3.IntegrityError, match="this record is kept"):
        db.execute("DELETE FROM audit_log")
    assert prune(db) == 3
    assert records(db, "operation, row_id, agent_after") == [("update", 1, "b")]


@pytest.mark.parametrize("days", [0, -1, 0.5, "a week", b"7"])
def test_a_retention_is_null_or_at_least_a_whole_day(db: Database, days: object) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="days_is_null_or_at_least_1"):
        db.execute("UPDATE audit_retention SET days = ?", (days,))
    with pytest.raises(sqlite3.IntegrityError, match="audit_retention_has_one_row"):
        db.execute("INSERT INTO audit_retention (only, days) VALUES (2, 30)")


def test_a_retention_beyond_the_calendar_keeps_everything(db: Database) -> None:
    add(db)
    db.execute("DELETE FROM memory_events")
    db.execute("UPDATE audit_retention SET days = 9000000000000000")
    with pytest.raises(sqlite3.IntegrityError, match="this record is kept"):
        db.execute("DELETE FROM audit_log")


def test_the_last_writer_of_a_row_is_found_by_index(db: Database) -> None:
    plan = db.execute(
        "EXPLAIN QUERY PLAN SELECT * FROM audit_log WHERE row_id = 1 ORDER BY id DESC LIMIT 1"
    ).fetchall()
    assert "audit_log_row_id" in str(plan)
    assert "TEMP B-TREE" not in str(plan)
