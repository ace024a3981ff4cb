"""Measures how soon a row that another process commits can be retrieved, and what idling costs.

``syncer run`` and a Qdrant server (QDRANT_URL's, else the tests' own on Qdrant's engine) run in
processes of their own. A row is committed, then asked for through the alias until it is there; the
time between is measured, with the hash provider and with the packaged model, where one embedding,
measured in the same run, is allowed on top. Then the daemon is left alone, and its CPU time and
what it asks the target are counted: while nothing happens, and while somebody else commits to
another table; on a large table too, whose state is as after a first sync. Ends with one line; exits
1 if anything is above its ceiling.
"""

from __future__ import annotations

import argparse
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import httpx
import tables
from qdrant_client import QdrantClient
from servers import server

from syncer.cli import opening
from syncer.embed import EmbedSpec, build
from syncer.model import Outcome

CEILING_MS = 250.0  # from commit to retrieval, at the median
CEILING_CPU = 0.5  # percent of a core, idle
LARGE = 1_000_000  # rows of the table on which it idles, too
_SMALL = 1_000
_STARTING = 120.0  # seconds for the daemon to be ready
_POLL = 0.002  # seconds between two looks at whether a row is there
_GIVE_UP = 10.0  # seconds until a row counts as lost
_COUNTED = {"kind": "slow", "seconds": 0, "times": None}  # a fault that does nothing is noted
_INSERT = "INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', ?)"
_SERVER = '[target]\nurl = "{url}"\ncheck_interval = 86400\n'
_REST = """
[daemon]
verify_interval = 0
[metrics]
listen = "127.0.0.1:0"
[log]
format = "json"
"""
_HASH = '[embed]\nprovider = "hash"\ndimension = 384\n'


@dataclass(frozen=True, slots=True)
class Idle:
    """Percent of a core that a daemon took, and how many requests it made."""

    rows: int
    cpu: float
    requests: int


@contextmanager
def daemon(folder: Path) -> Iterator[int]:
    """Run ``syncer run`` in a folder until the block ends; give its process id, once all is in."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SYNCER_")}
    log = folder / "daemon.log"
    with (
        log.open("w", encoding="utf-8") as out,
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "syncer", "run", "-c", str(folder / "syncer.toml")],
            stderr=out,
            env={**environ, "HF_HUB_OFFLINE": "1"},
        ) as process,
    ):
        try:
            _wait_until_ready(process, log)
            yield process.pid
        finally:
            process.terminate()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for /readyz, at the address that the log names."""
    marker = "status page are at "
    deadline = time.monotonic() + _STARTING
    while process.poll() is None and time.monotonic() < deadline:
        text = log.read_text(encoding="utf-8")
        if marker in text:
            address = text.partition(marker)[2].partition('"')[0]
            if httpx.get(f"http://{address}/readyz").status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    sys.exit(f"freshness: the daemon is not ready\n{log.read_text(encoding='utf-8')}")


def make(folder: Path, url: str, alias: str, embed: str, rows: int) -> Path:
    """Make a table and the settings for it; return the database."""
    folder.mkdir()
    database = folder / "memory.db"
    tables.fill(database, rows, 100)
    source = f'[source]\ndatabase = "{database}"\n'
    target = _SERVER.format(url=url) + f'collection = "{alias}"\n'
    (folder / "syncer.toml").write_text(source + target + embed + _REST, encoding="utf-8")
    return database


def freshness(client: QdrantClient, database: Path, alias: str, count: int) -> list[float]:
    """Return the milliseconds from the commit of a row until it is retrieved, for each of some."""
    found: list[float] = []
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for number in range(count + 3):
            row = connection.execute(_INSERT, [f"a fresh row, number {number}"]).lastrowid
            began = time.perf_counter()
            while not client.retrieve(alias, [int(row or 0)], with_payload=False):
                if time.perf_counter() - began > _GIVE_UP:
                    sys.exit(f"freshness: row {row} never arrived")
                time.sleep(_POLL)
            found.append(1000 * (time.perf_counter() - began))
            time.sleep(0.2 + 0.05 * (number % 7) / 7)  # idle again, and in no step with its polling
    return found[3:]  # the first ones warm up


def one_embedding() -> float:
    """Return the milliseconds that the packaged model takes for one such row."""
    embedder = build(EmbedSpec(), {})
    found: list[float] = []
    for number in range(13):
        began = time.perf_counter()
        embedder.embed([f"a fresh row, number {number}"])
        found.append(1000 * (time.perf_counter() - began))
    embedder.close()
    return median(found[3:])


def idle(pid: int, url: str, seconds: float, rows: int, busy: Callable[[], None]) -> Idle:
    """Leave the daemon alone for so many seconds, `busy` called ten times; return what it did."""
    before, cpu = _asked(url), _cpu(pid)
    began = time.monotonic()
    for _ in range(10):
        busy()
        time.sleep(seconds / 10)
    took = time.monotonic() - began
    return Idle(rows, 100 * (_cpu(pid) - cpu) / took, _asked(url) - before)


