"""What may happen to a run from outside: a failure at any call, a write of somebody else's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, cast

from hypothesis import strategies as st

from syncer.errors import (
    EmbedderUnavailableError,
    SourceBusyError,
    SyncerError,
    TargetUnavailableError,
)

T = TypeVar("T")


class Moment(StrEnum):
    """When a call fails; where there is no middle, it fails before."""

    BEFORE = "before"
    MIDDLE = "middle"
    AFTER = "after"


class Consequence(StrEnum):
    """What a failure means."""

    KILL = "the process is killed"
    ERROR = "an error is raised"
    RETRY = "an error is raised, the call is tried again"


TURNS = st.sampled_from((1, 1, 1, 2, 3))
CONSEQUENCES = st.sampled_from(Consequence)

ERRORS: dict[str, type[SyncerError]] = {
    "store": SourceBusyError,
    "state": SourceBusyError,
    "source": SourceBusyError,
    "embedder": EmbedderUnavailableError,
    "catalog": TargetUnavailableError,
    "target": TargetUnavailableError,
}
CALLS = (
    "store.generations",
    "store.add",
    "store.forget",
    "store.serve",
    "store.walk_again",
    "store.reconcile",
    "catalog.resolve",
    "catalog.exists",
    "catalog.token",
    "catalog.create",
    "catalog.describe",
    "catalog.set_description",
    "source.head",
    "source.read",
    "source.rows",
    "source.gone",
    "state.position",
    "state.due",
    "state.deletes_since",
    "state.reconciling",
    "state.reconciled",
    "state.begin_token",
    "state.confirm_token",
    "state.commit",
    "embedder.embed",
    "target.look_up",
    "target.token",
    "target.write_token",
    "target.open_rows",
    "target.upsert",
    "target.overwrite",
    "target.delete",
    "target.row_page",
)
"""The calls by which a run meets the world, each a moment at which something may happen."""


class Killed(BaseException):
    """The process is gone; like KeyboardInterrupt, nothing below may hold it up."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The `turn`-th call of `call` in a run fails; `cut` says how much of it is done half way."""

    call: str
    turn: int
    moment: Moment
    cut: int
    consequence: Consequence

    @property
    def kills(self) -> bool:
        """Whether the process ends; what SQLite has committed it never answers with an error."""
        side = self.call.partition(".")[0]
        committed = side in {"store", "state"} and self.moment is Moment.AFTER
        return committed or self.consequence is Consequence.KILL


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Something that somebody else does right before the `turn`-th call of `call` in a run."""

    call: str
    turn: int
    act: Callable[[], None]


class Fuse:
    """Knows what is to happen in one run, and what of it has happened."""

    def __init__(self, fault: Fault | None = None, meanwhile: Meanwhile | None = None) -> None:
        self.blown = False
        self.interfered = False
        self.error: SyncerError | None = None
        self._fault = fault
        self._meanwhile = meanwhile
        self._turns: Counter[str] = Counter()

    def guard(self, inner: T, side: str) -> T:
        """Return `inner`, every call of which passes this fuse."""
        return cast("T", _Guarded(inner, side, self))

    def meet(self, call: str) -> Fault | None:
        """Let happen what is due before this call; return how the call is to fail, if it is."""
        self._turns[call] += 1
        now = (call, self._turns[call])
        if self._meanwhile and now == (self._meanwhile.call, self._meanwhile.turn):
            self.interfered = True
            self._meanwhile.act()
        return self._fault if self._fault and now == (self._fault.call, self._fault.turn) else None

    def blow(self, fault: Fault) -> BaseException:
        """Return what the failing call raises."""
        self.blown = True
        what = f"{fault.moment} call {fault.turn} of {fault.call}"
        if fault.kills:
            return Killed(what)
        self.error = ERRORS[fault.call.partition(".")[0]](what)
        return self.error


class _Guarded:
    """An adapter, any call of which may fail."""

    def __init__(self, inner: object, side: str, fuse: Fuse) -> None:
        self._inner = inner
        self._side = side
        self._fuse = fuse

    def __getattr__(self, name: str) -> object:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        def call(*args: object, **kwargs: object) -> object:
            fault = self._fuse.meet(f"{self._side}.{name}")
            if fault is None:
                return method(*args, **kwargs)
            if fault.moment is Moment.MIDDLE and name in HALF:
                method(*HALF[name](args, fault.cut))
            if fault.moment is Moment.AFTER:
                method(*args, **kwargs)
            raise self._fuse.blow(fault)

        return call


def _first(args: tuple[object, ...], cut: int) -> tuple[object, ...]:
    """Return the arguments of a write that reaches only the first of its things."""
    (things,) = cast("tuple[list[object]]", args)
    return (things[: cut % (len(things) + 1)],)


def _opened(args: tuple[object, ...], cut: int) -> tuple[object, ...]:
    held, new = cast("tuple[list[object], list[object]]", args)
    reached = cut % (len(held) + len(new) + 1)
    return held[:reached], new[: max(0, reached - len(held))]


def _created(args: tuple[object, ...], _cut: int) -> tuple[object, ...]:
    """Return what makes the collection, but leaves the alias where it points."""
    generation, alias, *rest = args
    return generation, f"{alias}-unfinished", *rest


HALF: dict[str, Callable[[tuple[object, ...], int], tuple[object, ...]]] = {
    "upsert": _first,
    "overwrite": _first,
    "delete": _first,
    "open_rows": _opened,
    "create": _created,
}
"""How the calls that can be done half way are."""


def faults(
    *calls: str,
    turns: st.SearchStrategy[int] = TURNS,
    consequences: st.SearchStrategy[Consequence] = CONSEQUENCES,
) -> st.SearchStrategy[Fault]:
    """Return how these calls may fail."""
    return st.builds(
        Fault,
        call=st.sampled_from(calls),
        turn=turns,
        moment=st.sampled_from(Moment),
        cut=st.integers(0, 4),
        consequence=consequences,
    )


def faults_of(*sides: str) -> st.SearchStrategy[Fault]:
    """Return how the calls to these sides may fail."""
    return faults(*(call for call in CALLS if call.partition(".")[0] in sides))
