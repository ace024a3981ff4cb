"""Running the command line as a user does: a process of its own, its output and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def log(self) -> list[dict[str, object]]:
        """The events that were logged as JSON lines."""
        return [json.loads(line) for line in self.err.splitlines() if line.startswith("{")]


def run(*arguments: str, cwd: Path, timeout: float = 120, **environment: str) -> Outcome:
    """Run ``syncer`` in `cwd`; `environment` comes on top of a clean one."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SYNCER_")}
    done = subprocess.run(
        [sys.executable, "-m", "syncer", *arguments],
        cwd=cwd,
        env={**inherited, "HF_HUB_OFFLINE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
