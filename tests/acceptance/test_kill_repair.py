"""A repair that is killed at any moment leaves nothing that the next one does not mend."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import comparing
import dying
import memory
import pytest
from comparing import DRIFT, same

from syncer.result import Drift

MOMENTS = (
    "before-write",
    "opened",
    "between-chunks",
    "before-chunk-0",
    "between-rows",
    "between-deletes",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, memory.Points]:
    """A memory whose collection differs in every way, and the points that it should have."""
    folder = tmp_path_factory.mktemp("base")
    with comparing.compared(folder, None) as here:
        points = here.points()
        for kind in (Drift.NO_VECTOR, Drift.INCOMPLETE, Drift.STALE, Drift.ORPHAN):
            DRIFT[kind][0](here)
        here.client.delete("memory", [1])
    return folder, points


@pytest.fixture(params=MOMENTS)
def killed(
    request: pytest.FixtureRequest, base: tuple[Path, memory.Points], tmp_path: Path
) -> Iterator[Path]:
    """A copy of it, left behind by a repair that died at the moment."""
    folder = tmp_path / "memory"
    dying.left_behind("kill_child.py", base[0], folder, request.param, "repair")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.rule("CT-02")
def test_after_a_kill_the_next_repair_finds_and_mends_the_rest(
    killed: Path, base: tuple[Path, memory.Points]
) -> None:
    with comparing.opened(memory.settings_for(killed)) as here:
        _, before, after = here.mend()
        assert not before.clean
        assert after.clean
        assert same(here.points(), base[1])
