"""The migration runner, on real files."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from syncer import migrate
from syncer.errors import ExitCode, SchemaError, SourceBusyError, SourceError
from syncer.migrate import Applied, book
from syncer.schema import OBJECTS, SETS, load, packaged, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534


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


def test_a_new_database_gets_every_migration_in_order_and_wal(path: Path) -> None:
    applied = migrate.init_database(path)
    assert applied == tuple(
        Applied(one.set, one.version, one.name) for name in SETS for one in load(name, packaged())
    )
    with opened(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        migrate.check(connection)


def test_each_migration_is_recorded_with_its_sha256_and_the_time(path: Path) -> None:
    migrate.init_database(path)
    with opened(path) as connection:
        rows = connection.execute(
            "SELECT set_name, version, name, sha256, applied_at FROM syncer_migrations"
        ).fetchall()
    recorded = {(set_name, version): (name, digest) for set_name, version, name, digest, _ in rows}
    assert recorded == {
        (one.set, one.version): (one.name, one.sha256)
        for name in SETS
        for one in load(name, packaged())
    }
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row[4]) for row in rows)


def test_a_second_run_changes_nothing_and_needs_no_write_lock(path: Path) -> None:
    migrate.init_database(path)
    before = schema(path)
    with opened(path) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert migrate.init_database(path, busy_timeout=0) == ()
        writer.execute("ROLLBACK")
    assert schema(path) == before


def test_a_second_run_leaves_the_journal_mode_that_an_operator_chose(path: Path) -> None:
    migrate.init_database(path)
    with opened(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    migrate.init_database(path)
    with opened(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_the_schema_is_the_sum_of_the_migrations(path: Path, tmp_path: Path) -> None:
    migrate.init_database(path)
    by_hand = tmp_path / "by_hand.db"
    with opened(by_hand) as connection:
        for name in SETS:
            for file in sorted((packaged() / name).glob("*.sql")):
                connection.executescript(file.read_text())
    made = {row for row in schema(path) if row[1] != "syncer_migrations"}
    assert made == schema(by_hand)


def test_the_files_of_a_set_are_numbered_from_one_without_a_gap() -> None:
    for name in SETS:
        files = load(name, packaged())
        assert [one.version for one in files] == list(range(1, len(files) + 1))
        assert {one.file for one in files} == {
            f"migrations/{name}/{entry.name}" for entry in (packaged() / name).iterdir()
        }


def test_pending_names_what_is_missing_and_apply_makes_only_that(path: Path, root: Path) -> None:
    migrate.init_database(path, root=root)
    add(root, "state/0091_more.sql", "CREATE TABLE more (id INTEGER PRIMARY KEY);")
    with opened(path) as connection:
        missing = migrate.pending(connection, "state", root=root)
        assert missing == ("migrations/state/0091_more.sql",)
        assert migrate.pending(connection, "canonical", root=root) == ()
        assert migrate.apply(connection, "state", root=root) == (Applied("state", 91, "more"),)
        assert migrate.pending(connection, "state", root=root) == ()


def test_state_alone_makes_no_table_of_the_canonical_set(path: Path) -> None:
    with opened(path) as connection:
        migrate.apply(connection, "state")
        migrate.check(connection, ("state",))
        names = {name for _, name, _ in connection.execute(OBJECTS)}
    assert names == {
        "syncer_migrations",
        "syncer_identity",
        "syncer_deletes",
        "syncer_withheld",
        "syncer_generations",
        "syncer_generations_one_serves_on_insert",
        "syncer_generations_one_serves_on_update",
        "syncer_quarantine",
        "syncer_verify",
    }


def test_a_failing_migration_is_rolled_back_whole_and_leaves_the_earlier_ones(
    path: Path, root: Path
) -> None:
    migrate.init_database(path, root=root)
    add(root, "state/0091_good.sql", "CREATE TABLE good (a);")
    add(
        root,
        "state/0092_bad.sql",
        "CREATE TABLE half (a);\nINSERT INTO half VALUES (1); INSERT INTO nowhere VALUES (2);",
    )
    with opened(path) as connection:
        with pytest.raises(SchemaError, match=r"state/0092_bad\.sql, statement 3: .*nowhere"):
            migrate.apply(connection, "state", root=root)
        assert not connection.in_transaction
        assert migrate.pending(connection, "state", root=root) == ("migrations/state/0092_bad.sql",)
    names = {name for _, name, _ in schema(path)}
    assert "good" in names
    assert "half" not in names


def test_a_failing_first_migration_leaves_an_empty_database(path: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    add(tmp_path, "state/0001_bad.sql", "CREATE TABLE half (a); nonsense;")
    with opened(path) as connection, pytest.raises(SchemaError, match="statement 2"):
        migrate.apply(connection, "state", root=tmp_path)
    assert schema(path) == set()


def test_init_names_file_and_statement_of_a_broken_migration(path: Path, root: Path) -> None:
    add(root, "canonical/0009_bad.sql", "CREATE TABLE fine (a);\n\nCREATE TABL broken (a);")
    with pytest.raises(SchemaError, match=r"canonical/0009_bad\.sql, statement 2") as caught:
        migrate.init_database(path, root=root)
    assert caught.value.exit_code == ExitCode.REFUSED


def test_a_migration_that_failed_can_be_run_again_when_it_is_mended(path: Path, root: Path) -> None:
    migrate.init_database(path, root=root)
    add(root, "state/0091_late.sql", "CREATE TABLE late (a); nonsense;")
    with opened(path) as connection:
        with pytest.raises(SchemaError):
            migrate.apply(connection, "state", root=root)
        add(root, "state/0091_late.sql", "CREATE TABLE late (a);")
        assert migrate.apply(connection, "state", root=root) == (Applied("state", 91, "late"),)


def test_processes_that_initialise_at_once_apply_each_migration_once(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from syncer.migrate import init_database; "
        "sys.stdin.read(1); print(len(init_database(Path(sys.argv[1]), busy_timeout=60)))"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for worker in workers:  # all are waiting for this
        assert worker.stdin is not None
        worker.stdin.write("x")
        worker.stdin.flush()
    counts = [int(worker.communicate()[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert sum(counts) == sum(len(load(name, packaged())) for name in SETS)
    with opened(path) as connection:
        migrate.check(connection)


def test_a_migration_that_another_process_applied_meanwhile_is_not_applied_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = book.read_book  # the moment between look and lock
    answers: Iterator[dict[tuple[str, int], tuple[str, str]]] = iter([{}])
    migrate.init_database(path)
    monkeypatch.setattr(
        "syncer.migrate.run.read_book", lambda given: next(answers, None) or stale(given)
    )
    with opened(path) as connection:
        assert migrate.apply(connection, "state") == ()


def test_a_locked_database_is_busy_after_the_timeout_and_may_be_tried_again(path: Path) -> None:
    with opened(path) as writer:
        writer.execute("CREATE TABLE other (a)")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(SourceBusyError, match=r"memory\.db: .*lock") as caught:
            migrate.init_database(path, busy_timeout=0.05)
        writer.execute("ROLLBACK")
    assert caught.value.may_retry
    assert caught.value.exit_code == ExitCode.SOURCE
    assert len(schema(path)) == 1


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("These are notes, and quite a few of them. " * 100)
    before = path.read_bytes()
    with pytest.raises(SourceError, match=r"memory\.db: not a SQLite database") as caught:
        migrate.init_database(path)
    assert caught.value.exit_code == ExitCode.SOURCE
    assert path.read_bytes() == before


def test_a_folder_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is a folder"):
        migrate.init_database(tmp_path)
    with pytest.raises(SourceError, match="No such file or directory"):
        migrate.init_database(tmp_path / "nowhere" / "memory.db")


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """Make a folder that this process may read but not write, whoever runs the tests."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        migrate.init_database(folder / "there.db")
        (folder / "there.db").chmod(0o444)
        folder.chmod(0o555)
        if as_root := os.geteuid() == 0:
            os.seteuid(NOBODY)
        yield folder
        if as_root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_folder_that_cannot_be_written_is_named_with_the_cause(closed_folder: Path) -> None:
    with pytest.raises(SourceError, match=r"new\.db: cannot be created: Permission denied"):
        migrate.init_database(closed_folder / "new.db")
    with pytest.raises(SourceError, match=r"there\.db: ") as caught:
        migrate.init_database(closed_folder / "there.db")
    assert str(closed_folder) in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("CREATE TABLE memory_events (id INTEGER PRIMARY KEY, body TEXT)", "table called memory"),
        ("CREATE TABLE Memory_Events (id INTEGER PRIMARY KEY)", "table called memory_events"),
        ("CREATE TABLE sync_status (target TEXT, last_id INTEGER)", "table called sync_status"),
        ("CREATE VIEW audit_log AS SELECT 1", "view called audit_log"),
        ("CREATE TABLE syncer_migrations (a)", "table syncer_migrations"),
    ],
)
def test_a_name_that_is_taken_is_refused_and_nothing_is_changed(
    path: Path, sql: str, what: str
) -> None:
    with opened(path) as connection:
        connection.execute(sql)
    before = path.read_bytes()
    with pytest.raises(SchemaError, match=what) as caught:
        migrate.init_database(path)
    assert caught.value.exit_code == ExitCode.REFUSED
    assert caught.value.hint
    assert path.read_bytes() == before


