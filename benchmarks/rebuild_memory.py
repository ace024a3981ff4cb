"""Measures the memory of a rebuild by the size of the table, and that it goes on where it was.

Two canonical tables, a small and a large one, are synced to a server by the `hash` provider with
BM25; then each is rebuilt by another mapping in a process of its own, which is killed by SIGKILL
half way and started again: the second one may look at no more rows than were left, and a window.
Its peak is compared. The server is QDRANT_URL's, else the tests' own on Qdrant's engine, in its own
process. Ends with one line; exits 1 if the large table takes more memory than its share.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tables
from servers import server

from syncer.settings import Settings
from syncer.state import StateStore

CEILING, SPARE = 1.10, 20  # share of the small table's peak; MB that it may be more in any case
ALIAS = "syncer-rebuild-memory"
_SIZE, _DIMENSION = 300, 32
_MB = 1_000_000
_FEWEST = 2_000  # rows; fewer are rebuilt before they can be killed half way


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended: what it says of itself, its peak in MB, and its seconds."""

    said: dict[str, object]
    peak: float
    seconds: float


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a command in a folder."""
    return subprocess.Popen(  # noqa: S603 - the command line of this very package
        [sys.executable, "-m", "syncer", *arguments, "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def end(process: subprocess.Popen[str], began: float) -> Ended:
    """Wait for a command's end."""
    said = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"rebuild_memory: a command ended with {process.returncode}: {said}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / _MB
    return Ended(json.loads(said), peak, time.perf_counter() - began)


def settle(folder: Path, url: str, metadata: str) -> Settings:
    """Write the settings with the server and a mapping."""
    said = tables.SETTINGS.format(dimension=_DIMENSION).replace(
        "[target]\n", f'[target]\nurl = "{url}"\ncollection = "{ALIAS}"\n'
    )
    said = said.replace("[source]\n", f"[source]\nmetadata = {metadata}\n")
    (folder / "syncer.toml").write_text(said, encoding="utf-8")
    return tables.settings_in(folder / "syncer.toml")


def walked(settings: Settings) -> int:
    """Return how many rows green has, 0 if there is none."""
    store = StateStore(settings.source.database)
    try:
        return sum(each.rows for each in store.generations(ALIAS) if each.phase.is_green)
    finally:
        store.close()


def kill_half_way(folder: Path, settings: Settings, rows: int) -> int:
    """Start a rebuild, kill it half way, and return how many rows were in by then."""
    with start(folder, "rebuild") as process:
        while walked(settings) < rows // 2:
            if process.poll() is not None:
                sys.exit("rebuild_memory: the rebuild ended before it was killed")
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    return walked(settings)


def measure(url: str, rows: int) -> Ended:
    """Sync a table, rebuild it by another mapping, killed once, and return the second half."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tables.make_folder(folder, rows, _SIZE, _DIMENSION)
        settings = settle(folder, url, '["agent", "scope"]')
        built = end(start(folder, "once"), time.perf_counter())
        print(f"  {rows:,} rows: built in {built.seconds:.0f} s", file=sys.stderr, flush=True)
        settings = settle(folder, url, '["agent"]')
        there = kill_half_way(folder, settings, rows)
        found = end(start(folder, "rebuild"), time.perf_counter())
        left = rows - there + settings.sync.window_rows
        if int(str(found.said["read"])) > left:
            sys.exit(f"rebuild_memory: {found.said['read']} rows were read again, not {left}")
        print(f"  the rest rebuilt in {found.seconds:.0f} s", file=sys.stderr, flush=True)
        end(start(folder, "gc", "--keep", "0"), time.perf_counter())
        clean(url)
    return found


def clean(url: str) -> None:
    """Leave nothing on the server."""
    from qdrant_client import QdrantClient  # noqa: PLC0415 - this process is to stay small

    client = QdrantClient(url=url, api_key=os.environ.get("QDRANT_API_KEY"))
    for each in client.get_collections().collections:
        if each.name.startswith(f"{ALIAS}--"):
            client.delete_collection(each.name)
    client.close()


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of the large table (100,000)")
    parser.add_argument("--few", type=int, default=10_000, help="of the small one (10,000)")
    options = parser.parse_args()
    if not _FEWEST <= options.few <= options.rows:
        parser.error(f"--few must be at least {_FEWEST}, and --rows as many")
    with server() as url:
        small, large = measure(url, options.few), measure(url, options.rows)
    print(f"{options.few:>9,} rows: {small.peak:.0f} MB at the peak of a rebuild")
    print(f"{options.rows:>9,} rows: {large.peak:.0f} MB")
    share = large.peak / small.peak
    print(
        f"rebuild memory: {options.rows:,} rows take {math.ceil(share * 100) / 100:.2f} of what "
        f"{options.few:,} do, ceiling {CEILING:.2f} or {SPARE} MB more"
    )
    return 0 if share <= CEILING or large.peak <= small.peak + SPARE else 1


if __name__ == "__main__":
    sys.exit(main())
