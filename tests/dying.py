"""Processes that kill themselves with SIGKILL at a named moment: ``*_child.py`` in acceptance/."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def child(script: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run such a script on a folder, to its end; the first of the words is the moment."""
    return subprocess.run(
        [sys.executable, str(TESTS / "acceptance" / script), str(folder), *words],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def left_behind(script: str, base: Path, folder: Path, *words: str) -> None:
    """Make `folder` a copy of `base` over which such a process has died."""
    shutil.copytree(base, folder)
    killed = child(script, folder, *words)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
