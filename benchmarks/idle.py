"""Measures runs that find nothing to do: their CPU time, whatever the table, and a whole process.

Tables of three sizes are made and synced first, the largest into a target that forgets, since the
embedded Qdrant would take minutes. The ceilings on CPU are for the median of the first run in a
process, since a run from cron is always a first one; later ones are shown beside. Ends with one
line; exits 1 if anything is above its ceiling.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import tables

SMALL, MIDDLE, LARGE = 1_000, 20_000, 1_000_000  # rows
IN_QDRANT = (SMALL, MIDDLE)
CEILING_MS = 5.0  # CPU of a run that asks nobody
CEILING_GROWTH = 1.5  # the same, the largest table against the smallest
CEILING_ASKING_MS = 15.0  # CPU of a run that asks the target, beyond opening a local folder
CEILING_IMPORT = 0.3  # wall time of a whole process, against importing qdrant_client
_RUNS = 10  # in each process, besides the first
_SIZE = 100  # bytes of a row's content
_DIMENSION = 8


@dataclass(slots=True)
class Runs:
    """Milliseconds of CPU of runs of one kind: first ones in a process, others, and openings."""

    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    opening: list[float] = field(default_factory=list)


Found = dict[tuple[int, bool], Runs]
"""What was measured, by the table's rows and whether the target was asked."""


def make(folder: Path, rows: int) -> Path:
    """Make a table that is in sync and return its settings file."""
    print(f"  making and syncing {rows:,} rows", file=sys.stderr, flush=True)
    path = tables.make_folder(folder, rows, _SIZE, _DIMENSION)
    if rows in IN_QDRANT:
        execute([*once(path), "--set", "log.level=warning"])
    else:
        with tables.to_nowhere(tables.settings_in(path)) as (sides, pipeline):
            tables.sync(sides, pipeline)
    return path


def once(settings: Path) -> list[str]:
    """Return the command that a timer runs."""
    return [sys.executable, "-m", "syncer", "once", "-c", str(settings)]


def execute(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command, its output caught, out of reach of the user's settings."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SYNCER_")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        sys.exit(f"idle: {' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return done


def check_idle(log: str, *, asked: bool, runs: int = 1) -> None:
    """Exit unless `log` says that each of so many runs had nothing to do and asked, or did not."""
    events = [json.loads(line) for line in log.splitlines()]
    looked = [one["looked_at_target"] for one in events if one["event"] == "nothing to do"]
    if looked != [asked] * runs:
        sys.exit(f"idle: these were not the runs to be measured:\n{log}")


def measure_cpu(settings: Path, runs: Runs, *, ask: bool) -> None:
    """Add the runs of one process to `runs`."""
    script = str(Path(__file__).with_name("idle_runs.py"))
    command = [sys.executable, script, str(settings), str(1 + _RUNS), *(["--ask"] if ask else [])]
    done = execute(command)
    check_idle(done.stderr, asked=ask, runs=1 + _RUNS)
    first, *later = [json.loads(line) for line in done.stdout.splitlines()]
    runs.first.append(first["run"])
    runs.later.extend(one["run"] for one in later)
    runs.opening.extend(one["opening"] for one in later)


def measure_processes(settings: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Return the wall seconds of idle processes and of bare imports, in turn."""
    commands = once(settings), [sys.executable, "-c", "import qdrant_client"]
    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(1 + rounds):
        for command, found in zip(commands, seconds, strict=True):
            began = time.perf_counter()
            done = execute(command)
            found.append(time.perf_counter() - began)
            if command is commands[0]:
                check_idle(done.stderr, asked=False)
    return seconds[0][1:], seconds[1][1:]


def measure(folder: Path, rounds: int) -> tuple[Found, tuple[list[float], list[float]]]:
    """Make the tables and measure everything."""
    paths = {rows: make(folder / str(rows), rows) for rows in (SMALL, MIDDLE, LARGE)}
    found: Found = {(rows, False): Runs() for rows in paths}
    found |= {(rows, True): Runs() for rows in IN_QDRANT}
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for (rows, ask), runs in found.items():
            measure_cpu(paths[rows], runs, ask=ask)
    return found, measure_processes(paths[LARGE], max(7, rounds))


def table(found: Mapping[tuple[int, bool], Runs]) -> Iterable[str]:
    """Return the lines of a table with the medians."""
    yield f"{'CPU ms, median':<16}{'rows':>9}{'run':>8}{'first':>8}{'opening':>9}"
    for (rows, ask), runs in found.items():
        name = "asks the target" if ask else "asks nobody"
        opening = f"{median(runs.opening):9.1f}" if ask else ""
        yield f"{name:<16}{rows:>9,}{median(runs.later):8.1f}{median(runs.first):8.1f}{opening}"


def verdict(found: Mapping[tuple[int, bool], Runs], ratio: float) -> tuple[str, bool]:
    """Return the closing line, numbers rounded up, and whether all are below their ceilings."""
    alone = {rows: median(runs.later) for (rows, ask), runs in found.items() if not ask}
    first = max(median(runs.first) for (_, ask), runs in found.items() if not ask)
    asking = max(median(runs.first) for (_, ask), runs in found.items() if ask)
    growth = alone[LARGE] / alone[SMALL]
    line = (
        f"idle: {_up(ratio, 2)}x import of qdrant_client, ceiling {CEILING_IMPORT}x; "
        f"{_up(first, 1)} ms, ceiling {CEILING_MS:.0f} ms; "
        f"{_up(growth, 2)}x from {SMALL:,} to {LARGE:,} rows, ceiling {CEILING_GROWTH}x; "
        f"{_up(asking, 1)} ms asking the target, ceiling {CEILING_ASKING_MS:.0f} ms"
    )
    return line, (
        ratio <= CEILING_IMPORT
        and first < CEILING_MS
        and growth < CEILING_GROWTH
        and asking < CEILING_ASKING_MS
    )


def _up(value: float, digits: int) -> str:
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="processes of each kind (5)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    with tempfile.TemporaryDirectory() as folder:
        found, (idle, bare) = measure(Path(folder), options.rounds)
    print(*table(found), sep="\n")
    print(f"whole process: syncer once {median(idle):.2f} s, import {median(bare):.2f} s")
    line, low = verdict(found, median(idle) / median(bare))
    print(line)
    return 0 if low else 1


if __name__ == "__main__":
    sys.exit(main())
