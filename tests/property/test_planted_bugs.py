"""The schedules find what they are there to find: bugs planted in the real code, one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from property.bugs import BUGS
from property.modes import Mode
from property.planting import Bug
from property.qdrants import FakeQdrant
from property.tally import Tally
from property.trying import Trial, try_schedules

from syncer.errors import SyncerError

STEPS = 20_000  # in which each bug must show; most do in a few hundred

FINDINGS = (AssertionError, SyncerError, KeyError)
"""A difference, a refusal, or a point of the fake target's that should be there."""

PAIRS = [
    pytest.param(
        bug,
        mode,
        id=f"{bug.name}, {mode.name}".replace(" ", "-"),
        marks=[pytest.mark.long] if bug.is_rare or mode in bug.rare_in else [],
    )
    for bug in BUGS
    for mode in bug.modes
]


@pytest.mark.parametrize(("bug", "mode"), PAIRS)
def test_the_schedules_find(
    bug: Bug, mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally()
    bug.plant(monkeypatch)
    (tmp_path / mode.name).mkdir()
    mode.prepare(tmp_path / mode.name)

    with pytest.raises(FINDINGS) as found:
        try_schedules(Trial(tmp_path, mode, FakeQdrant), tally, steps=STEPS, shrink=False)

    print(f"found after {tally.found_after} steps: {found.value!r}")  # noqa: T201 - for pytest -rP
