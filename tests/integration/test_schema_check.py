"""A database is compared with what the migrations make of it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syncer import migrate
from syncer.errors import SchemaError
from syncer.schema import OBJECTS, packaged

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def schema(path: Path) -> set[tuple[str, str, str]]:
    """Return kind, name and text of everything in the database."""
    with opened(path) as connection:
        return set(connection.execute(OBJECTS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Copy the real migrations, to be changed by a test."""
    return Path(shutil.copytree(packaged(), tmp_path / "migrations"))


def add(root: Path, name: str, sql: str) -> None:
    (root / name).write_text(sql)


def test_check_sends_a_database_that_was_never_initialised_to_init(path: Path) -> None:
    with opened(path) as connection, pytest.raises(SchemaError, match="not initialised") as caught:
        migrate.check(connection)
    assert "syncer init" in (caught.value.hint or "")


def test_check_names_the_migrations_that_are_missing(path: Path, root: Path) -> None:
    migrate.init_database(path, root=root)
    add(root, "state/0091_more.sql", "CREATE TABLE more (a);")
    with opened(path) as connection:
        with pytest.raises(SchemaError, match=r"not applied: .*0091_more\.sql") as caught:
            migrate.check(connection, root=root)
        assert "syncer init" in (caught.value.hint or "")
        migrate.check(connection)


def test_a_migration_whose_text_changed_after_it_was_applied_is_found(
    path: Path, root: Path
) -> None:
    migrate.init_database(path)
    file = root / "canonical" / "0003_change_log.sql"
    file.write_text(file.read_text() + "\n-- later\n")
    with opened(path) as connection:
        with pytest.raises(SchemaError, match=r"0003_change_log\.sql .*SHA-256"):
            migrate.check(connection, root=root)
        with pytest.raises(SchemaError, match="SHA-256"):
            migrate.apply(connection, "canonical", root=root)
        migrate.check(connection, ("state",), root=root)
    with pytest.raises(SchemaError, match="SHA-256"):
        migrate.init_database(path, root=root)


@pytest.mark.parametrize("name", ["state/0091_new.sql", "canonical/0099_new.sql"])
def test_a_database_that_is_newer_than_this_syncer_is_refused(
    path: Path, root: Path, name: str
) -> None:
    add(root, name, "CREATE TABLE new (a);")
    migrate.init_database(path, root=root)
    with opened(path) as connection, pytest.raises(SchemaError, match=f"newer.*{name[:-4]}"):
        migrate.check(connection)
    with pytest.raises(SchemaError, match="newer"):
        migrate.init_database(path)


def test_a_set_that_this_syncer_does_not_know_means_a_newer_one(path: Path) -> None:
    migrate.init_database(path)
    with opened(path) as connection:
        connection.execute("INSERT INTO syncer_migrations VALUES ('later', 1, 'x', '', '')")
        with pytest.raises(SchemaError, match="newer"):
            migrate.check(connection)


def test_every_missing_table_trigger_index_or_view_is_found(path: Path) -> None:
    migrate.init_database(path)
    for kind, name, _ in sorted(schema(path)):
        if name == "syncer_migrations":
            continue
        with opened(path) as connection:
            connection.execute("BEGIN")
            connection.execute(f"DROP {kind} {name}")
            with pytest.raises(SchemaError, match=f"{kind} {name} is missing"):
                migrate.check(connection)
            connection.execute("ROLLBACK")


def test_every_altered_trigger_is_found_and_its_file_named(path: Path) -> None:
    migrate.init_database(path)
    triggers = [(name, sql) for kind, name, sql in schema(path) if kind == "trigger"]
    assert len(triggers) > 10
    for name, sql in triggers:
        with opened(path) as connection:
            connection.execute("BEGIN")
            connection.execute(f"DROP TRIGGER {name}")
            connection.execute(sql.replace("BEGIN", "BEGIN SELECT 1;", 1))
            with pytest.raises(SchemaError, match=f"trigger {name} was altered") as caught:
                migrate.check(connection)
            assert "migrations/" in (caught.value.hint or "")
            connection.execute("ROLLBACK")


def test_columns_indexes_and_triggers_that_somebody_added_are_no_fault(path: Path) -> None:
    migrate.init_database(path)
    with opened(path) as connection:
        connection.execute("ALTER TABLE memory_events ADD COLUMN colour TEXT")
        connection.execute("CREATE INDEX mine ON memory_events (colour)")
        connection.execute(
            "CREATE TRIGGER mine_too AFTER INSERT ON memory_events BEGIN SELECT 1; END"
        )
        migrate.check(connection)


def test_check_works_on_a_connection_with_a_row_factory_and_writes_nothing(path: Path) -> None:
    migrate.init_database(path)
    with opened(path) as connection:
        connection.row_factory = lambda _, row: {"columns": len(row)}
        connection.execute("PRAGMA query_only = ON")
        migrate.check(connection)
        assert migrate.pending(connection, "state") == ()
