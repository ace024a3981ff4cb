"""``syncer demo`` as a user runs it: the real model, the real local mode, a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from syncer import lock
from syncer.cli import demo, demo_folder, main
from syncer.errors import ExitCode, SyncerError

ELSEWHERE = "http://127.0.0.1:9"  # nobody listens on the discard port


def run(
    *words: str, cwd: Path, options: Sequence[str] = (), **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-m", "syncer", *words],
        cwd=cwd,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(Path.cwd()), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def blocks(output: str) -> dict[str, list[str]]:
    """Return what stands below each command; below those that came twice, the last."""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("$ "):
            command = line
            found[command] = []
        elif line:
            found[command].append(line)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def twice(place: Path) -> list[subprocess.CompletedProcess[str]]:
    """Two runs in one folder, with settings around that lead elsewhere."""
    environ = {"XDG_CACHE_HOME": str(place / "cache"), "SYNCER_TARGET__URL": ELSEWHERE}
    return [run("demo", cwd=place, **environ) for _ in range(2)]


def test_the_demo_ends_well_and_so_does_a_second_one_in_the_same_folder(
    twice: list[subprocess.CompletedProcess[str]],
) -> None:
    assert [(done.returncode, done.stderr) for done in twice] == [(0, ""), (0, "")]
    assert all("All of it held" in done.stdout for done in twice)


def test_its_output_is_plain(twice: list[subprocess.CompletedProcess[str]]) -> None:
    assert "\x1b" not in twice[0].stdout
    assert "\r" not in twice[0].stdout
    assert "WRONG" not in twice[0].stdout


def test_three_questions_find_the_right_row_first(
    twice: list[subprocess.CompletedProcess[str]],
) -> None:
    before, _, _ = twice[1].stdout.partition("$ sqlite3")
    for question, beginning in (
        (demo.DELETED, "Recursively delete a directory tree"),
        (demo.EDITED, "Choose a random element from a non-empty sequence"),
        (demo.EXPIRED, "Lambdas Lambda expressions"),
    ):
        hit, verdict = blocks(before)[f'$ syncer search -n 1 "{question.text}"']
        assert beginning in hit
        assert verdict == f"-> the first hit is {question.source}"


def test_after_an_edit_a_delete_and_an_expiry_the_answers_follow(
    twice: list[subprocess.CompletedProcess[str]],
) -> None:
    _, _, after = twice[1].stdout.partition("$ sleep 2\n\n")
    said = blocks(after)
    assert "lunch" in said[f'$ syncer search -n 1 "{demo.NEW_MEANING.text}"'][0]
    for question, gone in (
        (demo.DELETED, "Recursively delete"),
        (demo.EDITED, "random element"),
        (demo.EXPIRED, "Lambda"),
    ):
        assert gone not in said[f'$ syncer search -n 1 "{question.text}"'][0]
    assert after.startswith("$ syncer once\n3 rows read: 1 embedded, 2 taken out")


def test_the_third_run_does_nothing_and_says_so(
    twice: list[subprocess.CompletedProcess[str]],
) -> None:
    last = blocks(twice[1].stdout)["$ syncer once"]
    assert last[0].startswith("nothing to do: ")
    assert last[1] == "-> a third run does nothing"


@pytest.mark.usefixtures("twice")
def test_the_folder_is_left_to_play_with(place: Path) -> None:
    status = run("status", cwd=place / "demo-memory")
    assert status.returncode == 0
    assert "caught up" in status.stdout


def test_a_claim_that_does_not_hold_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = demo_folder.SETTINGS + '\n[embed]\nprovider = "hash"\n'  # knows no meaning
    monkeypatch.setattr(demo_folder, "SETTINGS", blind)
    with pytest.raises(SyncerError, match=r"is not so: the first hit is random\.choice") as caught:
        demo.demo(tmp_path / "blind")
    assert caught.value.exit_code == ExitCode.BUG
    assert "not found any more" not in caught.value.message
    assert "-> WRONG" in capsys.readouterr().out


@pytest.mark.parametrize(
    "files",
    [
        {"notes.txt": "mine"},
        {"syncer.toml": "[source]\n"},
        {"syncer.toml": f"{demo_folder.MARKER}\n", "notes.txt": "mine"},
        {"memory.db": "mine", "memory.db-wal": "mine"},
        {"qdrant/meta.json": "mine"},
        {"demo.lock": "", "memory.db": "mine"},
    ],
    ids="+".join,
)
def test_a_folder_with_anything_else_in_it_is_refused_and_not_touched(
    tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    before = tree(tmp_path)
    assert main(["demo", str(tmp_path)]) == ExitCode.USAGE
    assert tree(tmp_path) == before
    said = capsys.readouterr()
    assert "holds what the demo has not made" in said.err
    assert not said.out


def test_what_an_earlier_demo_made_is_removed_and_nothing_that_it_links_to(
    tmp_path: Path,
) -> None:
    mine = tmp_path / "mine"
    folder = tmp_path / "demo"
    (mine / "inside").mkdir(parents=True)
    folder.mkdir()
    (folder / "syncer.toml").write_text(demo_folder.SETTINGS)
    (folder / "memory.db-shm").write_text("old")
    (folder / "qdrant").symlink_to(mine)
    with demo_folder.anew(folder) as settings:
        assert settings.source.database == folder / "memory.db"
        assert sorted(path.name for path in folder.iterdir()) == ["demo.lock", "syncer.toml"]
    assert (mine / "inside").is_dir()


def test_a_file_is_no_folder_for_the_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    assert main(["demo", str(tmp_path / "file")]) == ExitCode.USAGE
    assert (tmp_path / "file").read_text() == "mine"
    assert "Not a directory" in capsys.readouterr().err


def test_a_folder_in_which_a_demo_runs_is_refused_and_its_holder_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "syncer.toml").write_text(demo_folder.SETTINGS)
    (tmp_path / "memory.db").write_text("in use")
    with lock.held(tmp_path / "demo.lock", "the folder"):
        assert main(["demo", str(tmp_path)]) == ExitCode.LOCKED
    assert (tmp_path / "memory.db").read_text() == "in use"
    assert f"process {os.getpid()}" in capsys.readouterr().err


def test_a_python_without_docstrings_is_told_so_before_anything_is_made(tmp_path: Path) -> None:
    done = run("demo", cwd=tmp_path, options=["-OO"])
    assert done.returncode == ExitCode.USAGE
    assert "-OO" in done.stderr
    assert not list(tmp_path.iterdir())


README = Path(__file__).parents[2] / "README.md"


def shape(output: str) -> list[str]:
    """Return the lines without what differs from run to run and from Python to Python."""
    lines = [re.sub(r"memory--\S+|\d[\d.]*", "#", line) for line in output.splitlines()]
    return [line for line in lines if line and not line.startswith("#  row")]


def test_the_readme_shows_what_the_demo_prints(
    twice: list[subprocess.CompletedProcess[str]],
) -> None:
    shown = README.read_text().split("<!-- demo -->\n```console\n")[1].split("```")[0]
    assert shape(shown) == shape(twice[0].stdout)
