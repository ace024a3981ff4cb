"""What memory_events accepts, keeps and sets by itself."""

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


STAMP = (
    "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z"
)
OLD = "2001-02-03T04:05:06.789Z"
FUTURE = "2999-01-01T00:00:00.000Z"
IN_SCOPE = (
    "SELECT id FROM memory_events WHERE superseded_by IS NULL AND deleted_by IS NULL AND "
    "(expires_at IS NULL OR expires_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ORDER BY id"
)


def add(db: Database, **values: object) -> int:
    row = {"scope": "s", "source": "test", "content": "text"} | values
    sql = f"INSERT INTO memory_events ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
    return db.execute(sql, tuple(row.values())).lastrowid or 0


def read(db: Database, column: str, row: int = 1) -> object:
    (value,) = db.execute(f"SELECT {column} FROM memory_events WHERE id = ?", (row,)).fetchone()
    return value


def test_the_insert_of_the_seed_works_and_the_rest_has_defaults(db: Database) -> None:
    db.execute("INSERT INTO memory_events (scope, source, content) VALUES ('a', 'b', 'c')")
    assert db.execute(
        "SELECT id, agent, metadata, importance, expires_at, superseded_by, deleted_by, "
        "created_at GLOB ?, updated_at GLOB ? FROM memory_events",
        (STAMP, STAMP),
    ).fetchall() == [(1, "", "{}", 0.5, None, None, None, 1, 1)]


@pytest.mark.parametrize(
    "column", ["agent", "scope", "source", "content", "metadata", "importance", "created_at"]
)
def test_what_every_row_has_cannot_be_null(db: Database, column: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=f"NOT NULL .*{column}"):
        add(db, **{column: None})


@pytest.mark.parametrize("column", ["scope", "source", "content"])
def test_a_writer_must_say_where_a_row_belongs_and_comes_from(db: Database, column: str) -> None:
    names = [name for name in ("scope", "source", "content") if name != column]
    with pytest.raises(sqlite3.IntegrityError, match=f"NOT NULL .*{column}"):
        db.execute(f"INSERT INTO memory_events ({', '.join(names)}) VALUES ('a', 'b')")


def test_metadata_is_declared_as_json_and_kept_as_text(db: Database) -> None:
    (kind,) = (
        row[2] for row in db.execute("PRAGMA table_info(memory_events)") if row[1] == "metadata"
    )
    assert "JSON" in kind
    add(db, metadata="1.0")
    assert read(db, "metadata") == "1.0"


@pytest.mark.parametrize("value", [-0.01, 1.01, "high", b"0.5"])
def test_importance_is_a_number_from_0_to_1(db: Database, value: object) -> None:
    for fine in (0, 0.25, 1, "0.75"):
        add(db, importance=fine)
    with pytest.raises(sqlite3.IntegrityError, match="importance_is_from_0_to_1"):
        add(db, importance=value)


def test_a_row_cannot_supersede_itself(db: Database) -> None:
    add(db)
    with pytest.raises(sqlite3.IntegrityError, match="superseded_by_is_the_id_of_another_row"):
        db.execute("UPDATE memory_events SET superseded_by = id")
    with pytest.raises(sqlite3.IntegrityError, match="superseded_by_is_the_id_of_another_row"):
        add(db, superseded_by="the newer one")
    db.execute("UPDATE memory_events SET superseded_by = 2")


def test_deleted_by_names_somebody_or_is_null(db: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="deleted_by_is_null_or_a_name"):
        add(db, deleted_by="")


def test_expiry_supersession_and_soft_deletion_take_a_row_out_of_scope(db: Database) -> None:
    add(db)
    add(db, superseded_by=1)
    add(db, deleted_by="agent")
    add(db, expires_at="2001-01-01")
    add(db, expires_at="2999-01-01")
    assert db.execute(IN_SCOPE).fetchall() == [(1,), (5,)]
    db.execute("UPDATE memory_events SET superseded_by = NULL, deleted_by = NULL")
    db.execute("UPDATE memory_events SET expires_at = NULL")
    assert len(db.execute(IN_SCOPE).fetchall()) == 5


def test_expiry_is_found_by_index(db: Database) -> None:
    plan = db.execute(
        "EXPLAIN QUERY PLAN SELECT id FROM memory_events WHERE expires_at > ? AND expires_at <= ?",
        (OLD, FUTURE),
    ).fetchall()
    assert "memory_events_expires_at" in str(plan)


def test_the_id_of_a_deleted_row_is_not_given_again(db: Database) -> None:
    add(db)
    db.execute("DELETE FROM memory_events")
    assert add(db) == 2


