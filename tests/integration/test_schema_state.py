"""Syncer's own tables, and what the migrations may be written in."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syncer.migrate import init_database
from syncer.schema import OBJECTS, SETS, load, packaged

if TYPE_CHECKING:
    from collections.abc import Iterator

    Database = sqlite3.Connection

YOUNGER_THAN_3_6_19 = (
    r"\bjson\w*\(|\biif\(|\bRETURNING\b|\bSTRICT\b|\bGENERATED\b|\bON CONFLICT\b|\bOVER\b|"
    r"\bWITH\b|\bWITHOUT ROWID\b|\bDISTINCT FROM\b|\bunixepoch\(|\bprintf\(|\bformat\(|"
    r"\bCREATE (UNIQUE )?INDEX\b[^;]*\bWHERE\b|\bVALUES\b[^;]*\),\s*\("
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    path = tmp_path / "memory.db"
    init_database(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def generation(db: Database, name: str, *, serving: int, last_id: str | None = None) -> None:
    db.execute(
        "INSERT INTO syncer_generations (generation, alias, source_table, serving, created_at, "
        "last_id) VALUES (?, 'memories', 'memory_events', ?, '2030-01-01', ?)",
        (name, serving, last_id),
    )


def test_each_database_has_an_identity_of_its_own(db: Database, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    init_database(other)
    (mine,) = db.execute("SELECT source_id FROM syncer_identity").fetchone()
    with closing(sqlite3.connect(other)) as connection:
        (theirs,) = connection.execute("SELECT source_id FROM syncer_identity").fetchone()
    assert re.fullmatch("[0-9a-f]{32}", mine)
    assert mine != theirs
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("INSERT INTO syncer_identity VALUES (2, 'x')")


def test_one_generation_serves_an_alias(db: Database) -> None:
    generation(db, "blue", serving=1)
    generation(db, "green", serving=0)
    with pytest.raises(sqlite3.IntegrityError, match="another generation serves this alias"):
        generation(db, "red", serving=1)
    with pytest.raises(sqlite3.IntegrityError, match="another generation serves this alias"):
        db.execute("UPDATE syncer_generations SET serving = 1 WHERE generation = 'green'")
    db.execute("UPDATE syncer_generations SET serving = 0 WHERE generation = 'blue'")
    db.execute("UPDATE syncer_generations SET serving = 1 WHERE generation = 'green'")


@pytest.mark.parametrize(
    ("last_id", "shown"), [(None, 0), ("42", 42), ("-1", -1), ('"a"', '"a"'), ('"42"', '"42"')]
)
def test_sync_status_shows_the_serving_generation_in_the_shape_of_the_seed(
    db: Database, last_id: str | None, shown: object
) -> None:
    assert db.execute("SELECT target, last_id FROM sync_status").fetchall() == []
    generation(db, "blue", serving=1, last_id=last_id)
    generation(db, "green", serving=0, last_id="99")
    assert db.execute("SELECT target, last_id FROM sync_status").fetchall() == [("memories", shown)]


def test_a_quarantined_row_is_recorded_once_per_generation(db: Database) -> None:
    row = "INSERT INTO syncer_quarantine (generation, row, reason, first_seen, last_seen) "
    row += "VALUES (?, '42', 'refused', '2030-01-01', '2030-01-01')"
    db.execute(row, ("blue",))
    db.execute(row, ("green",))
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        db.execute(row, ("blue",))
    assert db.execute("SELECT DISTINCT attempts, next_try FROM syncer_quarantine").fetchall() == [
        (1, None)
    ]


def test_the_sql_uses_nothing_that_old_sqlite_builds_do_not_know() -> None:
    for name in SETS:
        for one in load(name, packaged()):
            sql = re.sub(r"--[^\n]*|'[^']*'", "", one.text)
            assert not re.search(YOUNGER_THAN_3_6_19, sql, re.IGNORECASE), one.file


def test_every_table_view_and_column_is_documented(db: Database) -> None:
    text = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
    for kind, name, _ in db.execute(OBJECTS).fetchall():
        if kind in {"table", "view"}:
            assert f"`{name}`" in text, name
            section = text.split(f"## `{name}`")[-1].split("\n## ")[0]
            for column in db.execute(f"PRAGMA table_info({name})").fetchall():
                assert f"`{column[1]}`" in section, f"{name}.{column[1]}"
