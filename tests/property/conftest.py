"""What the schedules share."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncer import migrate


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database, which every schedule begins with a copy of."""
    path = tmp_path_factory.mktemp("template") / "memory.db"
    migrate.init_database(path)
    return path
