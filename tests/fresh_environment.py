"""Virtual environments of a test's own, filled from the package index."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
_PROBE = "iniconfig"  # small, without dependencies, and on every index that serves the rest
_OURS = ("PYTHON", "SYNCER_", "QDRANT_", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in a folder."""

    path: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.script("python")

    def script(self, name: str) -> Path:
        """Return the path of one of its console scripts."""
        return self.path / "bin" / name

    def install(self, *arguments: str | Path) -> None:
        """Run pip in it; a failure fails the test, with what pip said."""
        pip = ("-m", "pip", "install", "--disable-pip-version-check", "--quiet")
        run(self.python, *pip, *arguments, cwd=self.path)


def create(path: Path) -> Environment:
    """Return a new environment in `path` that holds pip and nothing else."""
    run(sys.executable, "-m", "venv", "--clear", path, cwd=path.parent)
    return Environment(path)


def require_index(folder: Path) -> None:
    """Skip the test if no package index answers, and say why; under CI=true, fail it.

    What is fetched to find out is left in `folder`.
    """
    pip = ("-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir", "--quiet")
    brief = ("--no-deps", "--retries=1", "--timeout=10")
    asked = attempt(sys.executable, *pip, *brief, "-d", folder, _PROBE, cwd=folder)
    if asked.returncode == 0:
        return
    said = asked.stderr.strip().splitlines() or ["pip said nothing"]
    reason = f"no package index is reachable: {said[-1]}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def run(
    *command: str | Path, cwd: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed, and return what it printed; see ``attempt``."""
    done = attempt(*command, cwd=cwd, variables=variables)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        said = "\n".join((done.stdout + done.stderr).splitlines()[-60:])
        pytest.fail(f"exit code {done.returncode} from {words}\n{said}")
    return done


def attempt(
    *command: str | Path, cwd: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in `cwd` with `variables` and none that point back to this checkout."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(_OURS)}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, **(variables or {})},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=500,  # seconds; a cold package cache on a slow line
        check=False,
    )
