"""SIGTERM and SIGINT to a real ``syncer once``, at moments that the tests choose."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import memory
import pytest
from qdrant_http import started

from syncer import lock
from syncer.settings import Settings
from syncer.state import StateStore

SIGNALS = [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
PATIENCE = 60  # seconds; only a test that fails needs them
ROWS = 200

SLOW = """
import signal, sys, time
from syncer.cli import main
from syncer.embed.hashing import HashEmbedder

def embed(self, texts, counts=(), real=HashEmbedder.embed):
    print("embedding", file=sys.stderr, flush=True)
    while signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        time.sleep(0.01)
    print("asked", file=sys.stderr, flush=True)
    time.sleep(float(sys.argv[1]))
    return real(self, texts)

HashEmbedder.embed = embed
sys.exit(main(["once", "--json"]))
"""


LOADING = """
import signal, sys
from syncer.__main__ import main

class Asked:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            signal.raise_signal(int(sys.argv.pop()))

sys.meta_path.insert(0, Asked())
main()
"""
SLOW_READS = {"kind": "slow", "seconds": 60, "times": None, "method": "POST", "path": "*/scroll"}


class Run:
    """A ``syncer once --json`` that is under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []

    def wait_for(self, text: str) -> None:
        """Read what it says until it says `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return
        pytest.fail(f"never said {text}: {self.lines}")

    def end(self) -> tuple[int, str, list[dict[str, object]]]:
        """Wait for its end; return its exit code, its output and the last events that it logged."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, [json.loads(line) for line in err.splitlines()]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A memory whose first run has many small windows before it."""
    memory.make_memory(tmp_path, [f"memory {number}" for number in range(1, ROWS + 1)])
    (tmp_path / "syncer.toml").write_text(
        '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\ndimension = 8\n'
        "[sparse]\nb = 0.0\n[sync]\nwindow_rows = 1\n"
    )
    return memory.settings_for(tmp_path)


