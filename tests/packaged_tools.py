"""Programs that come from the distribution's packages, not from Python's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = {"promtool": "prometheus", "systemd-analyze": "systemd", "chromium": "chromium"}
"""Debian's package for each program that the tests use; .ci/packages installs them."""


def tool(name: str) -> str:
    """Return the path of a program; without it the test is skipped, or fails in CI."""
    found = shutil.which(name)
    if found is None:
        message = f"{name} is not installed; .ci/packages installs Debian's {PACKAGES[name]}"
        if os.environ.get("CI_REQUIRED_TOOLS"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def ran(
    name: str, *arguments: object, cwd: Path | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return what it said; its exit code is the caller's matter."""
    return subprocess.run(
        [tool(name), *map(str, arguments)],
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
