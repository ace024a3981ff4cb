"""Virtual environments of a test's own, filled from the package index."""

from __future__ import annotations

import fcntl
import hashlib
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


def create(path: Path, python: str | Path = sys.executable) -> Environment:
    """Return a new environment in `path` that holds pip and nothing else."""
    run(python, "-m", "venv", "--clear", path, cwd=path.parent)
    return Environment(path)


def kept(path: Path, requirements: Path, probe: Path, python: str | Path = "") -> Environment:
    """Return an environment that holds what `requirements` name, made if need be.

    It is kept for later runs, one per Python and list, beside `path` with a hash at its end; other
    test runs wait. Without a package index the test is skipped; `probe` takes what is fetched to
    find out.
    """
    said = f"{python or sys.base_prefix} {sys.version}"
    key = hashlib.sha256(requirements.read_bytes() + said.encode()).hexdigest()[:16]
    path.parent.mkdir(exist_ok=True)
    place = path.with_name(f"{path.name}-{key}")
    finished = place / "finished"
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if finished.exists() and Environment(place).python.exists():
            return Environment(place)
        require_index(probe)
        environment = create(place, python or sys.executable)
        environment.install("--only-binary=:all:", "--require-hashes", "-r", requirements)
        finished.touch()
    return environment


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
