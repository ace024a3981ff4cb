"""Faults on command: what a server or the network does, for the next requests that fit.

In the same process a test adds them to ``Server.faults``; of a program of its own it asks them by
``/_faults``: POST a JSON list of faults (the fields of ``Fault``), or
``{"chance": 0.1, "seed": 1, "faults": [...]}`` for ``Faults.by_chance``; GET what waits and what
happened; DELETE to go back to normal.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from qdrant_http import fault_kinds
from qdrant_http.answers import Reply, refused
from qdrant_http.connections import Connections
from qdrant_http.exchange import Exchange
from qdrant_http.fault import Fault

CONTROL = "/_faults"
KINDS = tuple(fault_kinds.KINDS)


@dataclass(frozen=True, slots=True)
class Happened:
    """A fault that a request met."""

    kind: str
    method: str
    path: str


class Faults:
    """The faults that wait for requests; they may be added from any thread.

    The first that fits a request happens, and no other. Chance comes from `seed` alone.
    """

    def __init__(self, seed: int = 0) -> None:
        self.happened: list[Happened] = []
        self._chance = random.Random(seed)  # noqa: S311 - no secret
        self._waiting: list[Fault] = []
        self._share = 0.0
        self._by_chance: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, *faults: Fault) -> None:
        """Let these faults wait, after those that wait already; raises ValueError if unknown."""
        _check(faults)
        with self._lock:
            self._waiting.extend(faults)

    def by_chance(self, share: float, *faults: Fault) -> None:
        """Let one of these happen to this share of the requests, until they are cleared.

        Each of those that fit a request is as likely; how often they happen is not counted. Faults
        that wait come first.
        """
        _check(faults)
        with self._lock:
            self._share, self._by_chance = share, list(faults)

    def next(self, kind: str, times: int = 1, **details: object) -> None:
        """Let a fault happen to the next requests; `details` are other fields of ``Fault``."""
        self.add(Fault(kind=kind, times=times, **details))  # type: ignore[arg-type]

    def clear(self) -> None:
        """Let nothing wait any more."""
        with self._lock:
            self._waiting.clear()
            self._by_chance.clear()

    def reseed(self, seed: int) -> None:
        """Begin the chances again."""
        with self._lock:
            self._chance.seed(seed)

    @property
    def waiting(self) -> list[Fault]:
        """What still waits."""
        with self._lock:
            return list(self._waiting)

    def draw(self, method: str, path: str) -> Fault | None:
        """Return the fault that a request meets, and count it."""
        with self._lock:
            for place, one in enumerate(self._waiting):
                if not one.fits(method, path):
                    continue
                if one.skip:
                    self._waiting[place] = replace(one, skip=one.skip - 1)
                elif one.probability >= 1 or self._chance.random() < one.probability:
                    self._count(place, one)
                    return self._met(one, method, path)
            if self._by_chance and self._chance.random() < self._share:
                fitting = [one for one in self._by_chance if one.fits(method, path)]
                if fitting:
                    return self._met(self._chance.choice(fitting), method, path)
        return None

    def _met(self, one: Fault, method: str, path: str) -> Fault:
        self.happened.append(Happened(one.kind, method, path))
        return one

    def _count(self, place: int, one: Fault) -> None:
        if one.times is None:
            return
        if one.times > 1:
            self._waiting[place] = replace(one, times=one.times - 1)
        else:
            del self._waiting[place]


class Faulty:
    """An application that meets faults."""

    def __init__(
        self, app: ASGIApp, faults: Faults, connections: Connections, prefix: str = ""
    ) -> None:
        self._app = app
        self._faults = faults
        self._connections = connections
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, in the way that the next fault says."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(self._app, scope, receive, send, self._connections, self._prefix)
        if exchange.path == CONTROL:
            await exchange.answer(_controlled(self._faults, exchange.method, await exchange.body()))
            return
        fault = self._faults.draw(exchange.method, exchange.path)
        if fault is None:
            await self._app(scope, receive, send)
        else:
            await fault_kinds.KINDS[fault.kind](fault, exchange)


def _check(faults: Iterable[Fault]) -> None:
    for one in faults:
        if one.kind not in fault_kinds.KINDS:
            raise ValueError(f"no fault {one.kind!r}; there are {', '.join(KINDS)}")


@dataclass(frozen=True, slots=True)
class _Chances:
    chance: float
    seed: int
    faults: list[Fault]


_ASKED: TypeAdapter[list[Fault] | _Chances] = TypeAdapter(list[Fault] | _Chances)


def _controlled(faults: Faults, method: str, body: bytes) -> Reply:
    """Answer a request for faults."""
    if method == "DELETE":
        faults.clear()
    elif method == "POST":
        try:
            _ask(faults, _ASKED.validate_json(body))
        except (ValidationError, ValueError) as error:
            return refused(400, str(error))
    waiting = [asdict(one) for one in faults.waiting]
    happened = [asdict(one) for one in faults.happened]
    return Reply(200, to_json({"waiting": waiting, "happened": happened}))


def _ask(faults: Faults, asked: list[Fault] | _Chances) -> None:
    if isinstance(asked, _Chances):
        faults.reseed(asked.seed)
        faults.by_chance(asked.chance, *asked.faults)
    else:
        faults.add(*asked)