@pytest.mark.parametrize("verb", ["UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"])
@pytest.mark.parametrize("alias", ["id", "rowid", "oid"])
def test_an_id_never_changes_whatever_it_is_called(db: Database, verb: str, alias: str) -> None:
    add(db, content="one")
    add(db, content="two")
    for new in (2, 9):
        with pytest.raises(sqlite3.IntegrityError, match=r"memory_events\.id: .*never changes"):
            db.execute(f"{verb} memory_events SET {alias} = ? WHERE id = 1", (new,))
    db.execute(f"{verb} memory_events SET {alias} = id")
    assert db.execute("SELECT id, content FROM memory_events").fetchall() == [
        (1, "one"),
        (2, "two"),
    ]


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2030-01-02", "2030-01-02T00:00:00.000Z"),
        ("2030-01-02 03:04", "2030-01-02T03:04:00.000Z"),
        ("2030-01-02T03:04:05", "2030-01-02T03:04:05.000Z"),
        ("2030-01-02T03:04:05.6Z", "2030-01-02T03:04:05.600Z"),
        ("2030-01-02 03:04:05.678901", "2030-01-02T03:04:05.679Z"),
        ("2030-01-02T03:04:05+09:00", "2030-01-01T18:04:05.000Z"),
        ("2028-02-29", "2028-02-29T00:00:00.000Z"),
        ("2030-01-02T03:04:05.678Z", "2030-01-02T03:04:05.678Z"),
        ("2030-01-02T03:04:05.678z", "2030-01-02T03:04:05.678Z"),
        (None, None),
    ],
)
def test_expires_at_is_stored_in_one_form(db: Database, written: str, stored: str) -> None:
    add(db, expires_at=written)
    add(db)
    db.execute("UPDATE memory_events SET expires_at = ? WHERE id = 2", (written,))
    assert (read(db, "expires_at", 1), read(db, "expires_at", 2)) == (stored, stored)


@pytest.mark.parametrize(
    "value",
    [
        "now",
        "",
        " 2030-01-01",
        "tomorrow",
        "12:00",
        "2030",
        "2030-1-1",
        "20300101",
        "2030-02-30",
        "2030-04-31",
        "2030-13-01",
        "2030-01-01T24:00",
        "2030-02-30T00:00:00.000Z",
        "2030-01-01T24:00:00.000Z",
        "2030-01-01T12",
        "2030-01-0112:00",
        "2030-01-01 or later",
        "0000-01-01T00:00+01:00",
        "9999-12-31T23:59-01:00",
        1893456000,
        2462502.5,
        b"2030-01-01",
    ],
)
def test_what_is_no_date_or_time_is_refused_as_expires_at(db: Database, value: object) -> None:
    add(db, expires_at=FUTURE)
    with pytest.raises(sqlite3.IntegrityError, match=r"memory_events\.expires_at: not a date"):
        add(db, expires_at=value)
    with pytest.raises(sqlite3.IntegrityError, match=r"memory_events\.expires_at: not a date"):
        db.execute("UPDATE memory_events SET expires_at = ?", (value,))
    assert db.execute("SELECT expires_at FROM memory_events").fetchall() == [(FUTURE,)]


def test_expiries_written_in_many_forms_sort_as_text_as_they_do_in_time(db: Database) -> None:
    for form in (
        "2030-01-01 10:00+05:00",
        "2030-01-01T06:00:00Z",
        "2030-01-01 05:30",
        "2030-01-01",
    ):
        add(db, expires_at=form)
    rows = db.execute("SELECT id FROM memory_events ORDER BY expires_at").fetchall()
    assert rows == [(4,), (1,), (3,), (2,)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("agent", "a"),
        ("scope", "S"),
        ("source", "x"),
        ("content", "TEXT"),
        ("content", b"text"),
        ("metadata", '{"a":1}'),
        ("importance", 0.75),
        ("created_at", OLD),
        ("expires_at", "2030-01-01"),
        ("superseded_by", 2),
        ("deleted_by", "a"),
    ],
)
def test_updated_at_follows_a_change_of_any_other_column(
    db: Database, column: str, value: object
) -> None:
    add(db, updated_at=OLD)
    db.execute(f"UPDATE memory_events SET {column} = {column}")
    assert read(db, "updated_at") == OLD
    db.execute(f"UPDATE memory_events SET {column} = ?", (value,))
    assert str(read(db, "updated_at")) > "2020"
    assert db.execute("SELECT updated_at GLOB ? FROM memory_events", (STAMP,)).fetchone() == (1,)


def test_updated_at_does_not_go_backwards_when_the_clock_does(db: Database) -> None:
    add(db, updated_at=FUTURE)
    db.execute("UPDATE memory_events SET content = 'new'")
    assert read(db, "updated_at") == FUTURE


@pytest.mark.parametrize("stamp", ["zzz", b"\xff", "9999-99-99T00:00:00.000Z"])
def test_an_updated_at_that_is_no_time_does_not_stay_for_ever(db: Database, stamp: object) -> None:
    add(db, updated_at=stamp)
    db.execute("UPDATE memory_events SET content = 'new'")
    assert db.execute("SELECT updated_at GLOB ? FROM memory_events", (STAMP,)).fetchone() == (1,)


def test_a_writer_cannot_set_updated_at_back_while_it_changes_a_row(db: Database) -> None:
    add(db)
    db.execute("UPDATE memory_events SET content = 'new', updated_at = ?", (OLD,))
    assert str(read(db, "updated_at")) > "2020"


def test_an_insert_keeps_the_updated_at_it_came_with_whatever_form_the_expiry_has(
    db: Database,
) -> None:
    add(db, updated_at=OLD, expires_at="2030-01-01")
    db.execute("UPDATE memory_events SET expires_at = '2030-01-01 01:00+01:00'")
    assert read(db, "updated_at") == OLD
    assert read(db, "expires_at") == "2030-01-01T00:00:00.000Z"


def test_triggers_do_not_disturb_what_the_writer_is_told(db: Database) -> None:
    add(db, id=7, expires_at="2030-01-01")
    assert db.execute("SELECT last_insert_rowid(), changes()").fetchone() == (7, 1)
    assert db.execute("UPDATE memory_events SET content = 'new'").rowcount == 1
    assert db.execute("DELETE FROM memory_events").rowcount == 1
