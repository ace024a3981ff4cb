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
from property.tally import Tally
from property.world import World

STEPS = 50  # of a schedule, at most
AT_A_TIME = 10  # schedules, at most


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried: the databases to begin with, a mode, and a target made in a folder."""

    templates: Path
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
        schedules = min(AT_A_TIME, 1 + (steps - tally.steps) // STEPS)
        phases = [Phase.generate, Phase.shrink][: 1 + shrink]
        _try_some(trial, tally, number, schedules, phases)


def _try_some(
    trial: Trial, tally: Tally, number: int, schedules: int, phases: Sequence[Phase]
) -> None:
    # Few at a time: after a while hypothesis varies what it has drawn rather than draw anew.
    @seed(number)
    def schedule() -> Schedules:
        return Schedules(World(trial.templates, trial.mode, trial.qdrant, tally))

    run_state_machine_as_test(
        cast("type[RuleBasedStateMachine]", schedule),
        settings=settings(
            max_examples=schedules,
            stateful_step_count=STEPS,
            derandomize=False,
            database=None,
            deadline=None,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