def test_somebody_elses_database_gets_the_tables_and_keeps_its_journal_mode(path: Path) -> None:
    with opened(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    assert migrate.init_database(path)
    with opened(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        migrate.check(connection)


def test_an_empty_file_is_a_new_database(path: Path) -> None:
    path.touch()
    assert migrate.init_database(path)
    with opened(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_statements_keep_triggers_strings_and_comments_whole() -> None:
    text = (
        "-- first; really\nCREATE TABLE a (b); INSERT INTO a VALUES (';');\n"
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; SELECT 2; END;\n"
        "/* a; b */ SELECT 3;\nSELECT 4\n"
    )
    assert list(statements(text)) == [
        "-- first; really\nCREATE TABLE a (b);",
        "INSERT INTO a VALUES (';');",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; SELECT 2; END;",
        "/* a; b */ SELECT 3;",
        "SELECT 4",
    ]


def test_a_database_of_an_older_syncer_is_brought_up_to_date(path: Path, root: Path) -> None:
    with opened(path) as connection:
        older = [one for one in (root / "state").iterdir() if not one.name.startswith("0001_")]
        texts = {one: one.read_text() for one in older}
        for one in older:
            one.unlink()
        migrate.init_database(path, root=root)
        for one, text in texts.items():
            one.write_text(text)
        assert migrate.pending(connection, "state", root=root)
    migrate.init_database(path, root=root)
    with opened(path) as connection:
        assert migrate.pending(connection, "state", root=root) == ()
        migrate.check(connection, ("state",), root=root)
