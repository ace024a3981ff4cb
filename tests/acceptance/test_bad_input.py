"""Whatever is wrong: one clear message, the right exit code, and an untouched state."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import memory
import pytest
from commands import Outcome, run

SETTINGS = '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\n'


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that is in sync."""
    folder = tmp_path_factory.mktemp("synced")
    memory.make_memory(folder, ["one", "two"])
    (folder / "syncer.toml").write_text(SETTINGS)
    assert run("once", cwd=folder).code == 0
    return folder


@pytest.fixture
def folder(synced: Path, tmp_path: Path) -> Path:
    """A copy of it, with a change that waits."""
    copy = tmp_path / "memory"
    shutil.copytree(synced, copy)
    memory.execute(copy / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    return copy


def state(folder: Path) -> list[tuple[object, ...]]:
    """Return everything that syncer has stored."""
    with closing(memory.write(folder / "memory.db")) as connection:
        tables = ("syncer_generations", "syncer_quarantine", "syncer_changes_memory_events")
        return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]


def refused(done: Outcome, code: int, *parts: str) -> None:
    """Assert that a command said one thing, and ended with `code`."""
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    said = [line for line in done.err.splitlines() if line.startswith("syncer: ")]
    failed = [event for event in done.log if event["event"] == "failed"]
    assert len(said) + len(failed) == 1, done.err
    text = f"{failed[0]['message']} {failed[0]['hint']}" if failed else done.err
    for part in parts:
        assert part in text, text


@pytest.mark.rule("SR-06")
def test_a_missing_database_is_named_and_not_made(folder: Path) -> None:
    done = run("once", "--set", f"source.database={folder}/nothing.db", cwd=folder)
    refused(done, 5, "there is no database at", "nothing.db", "syncer init")
    assert not (folder / "nothing.db").exists()


def test_an_empty_file_is_no_database(folder: Path) -> None:
    (folder / "empty.db").touch()
    done = run("once", "--set", f"source.database={folder}/empty.db", cwd=folder)
    refused(done, 5, "empty.db is empty", "syncer init")
    assert (folder / "empty.db").stat().st_size == 0


def test_a_file_that_is_no_database_is_named(folder: Path) -> None:
    (folder / "text.db").write_text("this is no database, but a text of some length" * 50)
    done = run("once", "--set", f"source.database={folder}/text.db", cwd=folder)
    refused(done, 5, "text.db is not a SQLite database")


def test_a_database_without_syncer_s_tables_says_how_to_get_them(folder: Path) -> None:
    memory.execute(folder / "other.db", "CREATE TABLE memory_events (id INTEGER PRIMARY KEY)")
    done = run(
        "once", "--set", f"source.database={folder}/other.db", "--set", "source.content=id",
        "--set", "source.metadata=id", "--set", "source.expires_at=", "--set", "source.deleted=",
        cwd=folder,
    )  # fmt: skip
    refused(done, 4, "syncer init")


@pytest.mark.rule("SR-01")
def test_a_database_that_stays_locked_is_given_up_in_time(folder: Path) -> None:
    before = state(folder)
    with closing(memory.write(folder / "memory.db")) as writer:
        writer.execute("PRAGMA journal_mode = DELETE")
    with closing(memory.write(folder / "memory.db")) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        done = run("once", "--set", "source.busy_timeout=0.5", cwd=folder)
        writer.rollback()
    refused(done, 5, "memory.db is locked by another program", "tried")
    assert state(folder) == before
    assert run("once", cwd=folder).code == 0


@pytest.mark.parametrize(
    ("option", "parts"),
    [
        ("source.table=memory_event", ("no table memory_event", "did you mean memory_events?")),
        ("source.content=contents", ("no column contents", "did you mean content?", "agent")),
        ("source.key=idd", ("no column idd", "source.key")),
        ("source.where=scopes = 1", ("source.where", "no such column")),
    ],
)
def test_a_table_or_column_that_is_not_there_is_named(
    folder: Path, option: str, parts: tuple[str, ...]
) -> None:
    before = state(folder)
    refused(run("once", "--set", option, cwd=folder), 2, *parts)
    assert state(folder) == before


