"""What is tried again, for how long, and what is said in the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from syncer.cli.compose import retry_policy
from syncer.errors import (
    EmbedderUnavailableError,
    ExitCode,
    RefusedError,
    SourceBusyError,
    SyncerError,
    TargetError,
    TargetUnavailableError,
)
from syncer.retry import never, within
from syncer.settings import load
from syncer.worker import Stop, Stopped


def failing(*errors: BaseException) -> Callable[[], str]:
    """Return a function that raises these one after the other, then returns."""
    left = list(errors)

    def function() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return function


def hour(_error: SyncerError) -> float:
    """Return a budget that no test reaches."""
    return 3600


def test_what_may_be_tried_again_is_until_it_works() -> None:
    slept: list[float] = []
    said: list[SyncerError] = []
    errors = [TargetUnavailableError(), SourceBusyError()]
    retry = within(hour, sleep=slept.append, on_retry=said.append)
    assert retry(failing(*errors)) == "done"
    assert len(slept) == 2
    assert said == errors


def test_waits_grow_up_to_ten_seconds_and_are_spread() -> None:
    slept: list[float] = []
    within(hour, sleep=slept.append)(failing(*[TargetUnavailableError()] * 40))
    assert max(slept[:2]) <= 0.4
    assert max(slept) <= 10
    assert len(set(slept)) > 30


@pytest.mark.parametrize("error", [TargetError("no"), RefusedError("no"), ValueError("no")])
def test_what_makes_no_sense_to_repeat_is_raised_as_it_is(error: Exception) -> None:
    slept: list[float] = []
    with pytest.raises(type(error)) as raised:
        within(hour, sleep=slept.append)(failing(error))
    assert raised.value is error
    assert str(error) == "no"
    assert slept == []


def test_an_error_s_own_budget_ends_the_trying_and_the_tries_are_told() -> None:
    budgets = {SourceBusyError: 3600.0, TargetUnavailableError: 0.0}
    slept: list[float] = []
    retry = within(lambda error: budgets[type(error)], sleep=slept.append)
    with pytest.raises(TargetUnavailableError, match=r"gone \(tried 3 times in 0 s\)"):
        retry(failing(SourceBusyError(), SourceBusyError(), TargetUnavailableError("gone")))
    assert len(slept) == 2


def test_a_wish_to_stop_ends_the_trying() -> None:
    tried: list[str] = []
    stop = Stop()

    def work() -> None:
        tried.append("once")
        with stop.finishing_windows():
            stop.ask(ExitCode.TERMINATED)
        raise TargetUnavailableError

    with pytest.raises(Stopped):
        within(hour, sleep=stop.sleep)(work)
    assert tried == ["once"]


def test_arguments_and_results_pass_through() -> None:
    def divide(left: int, *, by: int) -> float:
        return left / by

    assert within(hour)(divide, 6, by=4) == never(divide, 6, by=4) == 1.5


def test_never_does_not_try_again() -> None:
    with pytest.raises(TargetUnavailableError):
        never(failing(TargetUnavailableError()))


def test_a_wait_that_the_other_side_asks_for_is_kept_as_far_as_the_budget_goes() -> None:
    slept: list[float] = []
    errors = [TargetUnavailableError(retry_after=30.0), TargetUnavailableError(retry_after=1e9)]
    within(lambda _: 120.0, sleep=slept.append)(failing(*errors))
    first, second = slept
    assert first == 30.0
    assert 100 < second <= 120


def test_an_endpoint_that_used_its_own_budget_is_not_tried_for_another_one() -> None:
    calls: list[int] = []

    def embed() -> None:
        calls.append(1)
        error = EmbedderUnavailableError("the endpoint does not answer")
        error.note_tries(5, 60)
        raise error

    settings = load(None, environ={}, options={"source.database": "memory.db"})
    with pytest.raises(EmbedderUnavailableError) as found:
        retry_policy(settings, sleep=lambda _: None)(embed)
    assert calls == [1]
    assert found.value.message.count("tried") == 1
