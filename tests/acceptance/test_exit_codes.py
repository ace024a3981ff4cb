"""Each exit code that the documentation lists is what a command ends with, in one way at least."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import memory
import pytest

from syncer import lock
from syncer.cli import main
from syncer.cli import status as status_command
from syncer.errors import ExitCode

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"
SETTINGS = (
    '[source]\ndatabase = "{folder}/memory.db"\n[target]\npath = "{folder}/qdrant"\nlock_wait = 0\n'
    'retry_budget = 0\n[embed]\nprovider = "hash"\ndimension = 8\n[sparse]\nenabled = false\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of thirty rows and its settings."""
    memory.make_memory(tmp_path, [f"memory {number}" for number in range(30)])
    (tmp_path / "syncer.toml").write_text(SETTINGS.format(folder=tmp_path))
    return tmp_path


def syncer(folder: Path, *words: str) -> int:
    """Run a command in this process and return its exit code."""
    return main([*words, "-c", str(folder / "syncer.toml")])


def execute(folder: Path, sql: str) -> None:
    """Change the memory as an application does."""
    memory.execute(folder / "memory.db", sql)


def ok(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Sync."""
    return syncer(folder, "once")


def bug(folder: Path, patch: pytest.MonkeyPatch) -> int:
    """Let a command meet what nobody has thought of."""

    def broken(_: object) -> None:
        raise ZeroDivisionError

    patch.setattr(status_command, "status", broken)
    return syncer(folder, "status")


def usage(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Ask for what there is not."""
    return syncer(folder, "once", "--set", "source.nonsense=1")


def quarantined(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Meet a row that cannot be indexed."""
    execute(folder, f"UPDATE memory_events SET content = '{'x' * 3000}' WHERE id = 1")
    return syncer(folder, "once", "--set", "source.max_content_bytes=2000")


def refused(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Ask for another recipe than the collection's."""
    assert syncer(folder, "once") == 0
    execute(folder, "UPDATE memory_events SET agent = 'b'")
    return syncer(folder, "once", "--set", "embed.dimension=16")


def source(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Take the database away."""
    (folder / "memory.db").unlink()
    return syncer(folder, "once")


def target(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Name a server that is not there."""
    return syncer(folder, "once", "--set", "target.path=", "--set", "target.url=http://127.0.0.1:9")


def embedder(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Name an endpoint that is not there."""
    endpoint = {"provider": "openai", "url": "http://127.0.0.1:9/v1", "model": "m"}
    given = {**endpoint, "chunk_tokens": "100", "retry_budget": "0"}
    options = [word for key, value in given.items() for word in ("--set", f"embed.{key}={value}")]
    return syncer(folder, "once", *options)


def locked(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Hold the local folder."""
    (folder / "qdrant").mkdir()
    with lock.held(folder / "qdrant" / ".syncer.lock", "it"):
        return syncer(folder, "once")


def withheld(folder: Path, _: pytest.MonkeyPatch) -> int:
    """Delete nearly everything."""
    assert syncer(folder, "once") == 0
    execute(folder, "DELETE FROM memory_events WHERE id > 5")
    return syncer(folder, "once")


WAYS: dict[ExitCode, Callable[[Path, pytest.MonkeyPatch], int]] = {
    ExitCode.OK: ok,
    ExitCode.BUG: bug,
    ExitCode.USAGE: usage,
    ExitCode.QUARANTINED: quarantined,
    ExitCode.REFUSED: refused,
    ExitCode.SOURCE: source,
    ExitCode.TARGET: target,
    ExitCode.EMBEDDER: embedder,
    ExitCode.LOCKED: locked,
    ExitCode.WITHHELD: withheld,
}
ELSEWHERE = {
    ExitCode.TIMED_OUT: "test_wait.py",
    ExitCode.INTERRUPTED: "test_daemon_signals.py",
    ExitCode.TERMINATED: "test_daemon_signals.py",
}
"""Those that need a process of their own, and where that is."""


@pytest.mark.rule("SC-07")
@pytest.mark.parametrize("code", WAYS, ids=lambda code: code.name)
def test_a_command_ends_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: ExitCode
) -> None:
    assert WAYS[code](folder, monkeypatch) == code


def test_no_documented_code_is_left_out() -> None:
    table = DOCS.read_text().partition("## Exit codes")[2]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert documented == set(map(int, ExitCode))
    assert set(WAYS) | set(ELSEWHERE) == set(ExitCode)
    for code, file in ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text()
        assert re.search(rf"\b({int(code)}|{code.name})\b", text)
