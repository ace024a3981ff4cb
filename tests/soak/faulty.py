"""Changes to a table, random faults on the wire, and an operator who does what messages say."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import memory
import on_the_wire as wire
from qdrant_http import KINDS, Fault, Server

from syncer.errors import ExitCode
from syncer.model import SYNC_KEY
from syncer.settings import Settings

SHARE = 0.1
"""Of the requests meet a fault."""

_ROWS = 200  # there before the first fault; about as many stay
_TRIES = 40  # of the operator's, before somebody should look


_AGAIN = ("target.allow_old_server", "the next run", "run the command again")
"""Advice that comes to trying once more: what is wrong was a fault of a moment."""


@dataclass(slots=True)
class Soak:
    """A memory, a server that fails, and what has happened so far."""

    folder: Path
    server: Server
    settings: Settings
    chance: random.Random
    changes: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    def change(self, count: int) -> None:
        """Do so many things that applications do, in one transaction each."""
        with closing(memory.write(self.folder / "memory.db")) as connection:
            ids = [row for (row,) in connection.execute("SELECT id FROM memory_events")]
            for _ in range(count):
                self._change_one(connection, ids)
        self.changes += count

    def _change_one(self, connection: memory.sqlite3.Connection, ids: list[int]) -> None:
        chance = self.chance
        words = " ".join(chance.choices(("one", "two", "three", "four"), k=chance.randint(1, 30)))
        kind = chance.random()
        with connection:
            if kind < 0.25 or len(ids) < _ROWS // 2:
                added = connection.execute(
                    "INSERT INTO memory_events (agent, scope, source, content) "
                    "VALUES ('a', 's', 'x', ?)",
                    [f"{self.changes} {words}"],
                )
                ids.append(int(added.lastrowid or 0))
            elif kind < 0.5:
                chosen = ids.pop(chance.randrange(len(ids)))
                connection.execute("DELETE FROM memory_events WHERE id = ?", [chosen])
            elif kind < 0.8:
                connection.execute(
                    "UPDATE memory_events SET content = ? WHERE id = ?",
                    [f"{self.changes} {words}", chance.choice(ids)],
                )
            else:
                connection.execute(
                    "UPDATE memory_events SET agent = ? WHERE id = ?",
                    [f"agent {chance.randint(1, 9)}", chance.choice(ids)],
                )

    def sync(self) -> None:
        """Run until all is in the target, as an operator or a daemon would."""
        start_over = reconcile = rebuild = False
        for _ in range(_TRIES):
            if rebuild:
                code, told = wire.rebuild(self.settings)
            else:
                code, told = wire.once(self.settings, start_over=start_over, reconcile=reconcile)
            self.codes[code.name] += 1
            if code == ExitCode.OK:
                return
            start_over = reconcile = rebuild = False
            if code == ExitCode.REFUSED:
                advice = str(told.error)
                reconcile = "--on-regression reconcile" in advice
                start_over = not reconcile and "--start-over" in advice
                rebuild = not (reconcile or start_over) and "syncer rebuild" in advice
                advised = reconcile or start_over or rebuild
                assert advised or any(words in advice for words in _AGAIN), advice
            assert code in {ExitCode.REFUSED, ExitCode.TARGET}, (code, told.error, told.result)
        raise AssertionError(f"still not in the target after {_TRIES} runs: {told.error}")

    def differences(self) -> list[str]:
        """Return where SQLite and the target differ, one sentence a row."""
        with closing(memory.write(self.folder / "memory.db")) as connection:
            rows = connection.execute("SELECT id, agent, content FROM memory_events").fetchall()
        wanted = {(str(row), agent, content) for row, agent, content in rows}
        found = {
            (str(row), *facts)
            for payload, _ in memory.points_in(self.settings).values()
            for row, *facts in [_facts(payload)]
        }
        missing = [f"{one} is not in the target" for one in sorted(wanted - found)]
        return missing + [f"{one} is only in the target" for one in sorted(found - wanted)]

    def quarantined(self) -> list[object]:
        """Return the rows that are quarantined."""
        with closing(memory.write(self.folder / "memory.db")) as connection:
            return connection.execute("SELECT row, reason FROM syncer_quarantine").fetchall()


def _facts(payload: object) -> tuple[str, str, str]:
    assert isinstance(payload, dict)
    return payload[SYNC_KEY]["row"], payload["metadata"]["agent"], payload["document"]


def begun(folder: Path, server: Server, seed: int) -> Soak:
    """Make a memory and sync it in peace, over gRPC if the server speaks it; then faults begin."""
    memory.make_memory(folder, [f"memory {number}" for number in range(_ROWS)])
    fast = {
        "target.retry_budget": 4,
        "target.timeout": 2,
        "target.batch_points": 40,
        "sync.window_rows": 100,
        "sync.max_deletes": 10**6,
    }
    if server.gateway is not None:
        fast |= {"target.grpc": True, "target.grpc_port": server.gateway.port}
    soak = Soak(folder, server, wire.settings(folder, server.url, **fast), random.Random(seed))  # noqa: S311
    soak.sync()
    with wire.anywhere_else(server.url) as client:  # where an alias may be moved to
        client.create_collection("elsewhere", vectors_config={})
    server.faults.reseed(seed)
    server.faults.by_chance(SHARE, *(_fault(kind) for kind in KINDS))
    return soak


def _fault(kind: str) -> Fault:
    return Fault(kind=kind, seconds=0.5 if kind == "slow" else 1, size=2000, target="elsewhere")


def go_on(soak: Soak, is_over: Callable[[int], bool]) -> None:
    """Change and sync until it is over; then sync once more, in peace."""
    while not is_over(soak.changes):
        soak.change(soak.chance.randint(1, soak.chance.choice((3, 30, 300))))
        soak.sync()
    soak.server.faults.clear()
    soak.sync()


def for_seconds(seconds: float) -> Callable[[int], bool]:
    """Return what says, of a number of changes, whether so many seconds are over."""
    end = time.monotonic() + seconds
    return lambda _: time.monotonic() > end
