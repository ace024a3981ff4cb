"""What the schedules share."""

from __future__ import annotations

from pathlib import Path

import pytest
from property import modes


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty database of each mode, which every schedule begins with a copy of."""
    folder = tmp_path_factory.mktemp("templates")
    for mode in modes.ALL:
        (folder / mode.name).mkdir()
        mode.prepare(folder / mode.name)
    return folder
