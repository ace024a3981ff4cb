"""For ten minutes a daemon follows random commits while its target fails: nothing grows."""

from __future__ import annotations

import random
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from daemons import Daemon, running, write_settings
from qdrant_http import started
from qdrant_http.program import Program
from soak.faulty import Soak

SEED = 20_260_102
ROWS = 200
WARM_UP = 0.3  # of the time, until pools, caches and the allocator have had all kinds of work
PASSING = ("slow", "closed_before", "closed_during", "closed_after", "error", "too_many")
GROWTH = 1.08  # of the memory, at most


@dataclass(frozen=True, slots=True)
class Size:
    """What a process has: resident memory in KiB, open files, threads."""

    memory: int
    files: int
    threads: int


def size(daemon: Daemon) -> Size:
    """Return what the daemon has while nothing happens: the least of some seconds."""
    found = []
    for _ in range(20):
        found.append(_size_now(daemon))
        time.sleep(0.1)
    return Size(*(min(column) for column in zip(*map(astuple, found), strict=True)))


def _size_now(daemon: Daemon) -> Size:
    process = Path(f"/proc/{daemon.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    resident, threads = (int(status[name].split()[0]) for name in ("VmRSS", "Threads"))
    return Size(resident, len(list((process / "fd").iterdir())), threads)


def in_step(daemon: Daemon) -> bool:
    """Say whether nothing is left to do."""
    return daemon.metric("syncer_lag_rows") == 0 and daemon.is_well()


def follow(soak: Soak, daemon: Daemon, server: Program, until: float) -> None:
    """Commit at random until that time; now and then let the daemon catch up in peace."""
    faults: list[dict[str, object]] = [
        {"kind": kind, "seconds": 0.3 if kind == "slow" else 1, "times": None} for kind in PASSING
    ]
    while time.monotonic() < until:
        server.faults_by_chance(0.05, SEED + soak.changes, *faults)
        for _ in range(20):
            soak.change(soak.chance.randint(1, soak.chance.choice((2, 20))))
            daemon.get("/metrics").raise_for_status()
            time.sleep(soak.chance.uniform(0, 0.3))
        server.clear_faults()
        daemon.until(lambda: in_step(daemon), "it is in step")


def soaked(folder: Path, seconds: float) -> None:
    """Let the daemon follow for so long; compare its size after the warm-up and at the end."""
    memory.make_memory(folder, [f"memory {number}" for number in range(ROWS)])
    with started(folder / "storage") as server:
        more = "[target]\nretry_budget = 4\ntimeout = 2\n[sync]\nmax_deletes = 1000000\n"
        write_settings(folder, server.url, more=more)
        settings = wire.settings(folder, server.url)
        soak = Soak(folder, server, settings, random.Random(SEED))  # type: ignore[arg-type]  # noqa: S311
        began = time.monotonic()
        with running(folder) as daemon:
            daemon.until(daemon.is_ready, "it is ready")
            follow(soak, daemon, server, began + WARM_UP * seconds)
            warm = size(daemon)
            follow(soak, daemon, server, began + seconds)
            end = size(daemon)
            assert daemon.end() == 143
        print(f"{soak.changes} changes; warm {warm}, at the end {end}")  # noqa: T201
        assert soak.differences() == []
        assert soak.quarantined() == []
        assert end.memory < GROWTH * warm.memory
        assert end.files <= warm.files + 2
        assert end.threads <= warm.threads + 1


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_daemon_that_runs_for_ten_minutes_neither_grows_nor_falls_behind(tmp_path: Path) -> None:
    soaked(tmp_path, 600)
