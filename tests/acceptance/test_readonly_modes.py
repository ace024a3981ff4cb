"""``changes = "updated_at"`` and ``"append_only"`` as their users run them."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import memory
import pytest
from commands import run

from syncer.cli import doctor, once, status
from syncer.errors import SyncerError
from syncer.settings import load

MODES = ("updated_at", "append_only")
SETTINGS = """
[source]
database = "app.db"
table = "notes"
content = "body"
changes = "{mode}"
updated_at = "at"
look_back = 0.0
[embed]
provider = "hash"
dimension = 8
"""
SCHEMA = """
CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT, at DATETIME);
CREATE INDEX notes_at ON notes (at);
INSERT INTO notes (body, at) VALUES ('one', '2020-01-01 00:00:00'), ('two', NULL),
  ('three', '2020-01-02T00:00:00Z');
"""


def make(folder: Path, mode: str, journal: str = "DELETE") -> Path:
    """Make an application's database in `folder`, with settings that only read it."""
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / "app.db")) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.executescript(SCHEMA)
    (folder / "syncer.toml").write_text(SETTINGS.format(mode=mode))
    return folder


@pytest.fixture(params=MODES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An application's database in either mode."""
    return make(tmp_path / "app", request.param)


def execute(folder: Path, sql: str, *values: object) -> None:
    """Run a statement as the application does."""
    memory.execute(folder / "app.db", sql, values)


def ago(seconds: float) -> str:
    """Return the moment so many seconds ago, as SQLite's datetime() gives it."""
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def documents(folder: Path) -> dict[object, object]:
    """Return the text of every point by its id."""
    points = memory.points_in(load(folder / "syncer.toml", environ={}))
    return {key: payload["document"] for key, (payload, _) in points.items()}  # type: ignore[index]


def digest(path: Path) -> str:
    """Return a hash of a file; no connection of this process may be open."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
@pytest.mark.parametrize("mode", MODES)
def test_se_07_the_application_s_database_stays_the_same_to_the_byte(
    tmp_path: Path, mode: str, journal: str
) -> None:
    folder = make(tmp_path / "app", mode, journal)
    before = digest(folder / "app.db")
    settings = load(folder / "syncer.toml", environ={})
    once.dry_run(settings)
    assert [memory.sync_memory(settings).embedded for _ in range(2)] == [3, 0]
    assert status.status(settings).caught_up
    assert doctor.exit_code(doctor.doctor(lambda: settings)) == 0
    assert digest(folder / "app.db") == before
    assert documents(folder) == {1: "one", 2: "two", 3: "three"}
    with closing(sqlite3.connect(folder / "app.db.syncer.db")) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert "syncer_generations" in names
    assert "notes" not in names


def test_what_is_still_in_the_write_ahead_log_is_read_and_stays_there(tmp_path: Path) -> None:
    folder = make(tmp_path / "app", "updated_at", "WAL")
    before = digest(folder / "app.db")
    with closing(sqlite3.connect(folder / "app.db")) as writer:
        with writer:
            writer.execute("INSERT INTO notes (body, at) VALUES ('four', '2020-01-03')")
        size = (folder / "app.db-wal").stat().st_size
        assert run("once", cwd=folder).code == 0
        assert (folder / "app.db-wal").stat().st_size == size > 0
    assert documents(folder)[4] == "four"
    assert before != ""


def test_edits_and_new_rows_come_by_their_stamp(tmp_path: Path) -> None:
    folder = make(tmp_path / "app", "updated_at")
    execute(folder, "UPDATE notes SET at = '2020-01-01' WHERE at IS NULL")
    assert run("once", cwd=folder).code == 0
    assert run("once", cwd=folder).code == 0
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"
    execute(folder, "UPDATE notes SET body = 'uno', at = ? WHERE id = 1", ago(1))
    execute(folder, "INSERT INTO notes (body, at) VALUES ('four', ?)", ago(1))
    behind = status.status(load(folder / "syncer.toml", environ={}))
    assert (behind.caught_up, behind.pending) == (False, 2)
    assert behind.lag_seconds >= 1
    done = json.loads(run("once", "--json", cwd=folder).out)
    assert (done["embedded"], done["exit_code"]) == (2, 0)
    assert documents(folder) == {1: "uno", 2: "two", 3: "three", 4: "four"}
    found = status.status(load(folder / "syncer.toml", environ={}))
    assert (found.caught_up, found.pending, found.lag_seconds) == (True, 0, 0)


def test_a_row_that_is_read_again_is_neither_embedded_nor_written(tmp_path: Path) -> None:
    folder = make(tmp_path / "app", "updated_at")
    settings = load(folder / "syncer.toml", environ={})
    memory.sync_memory(settings)
    done = memory.sync_memory(settings)
    assert done.read >= 1  # the row whose stamp is NULL
    assert (done.unchanged, done.embedded) == (done.read, 0)


def test_where_rows_are_only_added_edits_are_not_looked_for(tmp_path: Path) -> None:
    folder = make(tmp_path / "app", "append_only")
    assert run("once", cwd=folder).code == 0
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"
    execute(folder, "UPDATE notes SET body = 'uno', at = ? WHERE id = 1", ago(1))
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"
    execute(folder, "INSERT INTO notes (body) VALUES ('four')")
    assert json.loads(run("once", "--json", cwd=folder).out)["read"] == 1
    assert documents(folder) == {1: "one", 2: "two", 3: "three", 4: "four"}


def test_a_dry_run_makes_no_state(folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    for command in (["once", "--dry-run"], ["status"], ["doctor"]):
        assert run(*command, cwd=folder).code == 0
    assert sorted(path.name for path in folder.iterdir()) == before
    foreseen = json.loads(run("once", "--dry-run", "--json", cwd=folder).out)
    assert foreseen["embedded"] == 3


def test_state_and_locks_lie_where_the_settings_say(folder: Path) -> None:
    state = folder / "elsewhere" / "state.db"
    assert run("once", "--set", f"source.state={state}", cwd=folder).code == 0
    names = {path.name for path in state.parent.iterdir()}
    assert {"state.db", "state.db-memory.lock"} <= names
    assert not [path for path in folder.iterdir() if path.suffix == ".lock"]


def test_ct_05_an_emptied_table_deletes_nothing_and_is_refused(folder: Path) -> None:
    assert run("once", cwd=folder).code == 0
    execute(folder, "DELETE FROM notes")
    done = run("once", cwd=folder)
    assert done.code == 4
    assert "table notes" in done.err
    assert "is empty, but key 3 was already read" in done.err
    assert documents(folder) == {1: "one", 2: "two", 3: "three"}


def test_another_change_column_is_read_from_its_beginning(tmp_path: Path) -> None:
    folder = make(tmp_path / "app", "updated_at")
    execute(folder, "ALTER TABLE notes ADD COLUMN edited TEXT DEFAULT '2001-01-01'")
    for _ in range(3):
        memory.sync_memory(load(folder / "syncer.toml", environ={}))
    other = load(folder / "syncer.toml", environ={}, options={"source.updated_at": "edited"})
    assert memory.sync_memory(other).unchanged >= 3
    execute(folder, "UPDATE notes SET body = 'uno', edited = '2001-01-02' WHERE id = 1")
    assert memory.sync_memory(other).embedded == 1
    assert documents(folder)[1] == "uno"


def test_doctor_says_what_the_change_column_holds_and_that_it_has_no_index(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "app", "updated_at")
    settings = load(folder / "syncer.toml", environ={})
    checks = {each.subject: each for each in doctor.doctor(lambda: settings)}
    assert checks["stamps"].verdict == "warning"
    assert "1 as ISO 8601, blank, without zone" in checks["stamps"].finding
    assert "1 as NULL" in checks["stamps"].finding
    assert "formats are mixed; 1 rows are looked at in every run" in checks["stamps"].finding
    assert "only read; state in" in checks["source"].finding
    assert "key" not in checks
    execute(folder, "UPDATE notes SET at = '2020-01-01 00:00:00'")
    execute(folder, "DROP INDEX notes_at")
    checks = {each.subject: each for each in doctor.doctor(lambda: settings)}
    assert checks["stamps"].verdict == "ok"
    assert "notes.at has no index" in checks["key"].finding


def test_sr_06_a_wrong_path_makes_neither_database_nor_state(folder: Path) -> None:
    done = run("once", "--set", "source.database=none.db", cwd=folder)
    assert done.code == 5
    assert "there is no database at" in done.err
    assert not list(folder.glob("none.db*"))


def test_sr_06_a_wrong_table_is_refused_with_those_that_are_there(folder: Path) -> None:
    done = run("once", "--set", "source.table=note", cwd=folder)
    assert done.code == 2
    assert "no table note (did you mean notes?)" in done.err


@contextmanager
def world_readable_folder() -> Iterator[Path]:
    """Yield a folder that another user may enter."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@contextmanager
def unprivileged() -> Iterator[None]:
    """Let go of root's right to write everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("mode", MODES)
def test_sr_02_a_wal_database_in_a_folder_that_cannot_be_written_is_refused_with_the_ways_out(
    mode: str,
) -> None:
    with world_readable_folder() as folder:
        make(folder / "app", mode, "WAL")
        states = folder / "states"
        states.mkdir(mode=0o777)
        states.chmod(0o777)
        settings = load(
            folder / "app" / "syncer.toml",
            environ={},
            options={"source.state": str(states / "s.db"), "target.path": str(states / "q")},
        )
        (folder / "app").chmod(0o555)
        try:
            with unprivileged(), pytest.raises(SyncerError) as caught:
                memory.sync_memory(settings)
        finally:
            (folder / "app").chmod(0o755)
        assert caught.value.exit_code == 5
        words = str(caught.value)
        assert "app.db cannot be opened" in words
        assert "write-ahead log" in words
        assert "write to its folder" in words
        assert "keep a writer open" in words
        assert "VACUUM INTO" in words
        assert not list(folder.rglob("app.db-*"))


def test_a_database_in_a_folder_that_cannot_be_written_is_read_without_a_wal() -> None:
    with world_readable_folder() as folder:
        make(folder / "app", "updated_at")
        states = folder / "states"
        states.mkdir()
        states.chmod(0o777)
        (folder / "app").chmod(0o555)
        with unprivileged():
            settings = load(
                folder / "app" / "syncer.toml",
                environ={"XDG_STATE_HOME": str(states)},
                options={"target.path": str(states / "q")},
            )
            assert settings.source.state is not None
            assert settings.source.state.parent == states / "syncer"
            assert memory.sync_memory(settings).embedded == 3
        (folder / "app").chmod(0o755)


@pytest.mark.rule("SR-17")
@pytest.mark.parametrize("mode", MODES)
def test_a_column_that_is_added_reaches_the_old_rows_where_all_are_asked_for(
    tmp_path: Path, mode: str
) -> None:
    folder = make(tmp_path / "app", mode)
    text = SETTINGS.format(mode=mode).replace(
        'content = "body"', 'content = "body"\nmetadata = ["*"]'
    )
    (folder / "syncer.toml").write_text(text)
    settings = load(folder / "syncer.toml", environ={})
    memory.sync_memory(settings)
    execute(folder, "ALTER TABLE notes ADD COLUMN mood TEXT DEFAULT 'calm'")
    done = run("once", "--json", cwd=folder)
    assert (json.loads(done.out)["payload_only"], json.loads(done.out)["embedded"]) == (3, 0)
    points = memory.points_in(settings)
    moods = [payload["metadata"]["mood"] for payload, _ in points.values()]  # type: ignore[index]
    assert moods == ["calm"] * 3
    assert json.loads(run("once", "--json", cwd=folder).out)["payload_only"] == 0
