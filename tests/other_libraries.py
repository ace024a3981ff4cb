"""Libraries that behave otherwise, or are not there, in the processes that a test starts."""

from __future__ import annotations

import os
from pathlib import Path


def changed(folder: Path, program: str) -> dict[str, str]:
    """Return the environment in which `program` runs before anything else of a process does."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(program, encoding="utf-8")
    return {**_first(folder), "ORT_DISABLE_TELEMETRY": "1"}


def without(folder: Path, *modules: str) -> dict[str, str]:
    """Return the environment in which an empty package stands before each of `modules`."""
    for module in modules:
        (folder / module).mkdir(parents=True)
        (folder / module / "__init__.py").touch()
    return _first(folder)


def _first(folder: Path) -> dict[str, str]:
    rest = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *([rest] if rest else [])])}
