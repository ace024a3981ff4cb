"""Locks between real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from syncer import lock
from syncer.errors import LockedError, SourceError

HOLDER = """
import sys, pathlib
from syncer import lock
with lock.held(pathlib.Path(sys.argv[1]), "it"):
    print("held", flush=True)
    sys.stdin.read()
"""


def start_holder(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its input ends or it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.rule("CT-22")
def test_a_second_holder_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with start_holder(path) as holder:
        with (
            pytest.raises(LockedError, match=f"it is held .* process {holder.pid} on"),
            lock.held(path, "it"),
        ):
            pytest.fail("two hold the lock")
        holder.communicate("")
    with lock.held(path, "it"):
        pass


@pytest.mark.rule("CT-22")
def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with start_holder(path) as holder:
        holder.kill()
        holder.wait()
    with lock.held(path, "it"):
        pass


def test_a_holder_is_told_how_many_before_it_were_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.held(path, "it") as deaths:
        assert deaths == 0
    for _ in range(2):
        with start_holder(path) as holder:
            holder.kill()
            holder.wait()
    with lock.held(path, "it") as deaths:
        assert deaths == 2
    with lock.held(path, "it") as deaths:
        assert deaths == 0


def test_waiting_ends_when_the_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with start_holder(path) as holder:
        assert holder.stdin is not None
        holder.stdin.close()
        with lock.held(path, "it", wait=30):
            pass


def test_a_lock_says_when_it_was_last_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert lock.touched(path) == 0.0
    lock.touch(path)
    assert not path.exists()
    with lock.held(path, "it"):
        pass
    content = path.read_bytes()
    assert lock.touched(path) > 0
    lock.touch(path)
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(SourceError, match=r"lock file .* cannot be opened"),
        lock.held(tmp_path / "missing" / "lock", "it"),
    ):
        pytest.fail("held a lock in a folder that is not there")
