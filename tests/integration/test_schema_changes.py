"""Which writes leave an entry in the change log, and syncer's own tables."""

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


def add(db: Database, row: int | None = None, content: str | bytes = "text") -> None:
    db.execute(
        "INSERT INTO memory_events (id, scope, source, content) VALUES (?, 's', 'x', ?)",
        (row, content),
    )


def logged(db: Database) -> list[int]:
    """Return the ids logged since the last call, and forget them."""
    rows = db.execute("SELECT id FROM syncer_changes_memory_events ORDER BY seq").fetchall()
    db.execute("DELETE FROM syncer_changes_memory_events")
    return [row for (row,) in rows]


def test_insert_update_and_delete_are_logged_in_the_order_of_commits(db: Database) -> None:
    add(db)
    add(db)
    db.execute("UPDATE memory_events SET content = 'new' WHERE id = 1")
    db.execute("DELETE FROM memory_events WHERE id = 2")
    assert logged(db) == [1, 2, 1, 2]


def test_an_entry_says_when_and_its_number_is_never_given_again(db: Database) -> None:
    add(db)
    age = "SELECT julianday('now') - changed_at FROM syncer_changes_memory_events"
    (days,) = db.execute(age).fetchone()
    assert 0 <= days < 1 / 24
    logged(db)
    add(db)
    assert db.execute("SELECT seq FROM syncer_changes_memory_events").fetchall() == [(2,)]
    head = "SELECT seq FROM sqlite_sequence WHERE name = 'syncer_changes_memory_events'"
    assert db.execute(head).fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("agent", "a"),
        ("scope", "S"),
        ("source", "X"),
        ("content", "Text"),
        ("content", b"text"),
        ("content", "text\0"),
        ("metadata", "{ }"),
        ("importance", 0.75),
        ("created_at", "2001-01-01"),
        ("expires_at", "2030-01-01"),
        ("superseded_by", 2),
        ("deleted_by", "a"),
    ],
)
def test_a_change_of_any_mapped_column_is_logged_once(
    db: Database, column: str, value: object
) -> None:
    add(db)
    logged(db)
    db.execute(f"UPDATE memory_events SET {column} = ?", (value,))
    entries = logged(db)
    assert set(entries) == {1}
    assert len(entries) == 1
    db.execute(f"UPDATE memory_events SET {column} = ?", (value,))
    assert logged(db) == []


@pytest.mark.parametrize("column", ["expires_at", "superseded_by", "deleted_by"])
def test_a_value_taken_back_to_null_is_logged(db: Database, column: str) -> None:
    add(db)
    db.execute(
        f"UPDATE memory_events SET {column} = ?", ("2030" if column[0] == "s" else "2030-01-01",)
    )
    logged(db)
    db.execute(f"UPDATE memory_events SET {column} = NULL")
    assert logged(db) == [1]


def test_an_update_that_changes_nothing_costs_nothing(db: Database) -> None:
    add(db)
    logged(db)
    db.execute("UPDATE memory_events SET content = content, agent = '', importance = 0.5")
    db.execute("UPDATE memory_events SET updated_at = '2030-01-01'")
    assert logged(db) == []
    assert db.execute("SELECT count(*) FROM audit_log").fetchone() == (1,)


def test_a_column_that_the_mapping_does_not_read_is_not_logged(db: Database) -> None:
    db.execute("ALTER TABLE memory_events ADD COLUMN last_access TEXT")
    add(db)
    logged(db)
    db.execute("UPDATE memory_events SET last_access = '2030-01-01'")
    assert logged(db) == []


def test_a_change_of_case_is_a_change_whatever_the_columns_collation(db: Database) -> None:
    triggers = [
        sql
        for (sql,) in db.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'memory_events'"
        )
    ]
    (table,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'memory_events'").fetchone()
    db.execute("DROP TABLE memory_events")
    db.execute(table.replace(" TEXT", " TEXT COLLATE NOCASE"))
    for sql in triggers:
        db.execute(sql)
    add(db)
    for column in ("agent", "scope", "source", "content", "metadata", "created_at", "deleted_by"):
        db.execute(f"UPDATE memory_events SET {column} = 'abc', updated_at = '2001'")
        logged(db)
        (head,) = db.execute("SELECT max(id) FROM audit_log").fetchone()
        db.execute(f"UPDATE memory_events SET {column} = 'ABC', updated_at = '2001'")
        assert logged(db) == [1]
        audited = db.execute("SELECT changed FROM audit_log WHERE id > ?", (head,)).fetchall()
        assert audited == [(column,)]
        (stamp,) = db.execute("SELECT updated_at FROM memory_events").fetchone()
        assert stamp > "2020"
    for row, form in enumerate(("2030-01-01T00:00:00.000Z", "2030-01-01T00:00:00.000z"), 2):
        add(db, row)
        db.execute("UPDATE memory_events SET expires_at = ? WHERE id = ?", (form, row))
    db.execute(
        "INSERT INTO memory_events (scope, source, content, expires_at) "
        "VALUES ('s', 'x', 'text', '2030-01-01T00:00:00.000z')"
    )
    distinct = "SELECT DISTINCT expires_at COLLATE BINARY FROM memory_events WHERE id > 1"
    assert db.execute(distinct).fetchall() == [("2030-01-01T00:00:00.000Z",)]


def test_a_replaced_row_is_logged(db: Database) -> None:
    add(db)
    logged(db)
    db.execute(
        "INSERT OR REPLACE INTO memory_events (id, scope, source, content) VALUES (1,'','','')"
    )
    assert set(logged(db)) == {1}


def test_an_insert_that_is_ignored_is_not_logged_and_an_upsert_only_if_it_changes(
    db: Database,
) -> None:
    upsert = (
        "INSERT INTO memory_events (id, scope, source, content) VALUES (1, 's', 'x', ?) "
        "ON CONFLICT (id) DO UPDATE SET content = excluded.content"
    )
    add(db)
    logged(db)
    db.execute(
        "INSERT OR IGNORE INTO memory_events (id, scope, source, content) VALUES (1,'','','')"
    )
    db.execute(upsert, ("text",))
    assert logged(db) == []
    db.execute(upsert, ("new",))
    assert logged(db) == [1]


def test_what_was_rolled_back_is_not_logged(db: Database) -> None:
    db.execute("BEGIN")
    add(db)
    db.execute("ROLLBACK")
    assert logged(db) == []


def test_deleting_every_row_at_once_logs_each(db: Database) -> None:
    for _ in range(3):
        add(db)
    logged(db)
    db.execute("DELETE FROM memory_events")
    assert sorted(logged(db)) == [1, 2, 3]