def test_all_problems_of_the_settings_are_reported_at_once(folder: Path) -> None:
    (folder / "syncer.toml").write_text(
        SETTINGS + 'modle = "x"\n[sync]\nwindow_rows = 0\n[target]\ntimeout = "soon"\n'
    )
    done = run("once", cwd=folder, SYNCER_TARGET__COLECTION="x")
    refused(done, 2, "modle", "window_rows", "timeout", "SYNCER_TARGET__COLECTION")
    assert "SYNCER_TARGET__COLLECTION" in done.err


def test_a_settings_file_that_is_not_there_is_named(folder: Path) -> None:
    refused(run("once", "-c", "nothing.toml", cwd=folder), 2, "nothing.toml")


def test_no_settings_at_all_say_what_is_missing(tmp_path: Path) -> None:
    done = run("once", cwd=tmp_path, HOME=str(tmp_path))
    refused(done, 2, "source.database")


def test_a_collection_under_the_alias_s_name_is_left_alone(folder: Path) -> None:
    settings = memory.settings_for(folder)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        connection.client.create_collection("plain", vectors_config={})
    done = run("once", "--set", "target.collection=plain", cwd=folder)
    refused(done, 4, "plain is a collection of its own", "nothing was changed")
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        names = {found.name for found in connection.client.get_collections().collections}
    assert "plain" in names
    assert len(names) == 2


def test_a_model_that_is_not_there_is_named_in_seconds(folder: Path) -> None:
    empty = folder / "model"
    empty.mkdir()
    started = time.monotonic()
    done = run(
        "once", "--start-over", "--set", "embed.provider=fastembed",
        "--set", f"embed.model_path={empty}", cwd=folder,
    )  # fmt: skip
    refused(done, 7, str(empty), "model.onnx", "tokenizer.json")
    assert time.monotonic() - started < 60


HOLD = """
import sys
from qdrant_client import QdrantClient
client = QdrantClient(path=sys.argv[1])
print("open", flush=True)
sys.stdin.read()
client.close()
"""


@pytest.mark.parametrize("command", [["once"], ["search", "one"]])
def test_a_local_folder_that_another_program_holds_is_no_riddle(
    folder: Path, command: list[str]
) -> None:
    before = state(folder)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "qdrant")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        done = run(*command, "--set", "target.lock_wait=0", cwd=folder)
        holder.communicate("")
    refused(done, 8, "is open in another program", "server")
    assert state(folder) == before


def test_a_server_that_is_not_there_is_given_up_in_time(folder: Path) -> None:
    before = state(folder)
    done = run(
        "once", "--set", "target.url=http://127.0.0.1:9", "--set", "target.retry_budget=0.5",
        "--set", "target.collection=other", cwd=folder,
    )  # fmt: skip
    refused(done, 6, "127.0.0.1:9", "tried", "Is Qdrant running")
    assert state(folder)[0] == before[0]


def test_an_error_can_be_had_as_json(folder: Path) -> None:
    done = run("once", "--json", "--set", "source.table=nothing", cwd=folder)
    assert done.code == 2
    assert json.loads(done.out)["exit_code"] == 2


@pytest.mark.parametrize("command", [[], ["nonsense"], ["once", "--nonsense"], ["search"]])
def test_a_wrong_command_line_is_refused_with_2(tmp_path: Path, command: list[str]) -> None:
    done = run(*command, cwd=tmp_path)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_a_bug_says_where_it_is_but_not_what_the_rows_hold(folder: Path) -> None:
    script = (
        "import syncer.cli.once as once, sys\n"
        "def broken(*a, **k): raise KeyError('text of a row')\n"
        "once.once = broken\n"
        "from syncer.cli import main\n"
        "sys.exit(main(['once']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "a bug: KeyError" in done.stderr
    assert "text of a row" not in done.stderr
