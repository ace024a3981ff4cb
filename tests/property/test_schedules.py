"""Whatever happens, a run that nobody disturbs leaves the target equal to the table."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from property.modes import ALL, Mode
from property.qdrants import FakeQdrant, LocalQdrant
from property.tally import Tally
from property.trying import Trial, try_schedules

MODES = pytest.mark.parametrize("mode", ALL, ids=lambda mode: mode.name)
FEW = 600  # steps of each mode
MANY = 50_000 // len(ALL)


def assert_much_happened(tally: Tally, steps: int) -> None:
    """Look whether the schedules have done what they are there to do; shares are far from tight."""
    print(tally)  # noqa: T201 - for pytest -rP
    assert tally.steps >= steps
    assert tally.changed > steps / 5
    assert tally.windows > steps / 10
    assert tally.embedded > steps / 20
    assert tally.payload_only > steps / 400
    assert tally.deleted > steps / 50
    assert tally.kills > steps / 50
    assert tally.errors > steps / 100
    assert tally.meanwhile > 0
    assert tally.comparisons > steps / 50
    assert tally.promised > 2 * tally.comparisons
    assert tally.rows > tally.comparisons
    assert tally.points > 1.5 * tally.rows


@MODES
def test_every_schedule_ends_with_the_target_equal_to_the_table(
    mode: Mode, templates: Path
) -> None:
    tally = Tally()
    try_schedules(Trial(templates, mode, FakeQdrant), tally, steps=FEW)
    assert_much_happened(tally, FEW)


@MODES
def test_every_schedule_ends_with_local_mode_equal_to_the_table(
    mode: Mode, templates: Path
) -> None:
    tally = Tally()
    try_schedules(Trial(templates, mode, LocalQdrant), tally, steps=FEW // 20)
    assert tally.comparisons > 0
    assert tally.points > tally.comparisons


@pytest.mark.long
@MODES
def test_every_one_of_many_schedules_ends_with_the_target_equal_to_the_table(
    mode: Mode, templates: Path
) -> None:
    tally = Tally()
    trial = Trial(templates, mode, FakeQdrant)
    try_schedules(trial, tally, steps=MANY, first_seed=any_number())
    assert_much_happened(tally, MANY)
    assert tally.meanwhile > MANY / 400
    assert tally.refusals > MANY / 1000
    assert tally.withheld > MANY / 400
    assert tally.quarantined > MANY / 500


@pytest.mark.long
@MODES
def test_every_one_of_many_schedules_ends_with_local_mode_equal_to_the_table(
    mode: Mode, templates: Path
) -> None:
    tally = Tally()
    trial = Trial(templates, mode, LocalQdrant)
    try_schedules(trial, tally, steps=MANY // 25, first_seed=any_number())
    assert tally.comparisons > MANY / 2000
    assert tally.points > tally.comparisons


def any_number() -> int:
    """Return a seed that was not tried before."""
    return secrets.randbelow(2**32)
