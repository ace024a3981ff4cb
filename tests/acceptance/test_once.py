"""``syncer once`` as its users run it: foreseen, counted, in turns, on a terminal and in a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import memory
import pytest
from commands import Outcome, run
from memories import (
    another_collection,
    change,
    contents,
    fresh,
    in_sync,
    no_collection,
    settings_of,
)

from syncer import lock

NOWHERE = "target.url=http://127.0.0.1:9"  # the discard port, where nothing listens


@pytest.fixture
def synced(tmp_path: Path) -> Path:
    """A memory that is in sync."""
    return in_sync(tmp_path / "memory")


def foreseen(folder: Path, *options: str) -> dict[str, object]:
    """Return what a dry run says, having seen that it writes nothing."""
    before = contents(folder)
    done = run("once", "--dry-run", "--json", *options, cwd=folder)
    assert done.code == 0, done.err
    assert contents(folder) == before
    return dict(json.loads(done.out))


@pytest.mark.parametrize("options", [(), ("--set", "source.where=id > 1")])
def test_a_dry_run_writes_nothing_and_foresees_what_the_run_does(
    synced: Path, options: tuple[str, ...]
) -> None:
    change(synced)
    expected = foreseen(synced, *options)
    done = run("once", "--json", *options, cwd=synced)
    assert json.loads(done.out) == expected
    assert (expected["embedded"], expected["exit_code"]) == (1 if options else 2, 0)


def test_a_dry_run_foresees_the_first_run_and_makes_no_folder(tmp_path: Path) -> None:
    fresh(tmp_path, ["one", "", "three"])
    before = contents(tmp_path)
    words = run("once", "--dry-run", cwd=tmp_path)
    assert words.out.startswith("would do: 3 rows read: 2 embedded, 1 without text")
    assert contents(tmp_path) == before
    done = json.loads(run("once", "--json", cwd=tmp_path).out)
    assert (done["read"], done["embedded"], done["empty"]) == (3, 2, 1)


@pytest.mark.parametrize("damage", [another_collection, no_collection])
def test_a_dry_run_refuses_what_the_run_refuses(
    synced: Path, damage: Callable[[Path], None]
) -> None:
    damage(synced)
    change(synced)
    before = contents(synced)
    assert run("once", "--dry-run", cwd=synced).code == 4
    assert contents(synced) == before


def test_the_result_as_json_is_one_object_that_counts_what_was_done(synced: Path) -> None:
    change(synced)
    done = run("once", "--json", "--set", "sync.window_rows=1", cwd=synced)
    assert done.code == 0
    assert len(done.out.splitlines()) == 1
    result = json.loads(done.out)
    assert {name: result[name] for name in ("read", "embedded", "payload_only", "deleted")} == {
        "read": 4, "embedded": 2, "payload_only": 1, "deleted": 1,
    }  # fmt: skip
    assert (result["caught_up"], result["exit_code"]) == (True, 0)
    assert [event["event"] for event in done.log] == ["window"] * 4 + ["run"]
    assert set(memory.points_in(settings_of(synced))) == {1, 2, 4}

    idle = run("once", "--json", cwd=synced)
    assert idle.code == 0
    nothing = json.loads(idle.out)
    assert nothing.keys() == result.keys()
    assert (nothing["read"], nothing["caught_up"]) == (0, True)
    assert nothing["change_seq"] == result["change_seq"]


def test_an_error_as_json_has_the_exit_code_too(synced: Path) -> None:
    change(synced)
    options = ("--set", NOWHERE, "--set", "target.retry_budget=0")
    done = run("once", "--json", *options, cwd=synced)
    assert done.code == json.loads(done.out)["exit_code"] == 6


def test_two_runs_at_once_take_turns(synced: Path) -> None:
    change(synced)
    both = [start("once", "--json", cwd=synced) for _ in range(2)]
    results = []
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        results.append(json.loads(out))
    assert sorted(result["embedded"] for result in results) == [0, 2]
    assert set(memory.points_in(settings_of(synced))) == {1, 2, 4}


@pytest.mark.parametrize("held", ["memory.db-memory.lock", "memory.db-{generation}.lock"])
def test_a_run_that_may_not_wait_names_who_holds_the_lock(synced: Path, held: str) -> None:
    change(synced)
    with memory.pipeline_for(settings_of(synced)) as (pipeline, _):
        before = pipeline.state.position()
    path = synced / held.format(generation=before.generation)
    with lock.held(path, "it"):
        done = run("once", "--set", "target.lock_wait=0", cwd=synced)
    assert done.code == 8
    assert f"process {os.getpid()} on" in done.err
    assert str(path) in done.err
    with memory.pipeline_for(settings_of(synced)) as (pipeline, _):
        assert pipeline.state.position() == before


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start ``syncer`` and do not wait for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "syncer", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# terminal

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")


def on_terminal(*arguments: str, cwd: Path, **environment: str) -> tuple[Outcome, str]:
    """Run ``syncer`` with stderr on a terminal; return its outcome and what the terminal got."""
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "syncer", *arguments],
        cwd=cwd,
        env={**inherited, "TERM": "xterm-256color", "COLUMNS": "120", **environment},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # EIO: the other side hung up
            while piece := os.read(ours, 4096):
                shown += piece
        os.close(ours)
        out, _ = process.communicate(timeout=60)
    return Outcome(process.returncode, out, ""), shown.decode()


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A memory with so many small windows that a bar has time to move."""
    folder = fresh(tmp_path, [f"memory {number}" for number in range(60)])
    with (folder / "syncer.toml").open("a") as settings:
        settings.write("[sync]\nwindow_rows = 1\n")
    return folder


def test_on_a_terminal_a_run_shows_a_bar_with_rate_and_time_left(many: Path) -> None:
    done, shown = on_terminal("once", cwd=many)
    assert done.code == 0
    assert re.fullmatch(r"60 rows read: 60 embedded \(\d+\.\d s\)\n", done.out)
    assert re.search(r"syncing \S+ +\d+/60 \d+ rows/s 0:00:\d\d 0:00:\d\d", ESCAPE.sub("", shown))
    assert COLOUR.search(shown)
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back
    assert "{" not in shown


def test_without_colour_the_bar_has_none(many: Path) -> None:
    done, shown = on_terminal("once", cwd=many, NO_COLOR="1")
    assert done.code == 0
    assert "rows/s" in shown
    assert not COLOUR.search(shown)


def test_a_run_that_fails_gives_the_terminal_back(many: Path) -> None:
    path = many / "memory.db"
    with closing(memory.write(path)) as connection, connection:
        connection.execute(
            "CREATE TRIGGER no BEFORE UPDATE ON syncer_generations WHEN NEW.last_id = '30' "
            "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
    done, shown = on_terminal("once", cwd=many)
    assert done.code == 5
    assert "29/60" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert "not this one" in shown[shown.rindex("\x1b[?25h") :]


def test_in_a_pipe_there_are_json_lines_and_no_bar(many: Path) -> None:
    done = run("once", cwd=many)
    assert (done.code, done.out) == (0, "")
    assert all(line.startswith("{") for line in done.err.splitlines())
    assert [event["event"] for event in done.log] == ["window"] * 61 + ["run"]
    assert "\x1b" not in done.err
