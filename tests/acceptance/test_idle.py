"""A run that finds nothing to do: what it loads, and what it leaves alone."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import memory
import pytest
from commands import run

HEAVY = (
    "qdrant_client",
    "fastembed",
    "onnxruntime",
    "numpy",
    "httpx",
    "tenacity",
    "apscheduler",
    "prometheus_client",
)

LOADED = """
import sys
from syncer.cli import main
code = main(["once"])
print(*sorted(name for name in sys.modules if "." not in name))
sys.exit(code)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory that is in sync, with its settings file."""
    memory.make_memory(tmp_path, ["one", "two"])
    (tmp_path / "syncer.toml").write_text(
        '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\n'
    )
    assert run("once", cwd=tmp_path).code == 0
    return tmp_path


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Return size and hash of every file below `folder`."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_size,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")  # read marks, of any reader
    }


def test_an_idle_run_loads_neither_client_nor_model(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=folder, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "sqlite3" in loaded
    assert not loaded & set(HEAVY)
    assert '"event": "nothing to do"' in done.stderr


def test_a_run_with_something_to_do_loads_them(folder: Path) -> None:
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "qdrant_client" in done.stdout.split()


@pytest.mark.parametrize("age", [0, 3600])
def test_an_idle_run_writes_nothing_whether_it_asks_the_target_or_not(
    folder: Path, age: int
) -> None:
    for lock in folder.glob("memory.db-memory--*.lock"):
        os.utime(lock, (time.time() - age,) * 2)
    before = contents(folder)
    idle = run("once", cwd=folder)
    assert idle.code == 0
    assert idle.log[-1]["event"] == "nothing to do"
    assert idle.log[-1]["looked_at_target"] is bool(age)
    assert contents(folder) == before


def test_the_target_is_asked_again_only_when_it_is_due(folder: Path) -> None:
    for lock in folder.glob("memory.db-memory--*.lock"):
        os.utime(lock, (time.time() - 3600,) * 2)
    assert run("once", cwd=folder).log[-1]["looked_at_target"] is True
    assert run("once", cwd=folder).log[-1]["looked_at_target"] is False


def test_an_idle_run_that_asks_the_target_notices_that_it_is_gone(folder: Path) -> None:
    (folder / "qdrant").rename(folder / "elsewhere")
    gone = run("once", "--set", "target.check_interval=0", cwd=folder)
    assert gone.code == 4
    assert "alias memory is not there" in gone.err
    assert "syncer rebuild" in gone.err


def test_starting_over_builds_the_collection_again(folder: Path) -> None:
    (folder / "qdrant").rename(folder / "elsewhere")
    assert run("once", "--start-over", cwd=folder).code == 0
    settings = memory.settings_for(folder)
    assert set(memory.points_in(settings)) == {1, 2}


def test_changed_settings_are_no_idle_run(folder: Path) -> None:
    changed = run("once", "--set", "source.where=id > 1", cwd=folder)
    assert changed.code == 0
    assert changed.log[-1]["deleted"] == 1
    assert run("once", "--set", "source.where=id > 1", cwd=folder).log[-1]["event"] == (
        "nothing to do"
    )


def test_a_row_that_expires_ends_the_idleness(folder: Path) -> None:
    expiry = datetime.now(UTC) + timedelta(seconds=10)  # the next run is over by then
    memory.execute(
        folder / "memory.db",
        "UPDATE memory_events SET expires_at = ? WHERE id = 1",
        (expiry.isoformat(),),
    )
    assert run("once", cwd=folder).log[-1]["unchanged"] == 1
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"
    time.sleep(max(0.0, (expiry - datetime.now(UTC)).total_seconds()) + 0.01)
    assert run("once", cwd=folder).log[-1]["deleted"] == 1
    assert set(memory.points_in(memory.settings_for(folder))) == {2}
