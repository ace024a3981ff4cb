"""A rebuild over the wire with a real model, while others write, sync and read all the time.

Real processes and the packaged model: whoever reads through the alias never misses a row that was
there all along and never sees an error; afterwards the collection equals SQLite.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from commands import run
from qdrant_http import Program, started
from rebuilding import equality

from syncer.settings import Settings, load

SUBJECTS = ("the harbour", "a ferry", "the lighthouse", "the old market", "a letter", "the tide")
DOINGS = ("closes in winter", "is late again", "smells of salt", "was painted blue", "sleeps")
NEWS = "The ferry to the island is late again."
ROWS = 120
ALL_ALONG = range(1, 41)  # rows that nobody touches
SAMPLE = 24  # rows whose texts are embedded again
PACKAGED = ""
OTHER_DIMENSION, SAME_DIMENSION = "of another dimension", "of the same dimension"
MODELS = {
    OTHER_DIMENSION: 'provider = "hash"\ndimension = 64\n',
    SAME_DIMENSION: 'passage_prefix = "passage: "\nquery_prefix = "query: "\n',
}
SECONDS = 120  # for a process on a busy machine


def text(number: int) -> str:
    """Return a short text of its own."""
    subject, doing = SUBJECTS[number % len(SUBJECTS)], DOINGS[number % len(DOINGS)]
    return f"Note {number}: {subject} {doing} on day {number * 7 % 31}."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server in a process of its own."""
    with started(tmp_path_factory.mktemp("qdrant") / "storage") as program:
        yield program


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, server: Program) -> Path:
    """A memory that was synced with the packaged model."""
    folder = tmp_path_factory.mktemp("base")
    memory.make_memory(folder, [text(number) for number in range(1, ROWS + 1)])
    settle(folder, server, PACKAGED)
    done = run("once", cwd=folder)
    assert done.code == 0, done.err
    return folder


def settle(folder: Path, server: Program, embed: str) -> Settings:
    """Write the settings, with these lines for the model."""
    (folder / "syncer.toml").write_text(
        f'[source]\ndatabase = "memory.db"\n[target]\nurl = "{server.url}"\n'
        'check_interval = 0\nvector = "dense"\n[sync]\nwindow_rows = 20\nmax_deletes = 1000\n'
        f"[embed]\n{embed}"
    )
    return settings_of(folder)


def settings_of(folder: Path) -> Settings:
    """Return what the settings file says."""
    return load(folder / "syncer.toml", environ={})


