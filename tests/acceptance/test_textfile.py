"""One-shot runs leave their metrics in a file for node exporter."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import foreigners
import memory
import pytest
from commands import run
from packaged_tools import ran

from syncer.cli.report import choose, with_textfile
from syncer.errors import ExitCode
from syncer.model import Position
from syncer.result import SyncResult

SETTINGS = """
[source]
database = "memory.db"
[embed]
provider = "hash"
[metrics]
textfile = "metrics/syncer.prom"
"""
NOWHERE = ("--set", "target.path=", "--set", "target.url=http://127.0.0.1:9",
           "--set", "target.retry_budget=0")  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory with three rows, and settings that name a textfile."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    (tmp_path / "syncer.toml").write_text(SETTINGS)
    (tmp_path / "metrics").mkdir()
    return tmp_path


def textfile(folder: Path) -> Path:
    """Return the file that the settings name."""
    return folder / "metrics" / "syncer.prom"


def values(folder: Path) -> dict[str, float]:
    """Return what the file says, by series."""
    lines = textfile(folder).read_text().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


@pytest.mark.rule("OP-02")
def test_a_run_leaves_what_it_did_and_counters_go_on_with_the_next(folder: Path) -> None:
    before = time.time()
    assert run("once", cwd=folder).code == 0
    first = values(folder)
    assert first['syncer_rows_total{op="embedded"}'] == 3
    assert first["syncer_lag_rows"] == first["syncer_lag_seconds"] == 0
    assert first["syncer_consecutive_failures"] == 0
    assert before <= first["syncer_last_success_timestamp_seconds"] <= time.time()
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    assert run("once", cwd=folder).code == 0
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"
    then = values(folder)
    assert then['syncer_rows_total{op="embedded"}'] == 4
    assert then['syncer_runs_total{result="succeeded"}'] == 3
    assert then['syncer_stage_seconds_count{stage="read"}'] == 2
    assert then["syncer_last_run_timestamp_seconds"] > first["syncer_last_run_timestamp_seconds"]


@pytest.mark.rule("OP-02")
def test_commands_that_come_after_one_another_leave_each_others_figures(folder: Path) -> None:
    success = "syncer_last_success_timestamp_seconds"
    assert run("once", cwd=folder).code == 0
    first = values(folder)
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    assert run("verify", cwd=folder).code == 0
    seen = values(folder)
    assert first[success] < seen["syncer_last_verify_timestamp_seconds"] <= time.time()
    assert seen['syncer_drift_points{kind="stale"}'] == 0
    assert seen["syncer_lag_rows"] == 1
    assert seen['syncer_rows_total{op="embedded"}'] == 3
    assert seen[success] == first[success], "a comparison brings nothing in"
    assert run("once", cwd=folder).code == 0
    then = values(folder)
    assert (
        then["syncer_last_verify_timestamp_seconds"]
        == (seen["syncer_last_verify_timestamp_seconds"])
    )
    assert run("rebuild", cwd=folder).code == 0
    built = values(folder)
    assert (
        built["syncer_last_verify_timestamp_seconds"]
        > (then["syncer_last_verify_timestamp_seconds"])
    )
    assert built[success] > then[success]
    assert built['syncer_rows_total{op="embedded"}'] == 7
    assert run("rollback", cwd=folder).code == 0
    assert run("recover", cwd=folder).code == 0
    assert run("once", cwd=folder).code == 0
    last = values(folder)
    for before, after in ((first, seen), (seen, then), (then, built), (built, last)):
        assert {name for name in before if name not in after} == set()
        fell = {name for name in before if "_total" in name and after[name] < before[name]}
        assert fell == set()
    assert last['syncer_runs_total{result="succeeded"}'] == 6
    assert last["syncer_lag_rows"] == last["syncer_lag_seconds"] == 0
    checked = ran("promtool", "check", "metrics", given=textfile(folder).read_text())
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.rule("OP-02")
def test_rows_that_wait_for_a_word_are_told_of_when_it_is_given(folder: Path) -> None:
    few = ("--set", "sync.max_deletes=0")
    assert run("once", *few, cwd=folder).code == 0
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = x'ff' WHERE id = 1")
    memory.execute(folder / "memory.db", "DELETE FROM memory_events WHERE id = 2")
    assert run("once", *few, cwd=folder).code == 9
    waits = values(folder)
    assert run("confirm-deletes", *few, cwd=folder).code == 0
    assert values(folder)["syncer_withheld_deletes"] == 0
    assert values(folder)['syncer_rows_total{op="deleted"}'] == 2
    assert run("quarantine", "retry", cwd=folder).code == 0
    assert values(folder)["syncer_quarantined_rows"] == 1
    assert run("quarantine", "forget", cwd=folder).code == 0
    found = values(folder)
    assert found["syncer_quarantined_rows"] == 0
    for name in ('syncer_runs_total{result="succeeded"}', "syncer_last_run_timestamp_seconds"):
        assert found[name] == waits[name]


@pytest.mark.rule("OP-02")
def test_a_comparison_that_ends_well_does_not_end_a_row_of_failures(folder: Path) -> None:
    assert run("once", cwd=folder).code == 0
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    assert run("once", *NOWHERE, cwd=folder).code == 6
    assert run("verify", cwd=folder).code == 0
    assert values(folder)["syncer_consecutive_failures"] == 1
    assert run("verify", *NOWHERE, cwd=folder).code == 6
    assert values(folder)["syncer_consecutive_failures"] == 2
    assert values(folder)['syncer_errors_total{kind="target"}'] == 2


def test_what_a_run_has_not_counted_stays_as_the_last_one_has_counted(folder: Path) -> None:
    assert run("once", cwd=folder).code == 0
    foreigners.put(memory.settings_for(folder), {77: {"document": "theirs"}})
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    assert run("once", cwd=folder).code == 0
    assert values(folder)["syncer_uncounted_points"] == 1
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"
    assert values(folder)["syncer_uncounted_points"] == 1


def test_runs_that_end_together_lose_nothing_of_each_other(folder: Path) -> None:
    settings = memory.settings_for(folder, **{"metrics.textfile": str(textfile(folder))})
    reports = [
        with_textfile(choose(settings, as_json=False), settings, whole=True) for _ in range(12)
    ]
    for report in reports:
        report.window(SyncResult("memory", Position("memory"), read=5, embedded=5))
        report.ended(ExitCode.OK)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda report: report.close(), reports))
    found = values(folder)
    assert found['syncer_rows_total{op="embedded"}'] == 60
    assert found['syncer_runs_total{result="succeeded"}'] == 12


def test_a_state_that_cannot_be_read_is_told(folder: Path) -> None:
    assert run("once", cwd=folder).code == 0
    assert values(folder)["syncer_state_readable"] == 1
    (folder / "memory.db").rename(folder / "away.db")
    assert run("once", cwd=folder).code == 5
    found = values(folder)
    assert found["syncer_state_readable"] == 0
    assert "syncer_lag_rows" not in found
    assert found["syncer_last_success_timestamp_seconds"] > 0


@pytest.mark.rule("OP-02")
def test_a_run_that_fails_moves_the_last_run_and_leaves_the_last_success(folder: Path) -> None:
    assert run("once", cwd=folder).code == 0
    good = values(folder)
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    assert run("once", *NOWHERE, cwd=folder).code == 6
    assert run("once", *NOWHERE, cwd=folder).code == 6
    bad = values(folder)
    success, last = "syncer_last_success_timestamp_seconds", "syncer_last_run_timestamp_seconds"
    assert bad[success] == good[success]
    assert bad[last] > good[last]
    assert bad["syncer_consecutive_failures"] == 2
    assert bad['syncer_errors_total{kind="target"}'] == 2
    assert bad["syncer_lag_rows"] == 1
    assert bad["syncer_lag_seconds"] > 0
    assert run("once", cwd=folder).code == 0
    assert values(folder)["syncer_consecutive_failures"] == 0


@pytest.mark.rule("OP-04")
def test_a_first_run_that_fails_claims_neither_a_success_nor_a_lag(folder: Path) -> None:
    assert run("once", *NOWHERE, cwd=folder).code == 6
    found = values(folder)
    assert "syncer_last_success_timestamp_seconds" not in found
    assert "syncer_lag_rows" not in found
    assert found["syncer_last_run_timestamp_seconds"] > 0


def test_quarantine_and_withheld_deletes_are_told(folder: Path) -> None:
    assert run("once", "--set", "sync.max_deletes=0", cwd=folder).code == 0
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = x'ff' WHERE id = 1")
    memory.execute(folder / "memory.db", "DELETE FROM memory_events WHERE id = 2")
    assert run("once", "--set", "sync.max_deletes=0", cwd=folder).code == 9
    found = values(folder)
    assert found["syncer_quarantined_rows"] == 1
    assert found["syncer_withheld_deletes"] == 1
    assert found['syncer_runs_total{result="succeeded"}'] == 2


def test_the_file_is_replaced_in_one_step_and_nothing_else_is_left(folder: Path) -> None:
    path = textfile(folder)
    path.write_text("this is } no metric\n")
    reader = path.open()
    before = os.umask(0o077)
    try:
        assert run("once", cwd=folder).code == 0
    finally:
        os.umask(before)
    with reader:
        assert reader.read() == "this is } no metric\n"
    assert [file.name for file in path.parent.iterdir()] == ["syncer.prom"]
    assert values(folder)['syncer_rows_total{op="embedded"}'] == 3
    assert "process_" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644, "node exporter is another user"


def test_a_file_that_cannot_be_written_is_a_warning(folder: Path) -> None:
    (folder / "metrics").rmdir()
    done = run("once", cwd=folder)
    assert done.code == 0
    (warning,) = [event for event in done.log if event["event"] == "risk"]
    assert "syncer.prom cannot be written: No such file or directory" in str(warning["message"])


def test_an_idle_run_loads_the_library_only_for_the_file(folder: Path) -> None:
    assert run("once", cwd=folder).code == 0
    program = (
        "import sys; from syncer.cli import main; code = main(sys.argv[1:]); "
        "print('prometheus_client' in sys.modules); sys.exit(code)"
    )
    for arguments, loaded in (
        (["once"], "True"), (["once", "--set", "metrics.textfile="], "False")
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == loaded