def _cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _asked(url: str) -> int:
    """Return how many requests the tests' server has had since it was told to count; else 0."""
    if os.environ.get("QDRANT_URL"):
        return 0
    return len(httpx.get(f"{url}/_faults").json()["happened"])


def measure_idle(folder: Path, url: str, rows: int, seconds: float) -> list[Idle]:
    """Let the daemon idle on a table of so many rows, alone and beside somebody else."""
    print(f"  making {rows:,} rows, in step as after a first sync", file=sys.stderr, flush=True)
    database = make(folder, url, f"idle-{rows}", _HASH, _SMALL)
    with daemon(folder):
        pass  # makes the generation
    if rows > _SMALL:
        _enlarge(folder, rows)
    if not os.environ.get("QDRANT_URL"):
        httpx.post(f"{url}/_faults", json=[_COUNTED]).raise_for_status()
    with daemon(folder) as pid, closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("CREATE TABLE elsewhere (x)")
        time.sleep(2)
        alone = idle(pid, url, seconds, rows, lambda: None)
        beside = idle(pid, url, seconds, rows, lambda: _commit_elsewhere(other))
    return [alone, beside]


def _commit_elsewhere(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO elsewhere VALUES (1)")


def _enlarge(folder: Path, rows: int) -> None:
    """Add rows to a table in step, and bring the state to where a sync of them would leave it.

    The target gets none of them: an idle daemon does not look there.
    """
    with closing(sqlite3.connect(folder / "memory.db")) as connection, connection:
        values = ([f"a row of many, number {number}"] for number in range(rows - _SMALL))
        connection.executemany(_INSERT, values)
    with opening.opened(tables.settings_in(folder / "syncer.toml")) as sides:
        known = sides.store.serving(sides.alias)
        if known is None:
            sys.exit("freshness: the daemon has made no generation")
        state = sides.store.bind(known.generation)
        position = state.position()
        state.commit(position, replace(position, change_seq=sides.source.head()), Outcome())


def table(ways: Sequence[tuple[str, list[float]]], idles: Sequence[Idle]) -> Iterator[str]:
    """Return the lines of a table."""
    yield f"{'commit to retrieval, ms':<26}{'median':>8}{'least':>8}{'most':>8}"
    for name, found in ways:
        yield f"{name:<26}{median(found):8.0f}{min(found):8.0f}{max(found):8.0f}"
    yield f"{'idle':<26}{'rows':>9}{'CPU %':>8}{'requests':>10}"
    for number, one in enumerate(idles):
        name = "others commit" if number % 2 else "nothing happens"
        yield f"{name:<26}{one.rows:>9,}{one.cpu:8.2f}{one.requests:>10}"


def _up(value: float, digits: int) -> str:
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def measure_freshness(folder: Path, url: str, embed: str, count: int) -> list[float]:
    """Return the milliseconds from commit to retrieval by one embedder."""
    alias = folder.name
    print(f"  {count} rows, one after the other, {alias}", file=sys.stderr, flush=True)
    database = make(folder, url, alias, embed, _SMALL if embed == _HASH else 20)
    with daemon(folder), closing(QdrantClient(url=url, check_compatibility=False)) as client:
        return freshness(client, database, alias, count)


def verdict(hashed: float, real: float, allowed: float, idles: Sequence[Idle]) -> tuple[str, bool]:
    """Return the closing line, numbers rounded up, and whether all are below their ceilings."""
    cpu = max(one.cpu for one in idles)
    requests = sum(one.requests for one in idles)
    line = (
        f"freshness: {_up(hashed, 0)} ms, ceiling {CEILING_MS:.0f} ms; {_up(real, 0)} ms with the "
        f"packaged model, ceiling {_up(allowed, 0)} ms; idle {_up(cpu, 2)} % of a core, ceiling "
        f"{CEILING_CPU} %; {requests} requests, ceiling 0"
    )
    return line, hashed < CEILING_MS and real < allowed and cpu < CEILING_CPU and not requests


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="rows of each kind (40)")
    parser.add_argument("--seconds", type=float, default=20, help="of idling, each time (20)")
    parser.add_argument("--rows", type=int, default=LARGE, help="of the large table (1,000,000)")
    options = parser.parse_args()
    if options.count < 1 or options.seconds <= 0 or options.rows < _SMALL:
        parser.error(f"--count and --seconds must be positive, --rows at least {_SMALL}")
    with tempfile.TemporaryDirectory() as temporary, server() as url:
        folder = Path(temporary)
        ways = [
            ("hash provider", measure_freshness(folder / "hash", url, _HASH, options.count)),
            ("packaged model", measure_freshness(folder / "model", url, "", options.count)),
        ]
        embedding = one_embedding()
        sizes = sorted({_SMALL, options.rows})
        idles = [
            one
            for rows in sizes
            for one in measure_idle(folder / f"idle-{rows}", url, rows, options.seconds)
        ]
    print(*table(ways, idles), sep="\n")
    print(f"one embedding: {embedding:.0f} ms")
    hashed, real = (median(found) for _, found in ways)
    line, low = verdict(hashed, real, CEILING_MS + embedding, idles)
    print(line)
    return 0 if low else 1


if __name__ == "__main__":
    sys.exit(main())
