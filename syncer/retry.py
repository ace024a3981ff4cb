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
    seconds: float, *, sleep: Callable[[float], None] = time.sleep, on_retry: Callable[[], None]
) -> Retry:
    """Return a policy that gives up after `seconds` and then raises the last error.

    Waits grow exponentially with full jitter, so that several clients do not come back together.
    The error raised in the end says how long it was tried.
    """

    def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_retry),
            stop=tenacity.stop_after_delay(seconds),
            wait=tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            sleep=sleep,
            before_sleep=lambda _: on_retry(),
            reraise=True,
        )
        try:
            return retrying(function, *args, **kwargs)
        except SyncerError as error:
            if error.may_retry:
                waited = retrying.statistics.get("delay_since_first_attempt", 0.0)
                tries = retrying.statistics.get("attempt_number", 1)
                error.note_tries(int(tries), float(waited))
            raise

    return call


def _may_retry(error: BaseException) -> bool:
    return isinstance(error, SyncerError) and error.may_retry
