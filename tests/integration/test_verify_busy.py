"""Writers and a syncer at work while both stores are compared: nothing is reported that is not."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import comparing
import memory
import pytest
from comparing import CLEAN, LONG, Compared
from qdrant_http import Options, running

INSERT = "INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', ?)"
ANY = "id = (SELECT id FROM memory_events ORDER BY random() LIMIT 1)"
CHANGES = (
    INSERT,
    f"UPDATE memory_events SET content = ? WHERE {ANY}",
    f"UPDATE memory_events SET scope = ? WHERE {ANY}",
    f"DELETE FROM memory_events WHERE ? <> '' AND {ANY}",
)


def write(here: Compared) -> None:
    """Change one row, or two."""
    chance = random.Random()  # noqa: S311 - which rows is all the same
    with closing(sqlite3.connect(here.settings.source.database, timeout=30)) as connection:
        for _ in range(chance.choice((1, 1, 2))):
            text = f"{chance.random()} {LONG[: chance.randrange(len(LONG))]}"
            connection.execute(chance.choice(CHANGES), (text,))
            connection.commit()
    time.sleep(0.002)


def sync(here: Compared) -> None:
    """Catch up in a process's own way: with connections of its own."""
    with comparing.opened(here.settings) as own:
        for _ in range(20):
            own.sync()


@contextmanager
def busy(here: Compared, *works: Callable[[Compared], None]) -> Iterator[None]:
    """Do all of this over and over, each in a thread of its own, while the block runs."""
    ended = threading.Event()
    failed: list[BaseException] = []

    def again(work: Callable[[Compared], None]) -> None:
        while not ended.is_set():
            try:
                work(here)
            except BaseException as error:  # noqa: BLE001 - told below
                failed.append(error)
                return

    threads = [threading.Thread(target=again, args=(work,)) for work in works]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in threads:
            each.join()
    assert not failed


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.long)])
def test_writers_at_work_cause_no_false_report(tmp_path: Path, seconds: float) -> None:
    with (
        running(Options(folder=tmp_path / "storage")) as server,
        comparing.compared(tmp_path, server.url, {"sparse.enabled": False}) as here,
    ):
        for number in range(150):
            here.execute(INSERT, f"{number} {LONG if number % 3 else ''}")
        here.sync()
        comparisons = pending = 0
        with busy(here, write, sync):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                result = here.verify()
                assert comparing.named(result) == CLEAN
                comparisons += 1
                pending += len(result.pending)
        assert comparisons > 1
        assert pending  # the second look had something to excuse
        with comparing.opened(here.settings) as own:
            own.sync()
        assert here.found() == CLEAN
        here.client.delete("memory", [int(next(iter(here.points())))])  # type: ignore[call-overload]
        assert here.found() != CLEAN


def test_an_orphan_among_busy_rows_is_found_all_the_same(tmp_path: Path) -> None:
    with (
        running(Options(folder=tmp_path / "storage")) as server,
        comparing.compared(tmp_path, server.url, {"sparse.enabled": False}) as here,
    ):
        comparing.put(here, 901_000, "901000", 0, 1)
        with busy(here, write, sync):
            found = [here.found() for _ in range(3)]
        assert found == [{"orphan": {"901000"}}] * 3
        assert memory.head_of(here.pipeline) > 0
