"""``syncer wait``: until everything that is committed now can be searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar

from syncer.cli import opening, state_file
from syncer.cli.opening import Sides
from syncer.errors import ExitCode, SourceBusyError
from syncer.settings import Settings
from syncer.state import Generation, utc_now

if TYPE_CHECKING:
    from syncer.worker import Stop

T = TypeVar("T")

_SHORTEST, _LONGEST = 0.01, 0.1  # seconds between two looks; a look takes a millisecond
_GROWTH = 1.25


@dataclass(frozen=True, slots=True)
class Waited:
    """How waiting ended; `pending` is None where nothing was ever synced.

    `searchable` says that everything that was committed when it began can be searched. Quarantined
    rows cannot, and are waited for by nobody. `pending` counts what is committed by now and still
    to be looked at, `withheld` the deletes that wait for `syncer confirm-deletes`; `comparing` says
    that both stores are still to be compared row by row.
    """

    searchable: bool
    generation: str | None
    pending: int | None
    quarantined: int
    withheld: int
    comparing: bool
    seconds: float
    exit_code: ExitCode

    def as_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return {**asdict(self), "exit_code": int(self.exit_code)}

    def in_words(self) -> str:
        """Return how it ended as lines for people."""
        if self.searchable:
            said = f"everything that was committed can be searched, after {self.seconds:.1f} s"
        elif self.exit_code is not ExitCode.TIMED_OUT:
            said = f"stopped after {self.seconds:.1f} s; {self._behind()}"
        else:
            said = f"timed out after {self.seconds:.1f} s; {self._behind()}"
        if not self.quarantined:
            return said
        return f"{said}\n{self.quarantined} rows are quarantined, and cannot be searched"

    def _behind(self) -> str:
        if self.pending is None:
            return "nothing was ever synced; is `syncer once` or `syncer run` at work?"
        found = [f"{self.pending} changes or rows are still to be looked at"]
        if self.withheld:
            found.append(f"{self.withheld} deletes are withheld, see `syncer confirm-deletes`")
        if self.comparing:
            found.append("both stores are still to be compared row by row")
        return ", ".join(found)


def wait(settings: Settings, timeout: float) -> Waited:
    """Return once everything that is committed now can be searched, or after `timeout` seconds.

    Asks state and source only. Which generation serves is looked up each time: one that takes over
    meanwhile holds as much. SIGINT and SIGTERM end it.
    """
    from syncer.worker import Stop, Stopped, stopping_on_signals

    began, stop = time.monotonic(), Stop()
    watch = _Watch(settings)
    try:
        with stopping_on_signals(stop), watch.open():
            code = _wait(watch, stop, began + timeout)
            return watch.seen(time.monotonic() - began, code)
    except Stopped:
        with watch.open():
            return watch.seen(time.monotonic() - began, stop.exit_code or ExitCode.INTERRUPTED)


def _wait(watch: _Watch, stop: Stop, deadline: float) -> ExitCode:
    pause = _SHORTEST
    while not watch.is_done():
        left = deadline - time.monotonic()
        if left <= 0:
            return ExitCode.TIMED_OUT
        stop.sleep(min(pause, left))
        pause = min(pause * _GROWTH, _LONGEST)
    return ExitCode.OK


class _Watch:
    """What is looked at while waiting: what was committed in the beginning, and how far it is."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._since: tuple[int, str] | None = None
        self._sides: Sides | None = None
        self._stack = ExitStack()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep source and state open while the block runs."""
        with ExitStack() as self._stack:
            self._reopen()
            yield

    def is_done(self) -> bool:
        """Say whether everything that was committed in the beginning can be searched."""
        try:
            return self._read(self._is_done)
        except SourceBusyError:  # somebody writes; the next look will tell
            return False

    def seen(self, seconds: float, code: ExitCode) -> Waited:
        """Return how it ended, with how far the collection is by now."""

        def look(sides: Sides) -> Waited:
            known = sides.store.serving(sides.alias)
            held_back = sides.store.quarantined(known.generation) if known else {}
            return Waited(
                searchable=code is ExitCode.OK,
                generation=known.generation if known else None,
                pending=sides.source.pending(known.position) if known else None,
                quarantined=sum(held_back.values()),
                withheld=sides.store.withheld(known.generation) if known else 0,
                comparing=bool(known and known.reconciling),
                seconds=round(seconds, 3),
                exit_code=code,
            )

        return opening.patiently(self._settings, lambda: self._read(look))

    def _is_done(self, sides: Sides) -> bool:
        head, now = self._since or (0, "")
        known: Generation | None = sides.store.serving(sides.alias)
        if known is None or not known.serving or known.reconciling:
            return False
        if not sides.source.has_reached(known.position, head, now):
            return False
        return not sides.store.withheld(known.generation)

    def _read(self, look: Callable[[Sides], T]) -> T:
        """Look at source and state; at the state that there is by now, if there was none."""
        assert self._sides is not None  # noqa: S101 - open() has seen to it
        path = state_file.state_path(self._settings)
        if self._sides.store.path != path and path.exists():  # an empty one stood in for it
            self._reopen()
        return look(self._sides)

    def _reopen(self) -> None:
        self._stack.close()
        self._sides = self._stack.enter_context(opening.opened(self._settings))
        if self._since is None:
            source = self._sides.source
            head = opening.patiently(self._settings, source.head)
            self._since = (head, utc_now())
