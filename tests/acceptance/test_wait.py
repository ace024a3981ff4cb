"""``syncer wait``: a writer learns when what it wrote can be searched."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import commands
import memories
import memory
import pytest

from syncer.cli.wait import Waited, wait
from syncer.errors import ExitCode
from syncer.settings import Settings
from syncer.state import utc_now

INSERT = "INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', ?)"
SOON = 0.2  # seconds: enough for some looks


def add(folder: Path, text: str) -> None:
    memory.execute(folder / "memory.db", INSERT, (text,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of three rows that is in sync."""
    return memories.in_sync(tmp_path / "memory")


@contextmanager
def waiting(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``syncer wait`` beside the block; it has begun when the block does."""
    program = (
        "import sys; from syncer.cli import wait, main\n"
        "done = wait._Watch.is_done\n"
        "def seen(self):\n"
        "    answer = done(self); print('looked', file=sys.stderr, flush=True); return answer\n"
        "wait._Watch.is_done = seen\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SYNCER_")}
    with subprocess.Popen(
        [sys.executable, "-c", program, "wait", "--json", *arguments],
        cwd=folder,
        env=inherited,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "looked\n"
            yield process
        finally:
            process.kill()


def answer(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate(timeout=60)
    assert out, err
    said: dict[str, object] = json.loads(out)
    assert said["exit_code"] == process.returncode
    return said


def waited(folder: Path, timeout: float = SOON) -> Waited:
    return wait(memories.settings_of(folder), timeout)


def test_what_is_in_the_collection_already_is_not_waited_for(folder: Path) -> None:
    found = waited(folder, 0)
    assert (found.searchable, found.exit_code) == (True, ExitCode.OK)


def test_a_write_is_waited_for_until_a_run_has_brought_it_in(folder: Path) -> None:
    add(folder, "four")
    with waiting(folder) as process:
        assert process.poll() is None
        assert commands.run("once", cwd=folder).code == 0
        said = answer(process)
    assert (said["searchable"], said["pending"], said["exit_code"]) == (True, 0, 0)
    assert "four" in memories.documents(folder).values()


def test_what_is_written_after_the_call_is_not_waited_for(folder: Path) -> None:
    add(folder, "four")
    with waiting(folder) as process:
        head = sqlite_head(folder)
        add(folder, "five")
        with memory.pipeline_for(memories.settings_of(folder)) as (pipeline, _):
            memory.sync(pipeline, head=head)
        said = answer(process)
    assert (said["searchable"], said["pending"]) == (True, 1)


def sqlite_head(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        (head,) = connection.execute("SELECT max(seq) FROM syncer_changes_memory_events").fetchone()
    return int(head)


def test_a_time_out_says_how_far_behind_the_collection_is(folder: Path) -> None:
    add(folder, "four")
    add(folder, "five")
    done = commands.run("wait", "--timeout", "0.2", "--json", cwd=folder)
    said = json.loads(done.out)
    assert (done.code, said["exit_code"]) == (10, 10)
    assert (said["searchable"], said["pending"]) == (False, 2)
    assert "2 changes or rows" in commands.run("wait", "--timeout", "0", cwd=folder).out


def test_a_memory_that_was_never_synced_times_out(tmp_path: Path) -> None:
    folder = memories.fresh(tmp_path / "m", ["one"])
    found = waited(folder)
    assert (found.exit_code, found.pending) == (ExitCode.TIMED_OUT, None)
    assert "nothing was ever synced" in found.in_words()


def test_it_works_while_another_process_holds_the_local_folder(folder: Path) -> None:
    with memories.holding(folder):
        assert waited(folder).searchable


def test_it_asks_no_qdrant_and_loads_no_model(folder: Path) -> None:
    program = (
        "import sys; from syncer.cli import main; code = main(['wait'])\n"
        "heavy = {'qdrant_client', 'fastembed', 'onnxruntime', 'numpy'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_row_that_has_expired_is_waited_for_until_it_is_taken_out(folder: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat(timespec="milliseconds")
    memory.execute(folder / "memory.db", "UPDATE memory_events SET expires_at = ?", (soon,))
    memory.sync_memory(memories.settings_of(folder))
    while utc_now() <= soon.replace("+00:00", "Z"):
        time.sleep(0.05)
    assert waited(folder).exit_code is ExitCode.TIMED_OUT
    memory.sync_memory(memories.settings_of(folder))
    assert waited(folder, 0).searchable
    assert memories.documents(folder) == {}


def test_quarantined_rows_are_not_waited_for_but_said(folder: Path) -> None:
    memory.execute(folder / "memory.db", INSERT, (b"\xff\xfe",))
    assert commands.run("once", cwd=folder).code == 3
    found = waited(folder, 0)
    assert (found.searchable, found.quarantined) == (True, 1)
    assert "1 rows are quarantined" in found.in_words()


def test_withheld_deletes_can_still_be_searched_and_are_waited_for(tmp_path: Path) -> None:
    folder = memories.fresh(tmp_path / "m", [f"text {number}" for number in range(30)])
    memory.sync_memory(memories.settings_of(folder))
    memory.execute(folder / "memory.db", "DELETE FROM memory_events")
    assert commands.run("once", cwd=folder).code == 9
    found = waited(folder)
    assert (found.exit_code, found.withheld) == (ExitCode.TIMED_OUT, 30)
    assert "confirm-deletes" in found.in_words()
    with waiting(folder) as process:
        assert commands.run("confirm-deletes", cwd=folder).code == 0
        assert answer(process)["searchable"]


def test_both_stores_are_compared_before_anything_counts_as_searchable(folder: Path) -> None:
    memory.execute(folder / "memory.db", "UPDATE syncer_generations SET reconcile = 1")
    found = waited(folder)
    assert (found.exit_code, found.comparing) == (ExitCode.TIMED_OUT, True)
    memory.sync_memory(memories.settings_of(folder))
    assert waited(folder, 0).searchable


def test_a_generation_that_takes_over_meanwhile_is_no_error(folder: Path) -> None:
    add(folder, "four")
    with waiting(folder) as process:
        assert commands.run("once", "--start-over", cwd=folder).code == 0
        said = answer(process)
    assert said["searchable"]
    assert said["generation"] == serving(folder)


def serving(folder: Path) -> str:
    with memory.opening.opened(memories.settings_of(folder)) as sides:
        known = sides.store.serving(sides.alias)
    assert known is not None
    return known.generation


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(folder: Path, number: signal.Signals) -> None:
    add(folder, "four")
    with waiting(folder) as process:
        process.send_signal(number)
        said = answer(process)
    assert said["exit_code"] == 128 + number
    assert not said["searchable"]


def settings_by(folder: Path, mode: str) -> Settings:
    options = {"source.changes": mode, "source.state": str(folder / "state.db")}
    return memory.settings_for(folder, **options)


@pytest.mark.parametrize("mode", ["updated_at", "append_only"])
def test_databases_that_are_only_read_are_waited_for_too(tmp_path: Path, mode: str) -> None:
    memory.make_memory(tmp_path, ["one"])
    settings = settings_by(tmp_path, mode)
    assert wait(settings, SOON).exit_code is ExitCode.TIMED_OUT
    memory.sync_memory(settings)
    assert wait(settings, 0).searchable
    add(tmp_path, "two")
    found = wait(settings, SOON)
    assert (found.exit_code, found.pending) == (ExitCode.TIMED_OUT, 1)
    memory.sync_memory(settings)
    assert wait(settings, 0).searchable


def test_a_state_file_that_is_made_only_then_is_found(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    (tmp_path / "syncer.toml").write_text(
        memories.SETTINGS.replace("[embed]", 'changes = "append_only"\nstate = "s.db"\n[embed]')
    )
    with waiting(tmp_path) as process:
        assert commands.run("once", cwd=tmp_path).code == 0
        assert answer(process)["searchable"]
