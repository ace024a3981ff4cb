"""The one policy for trying again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

import tenacity

from syncer.errors import SyncerError

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_WAIT = 0.2  # seconds
_LONGEST_WAIT = 10.0  # seconds


class Retry(Protocol):
    """Calls a function, again where its error says that this makes sense."""

    def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `function` returns, or raise its last error."""


def never(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `function` once."""
    return function(*args, **kwargs)


def within(
    budget: Callable[[SyncerError], float],
    *,
    sleep: Callable[[float], None] = time.sleep,
    on_retry: Callable[[SyncerError], None] = lambda _: None,
) -> Retry:
    """Return a policy that tries for as many seconds as `budget` gives an error, then raises it.

    Waits grow exponentially with full jitter, so that several clients do not come back together.
    Where the other side asks for a longer wait it gets it, as far as the budget goes. The error
    raised in the end says how often and how long it was tried.
    """
    growing = tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        usual = growing(state)
        if not isinstance(error, SyncerError) or error.retry_after <= usual:
            return usual
        left = budget(error) - (state.seconds_since_start or 0.0)
        return max(usual, min(error.retry_after, left))

    def is_over(state: tenacity.RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        spent = state.seconds_since_start or 0.0
        return not isinstance(error, SyncerError) or spent >= budget(error)

    def say(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, SyncerError):
            on_retry(error)

    def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_retry),
            stop=is_over,
            wait=wait,
            sleep=sleep,
            before_sleep=say,
            reraise=True,
        )
        started = time.monotonic()
        try:
            return retrying(function, *args, **kwargs)
        except SyncerError as error:
            if _may_retry(error):
                tries = int(retrying.statistics.get("attempt_number", 1))
                error.note_tries(tries, time.monotonic() - started)
            raise

    return call


def _may_retry(error: BaseException) -> bool:
    return isinstance(error, SyncerError) and error.may_retry and not error.was_tried
