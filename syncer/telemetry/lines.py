"""What every line of the log goes through: nothing secret, nothing endless, no floods."""

from __future__ import annotations

import re
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import structlog

from syncer.errors import SyncerError
from syncer.redaction import HIDDEN, names_a_secret, shortened, without_secrets

PERIOD = 60.0  # seconds in which the same thing is said once
_KINDS = 256  # different things that are kept in mind
_DEEPEST = 6  # levels of a value that are looked at
_FRAMES = 6  # of a traceback
_INCIDENTS = frozenset({"failed", "trying again", "risk", "bug", "library"})
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Redaction:
    """Takes secrets out of every value of an event, and only then cuts what is too long."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secret for secret in secrets if secret)

    def __call__(
        self, _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        """Return the event as it may be shown."""
        return {name: self._field(name, value, 0) for name, value in event.items()}

    def _field(self, name: object, value: object, depth: int) -> object:
        hidden = isinstance(name, str) and value and names_a_secret(name)
        return HIDDEN if hidden else self._shown(value, depth + 1)

    def _shown(self, value: object, depth: int) -> object:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if depth > _DEEPEST:
            return "…"
        if isinstance(value, Mapping):
            return {
                self._words(str(name)): self._field(name, inner, depth)
                for name, inner in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self._shown(inner, depth + 1) for inner in value]
        return self._words(str(value))

    def _words(self, words: str) -> str:
        return shortened(without_secrets(words, self._secrets))


@dataclass(slots=True)
class _Kind:
    """One thing that was said, and how often it was not said since."""

    since: float
    event: str
    error: object
    held_back: int = 0


class Flood:
    """Lets the same incident through once a period; how often it happened is said afterwards.

    Two incidents are the same if they differ in nothing but numbers. `clock` counts seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, period: float = PERIOD) -> None:
        self._clock = clock
        self._period = period
        self._kinds: OrderedDict[tuple[str, ...], _Kind] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(
        self, _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        """Return the event, with how many like it were held back, or drop it."""
        if event.get("event") not in _INCIDENTS:
            return event
        now = self._clock()
        key = _likeness(event)
        with self._lock:
            kind = self._kinds.get(key)
            if kind is not None and now - kind.since < self._period:
                kind.held_back += 1
                raise structlog.DropEvent
            self._kinds[key] = _Kind(now, str(event["event"]), event.get("error"))
            self._kinds.move_to_end(key)
            if len(self._kinds) > _KINDS:
                self._kinds.popitem(last=False)
        if kind is not None and kind.held_back:
            event["repeated"] = kind.held_back
        return event

    def summaries(self, *, whole: bool = False) -> list[dict[str, object]]:
        """Return what was held back in periods that are over, or in all, and forget it."""
        now, found = self._clock(), []
        with self._lock:
            for key, kind in list(self._kinds.items()):
                if not whole and now - kind.since < self._period:
                    continue
                del self._kinds[key]
                if kind.held_back:
                    found.append(
                        {"what": kind.event, "error": kind.error, "repeated": kind.held_back}
                    )
        return found


def _likeness(event: structlog.typing.EventDict) -> tuple[str, ...]:
    words = str(event.get("message", ""))
    return (str(event["event"]), str(event.get("error")), _NUMBER.sub("#", words)[:500])


def without_values(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put kinds and places for an exception and its causes; their words may hold a row's text."""
    found = event.pop("exc_info", None)
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        event["exception"] = chain_of(error)
    return event


def chain_of(error: BaseException | None) -> list[str]:
    """Return an exception and what led to it, one line each, the last one first."""
    lines: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        places = ", ".join(
            f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} in {frame.name}"
            for frame in reversed(frames)
        )
        words = f": {error.message}" if isinstance(error, SyncerError) else ""
        lines.append(f"{type(error).__name__}{words}" + (f" ({places})" if places else ""))
        error = error.__cause__ or error.__context__
    return lines
