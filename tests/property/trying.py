"""How schedules are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from property.machine import Schedules
from property.modes import Mode
from property.qdrants import Qdrant
from property.world import Tally, World

STEPS = 50  # of a schedule, at most
AT_A_TIME = 10  # schedules


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried: the database to begin with, a mode, and a target made in a folder."""

    template: Path
    mode: Mode
    qdrant: Callable[[Path], Qdrant]


def try_schedules(
    trial: Trial, tally: Tally, *, steps: int, first_seed: int = 0, shrink: bool = True
) -> None:
    """Try schedules until so many steps are taken, and count in `tally` what they do.

    The same `first_seed` leads to the same schedules. Raises what the first of them finds, made as
    short as possible if `shrink`.
    """
    for number in count(first_seed):
        if tally.steps >= steps:
            return
        _try_some(trial, tally, number, [Phase.generate, Phase.shrink][: 1 + shrink])


def _try_some(trial: Trial, tally: Tally, number: int, phases: Sequence[Phase]) -> None:
    # Few at a time: after a while hypothesis varies what it has drawn rather than draw anew.
    @seed(number)
    def schedule() -> Schedules:
        return Schedules(World(trial.template, trial.mode, trial.qdrant, tally))

    run_state_machine_as_test(
        cast("type[RuleBasedStateMachine]", schedule),
        settings=settings(
            max_examples=AT_A_TIME,
            stateful_step_count=STEPS,
            derandomize=False,
            database=None,
            deadline=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