@contextmanager
def running(command: Sequence[str], settings: Settings, **environment: str) -> Iterator[Run]:
    """Start a process on the memory, and see that it is gone in the end."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=settings.source.database.parent,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Run(process)
        finally:
            process.kill()


def once(settings: Settings, **environment: str) -> AbstractContextManager[Run]:
    """Start ``syncer once --json``."""
    return running(["-m", "syncer", "once", "--json"], settings, **environment)


def completed(settings: Settings, done: int) -> None:
    """Assert that `done` rows are in, that the position says so, and that the rest can follow."""
    with memory.pipeline_for(settings) as (pipeline, connection):
        assert set(memory.all_points(connection)) == set(range(1, done + 1))
        assert pipeline.state.position().last_id == str(done)
        assert memory.sync(pipeline).embedded == ROWS - done
        assert len(memory.all_points(connection)) == ROWS


def nothing_noted(settings: Settings) -> None:
    """Assert that the state knows of no generation."""
    with closing(StateStore(settings.source.database)) as store:
        assert store.generations("memory") == []


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_run_ends_between_two_windows_and_the_next_goes_on(
    settings: Settings, number: signal.Signals, code: int
) -> None:
    with once(settings) as run:
        run.wait_for('"window"')
        run.process.send_signal(number)
        returned, out, events = run.end()
    result = json.loads(out)
    assert returned == result["exit_code"] == code
    assert (result["caught_up"], events[-1]["event"]) == (False, "run")
    assert 0 < result["read"] < ROWS
    completed(settings, result["read"])


def test_the_window_in_flight_is_finished(settings: Settings) -> None:
    with running(["-c", SLOW, "0"], settings) as run:
        run.wait_for("embedding")
        run.process.send_signal(signal.SIGTERM)
        run.wait_for("asked")
        returned, out, _ = run.end()
    assert returned == json.loads(out)["exit_code"] == 143
    completed(settings, 1)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_run_at_once(settings: Settings, second: signal.Signals) -> None:
    with running(["-c", SLOW, "3600"], settings) as run:
        run.wait_for("embedding")
        run.process.send_signal(signal.SIGTERM)
        run.wait_for("asked")
        run.process.send_signal(second)
        returned, out, _ = run.end()
    assert (returned, out) == (-second, "")
    assert memory.sync_memory(settings).embedded == ROWS


def stopped(run: Run, number: signal.Signals, code: int) -> None:
    """Send the signal to a run that waits, and assert that it ends and says why."""
    run.process.send_signal(number)
    returned, out, events = run.end()
    assert returned == code, events
    (event,) = [event for event in events if event["event"] == "stopped"]
    assert event["exit_code"] == code
    assert str(event["message"]).startswith(f"stopped by {number.name} while waiting")
    assert json.loads(out) == {
        "error": "Stopped", "message": event["message"], "hint": None, "exit_code": code,
    }  # fmt: skip


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_run_that_waits_to_try_again_ends(
    settings: Settings, number: signal.Signals, code: int
) -> None:
    nowhere = {"SYNCER_TARGET__URL": "http://127.0.0.1:9", "SYNCER_TARGET__RETRY_BUDGET": "3600"}
    with once(settings, **nowhere) as run:
        run.wait_for("trying again")
        stopped(run, number, code)
    nothing_noted(settings)


def test_a_run_whose_server_does_not_answer_ends(settings: Settings) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        silent = {"SYNCER_TARGET__URL": url, "SYNCER_TARGET__TIMEOUT": "3600"}
        run = stack.enter_context(once(settings, **silent))
        server.settimeout(PATIENCE)
        stack.enter_context(server.accept()[0])
        stopped(run, signal.SIGTERM, 143)
    nothing_noted(settings)


def test_a_run_that_waits_for_a_lock_ends(settings: Settings) -> None:
    assert settings.target.path is not None
    settings.target.path.mkdir()
    path = settings.target.path / ".syncer.lock"
    with lock.held(path, "it"), once(settings, SYNCER_TARGET__LOCK_WAIT="3600") as run:
        wait_until_open(run.process.pid, path)
        stopped(run, signal.SIGTERM, 143)
    nothing_noted(settings)
    assert memory.sync_memory(settings).embedded == ROWS


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_program_that_is_still_being_loaded_ends_and_says_nothing(
    settings: Settings, number: signal.Signals, code: int
) -> None:
    with running(["-c", LOADING, str(int(number))], settings) as run:
        out, err = run.process.communicate(timeout=PATIENCE)
    assert (out, err) == ("", "")
    by_itself = number is signal.SIGINT  # what SIGTERM ends, a shell calls 143
    assert run.process.returncode == (code if by_itself else -number)


@pytest.mark.parametrize(
    ("number", "code"), [SIGNALS[0], pytest.param(*SIGNALS[1], marks=pytest.mark.long)]
)
def test_a_comparison_ends_at_once_and_nothing_is_noted(
    tmp_path: Path, settings: Settings, number: signal.Signals, code: int
) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(started(tmp_path / "storage"))
        there = {"SYNCER_TARGET__URL": server.url, "SYNCER_TARGET__TIMEOUT": "3600"}
        first = stack.enter_context(once(settings, SYNCER_SYNC__WINDOW_ROWS="500", **there))
        assert first.end()[0] == 0
        server.faults(SLOW_READS)
        command = ["-m", "syncer", "verify", "--json"]
        run = stack.enter_context(running(command, settings, **there))
        deadline = time.monotonic() + PATIENCE
        while not server.faults()["happened"]:
            assert time.monotonic() < deadline, "it never compares"
            time.sleep(0.02)
        stopped(run, number, code)
    with closing(StateStore(settings.source.database)) as store:
        (known,) = store.generations("memory")
        assert store.verified(known.generation) is None


def wait_until_open(pid: int, path: Path) -> None:
    """Wait until the process has the file open."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if entry.exists() and entry.resolve() == path.resolve():
                return
        time.sleep(0.02)
    pytest.fail(f"the process never opened {path}")