@dataclass
class Beside:
    """What others do beside a rebuild, each in a thread of its own, and what went wrong."""

    folder: Path
    url: str
    done: dict[str, int] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Let them work while the block runs."""
        work: tuple[Callable[[], None], ...] = (self._read, self._write, self._sync)
        threads = [threading.Thread(target=self._again, args=(each,)) for each in work]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._over.set()
            for each in threads:
                each.join()

    def _again(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told below, in the test's own thread
            self.complaints.append(f"{work.__name__}: {error!r} {error}")

    def _read(self) -> None:
        """Ask for all rows by the alias, as any reader does."""
        with wire.anywhere_else(self.url) as client:
            while not self._over.is_set():
                found, _ = client.scroll("memory", limit=10_000)
                there = {record.id for record in found}
                if missing := set(ALL_ALONG) - there:
                    self.complaints.append(f"missed {sorted(missing)}")
                near = client.query_points("memory", query=1, using="dense", limit=3)
                if not near.points:
                    self.complaints.append("no answer to a search")
                self.done["read"] = self.done.get("read", 0) + 1

    def _write(self) -> None:
        """Insert, edit and delete, a few rows at a time."""
        chance = random.Random(7)  # noqa: S311 - no secret
        number = 1000
        while not self._over.is_set():
            number += 1
            database = sqlite3.connect(self.folder / "memory.db", timeout=30)
            with closing(database) as connection, connection:
                connection.execute(
                    "INSERT INTO memory_events (agent, scope, source, content) "
                    "VALUES ('w', 's', 'x', ?)",
                    (text(number),),
                )
                row = chance.randint(len(ALL_ALONG) + 1, ROWS + 20)
                connection.execute(
                    "UPDATE memory_events SET content = ? WHERE id = ?", (text(number + 500), row)
                )
                connection.execute("DELETE FROM memory_events WHERE id = ?", (row + 1,))
                connection.execute(
                    "UPDATE memory_events SET scope = ? WHERE id = ?", (f"s{number}", row + 2)
                )
            self.done["written"] = self.done.get("written", 0) + 1
            time.sleep(0.05)

    def _sync(self) -> None:
        """Run ``syncer once`` again and again, as cron does."""
        while not self._over.is_set():
            done = run("once", cwd=self.folder, timeout=SECONDS)
            if done.code != 0:
                self.complaints.append(f"once: {done.code} {done.err[-500:]}")
            self.done["synced"] = self.done.get("synced", 0) + 1


@pytest.mark.rule("RB-04")
@pytest.mark.rule("RB-05")
@pytest.mark.parametrize(
    "model", [OTHER_DIMENSION, pytest.param(SAME_DIMENSION, marks=pytest.mark.long)]
)
def test_while_a_model_is_replaced_readers_miss_nothing_and_writers_lose_nothing(
    base: Path, server: Program, model: str
) -> None:
    settings = settle(base, server, MODELS[model])
    before = equality.serving(settings)
    beside = Beside(base, server.url)
    with start(base, "rebuild", "--json") as rebuild:
        wait_for_green(settings)  # from here on a run beside it goes on by blue's own recipe
        with beside.working():
            out, err = rebuild.communicate(timeout=SECONDS)
    assert rebuild.returncode == 0, err
    assert json.loads(out)["caught_up"]
    assert beside.complaints == []
    assert beside.done["read"] > 1
    assert beside.done["written"] > 1
    assert beside.done["synced"] >= 1
    last = run("once", cwd=base)
    assert last.code == 0, last.err
    assert equality.serving(settings) != before
    equality.assert_equal(settings, sample=SAMPLE)
    assert best(base, text(7)) == "7"
    go_back(base, server, before)


def go_back(base: Path, server: Program, before: str) -> None:
    """Roll back to the packaged model, which has not seen the last changes."""
    settings = settle(base, server, PACKAGED)
    done = run("rollback", before, cwd=base)
    assert done.code == 0, done.err
    assert equality.serving(settings) == before
    equality.assert_equal(settings, sample=SAMPLE)
    assert run("gc", "--keep", "0", cwd=base).code == 0


@pytest.mark.parametrize(
    "model", [SAME_DIMENSION, pytest.param(OTHER_DIMENSION, marks=pytest.mark.long)]
)
def test_answers_come_by_the_old_model_until_the_swap_and_edits_are_embedded_by_each_one_s_own(
    base: Path, server: Program, model: str
) -> None:
    settings = settle(base, server, MODELS[model])
    blue = equality.serving(settings)
    old = scores(base)
    with start(base, "rebuild", "--json") as rebuild:
        wait_for_green(settings)
        rebuild.kill()
    assert scores(base) == old
    memory.execute(
        base / "memory.db",
        "UPDATE memory_events SET content = ? WHERE id = 20",
        (NEWS,),
    )
    assert run("once", cwd=base).code == 0
    assert equality.serving(settings) == blue
    equality.assert_equal(settings, sample=SAMPLE)
    assert best(base, NEWS) == "20"
    done = run("rebuild", cwd=base)
    assert done.code == 0, done.err
    equality.assert_equal(settings, sample=SAMPLE)
    assert best(base, NEWS) == "20"
    assert scores(base) != old
    go_back(base, server, blue)


@contextmanager
def start(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command, and see that it is gone in the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "syncer", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_green(settings: Settings) -> None:
    """Wait until a window of green is in."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if any(each.phase.is_green and each.rows for each in equality.generations(settings)):
            return
        time.sleep(0.02)
    raise AssertionError("no green is built")


def best(folder: Path, question: str) -> str:
    """Return the row that ``syncer search`` finds first."""
    found = run("search", "--json", "--mode", "dense", question, cwd=folder)
    assert found.code == 0, found.err
    return str(json.loads(found.out)[0]["row"])


def scores(folder: Path) -> list[float]:
    """Return how near to a question the nearest rows are, as ``syncer search`` has it."""
    found = run("search", "--json", "--mode", "dense", "boats in the harbour", cwd=folder)
    assert found.code == 0, found.err
    return [round(hit["score"], 4) for hit in json.loads(found.out)]
