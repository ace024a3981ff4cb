"""What a scrape reads of the state: cheaply, whatever has piled up."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import memory
import pytest

from syncer.cli import facts, opening
from syncer.errors import SyncerError
from syncer.settings import Settings

HELD = 20_000
QUARANTINED = """
INSERT INTO syncer_quarantine (generation, row, reason, first_seen, last_seen, next_try)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {held})
SELECT generation, i, iif(i % 4, 'too_large', 'invalid_utf8'), '2026', '2026', '9999'
FROM n, syncer_generations
"""
WITHHELD = """
INSERT INTO syncer_withheld (generation, row, since)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {held})
SELECT generation, i, '2026' FROM n, syncer_generations
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A memory that is in the collection."""
    memory.make_memory(tmp_path, ["one", "two"])
    found = memory.settings_for(tmp_path)
    memory.sync_memory(found)
    return found


@pytest.mark.rule("OP-04")
def test_what_is_held_back_is_counted_and_not_read(settings: Settings) -> None:
    for sql in (QUARANTINED, WITHHELD):
        memory.execute(settings.source.database, sql.format(held=HELD))
    with opening.opened(settings) as sides:
        connection = sides.store._database._connection  # noqa: SLF001 - to see what it gives
        given: list[Sequence[object]] = []

        def note(_: sqlite3.Cursor, row: tuple[object, ...]) -> tuple[object, ...]:
            given.append(row)
            return row

        connection.row_factory = note
        found = facts.facts_of(sides)
    assert found.quarantined == {"too_large": HELD * 3 // 4, "invalid_utf8": HELD // 4}
    assert found.withheld == HELD
    assert len(given) < 20


def test_a_dear_look_is_given_again_for_a_while_and_what_waits_gets_older(
    settings: Settings,
) -> None:
    memory.execute(settings.source.database, "UPDATE memory_events SET content = 'x' WHERE id = 1")
    now, spent = [100.0], count()  # each look takes a second of computing
    look = facts.Sparing(lambda: settings, lambda: now[0], lambda: float(next(spent)))
    first = look()
    assert first.lag_rows == 1
    assert first.lag_seconds is not None
    memory.sync_memory(settings)
    now[0] += 19.0
    again = look()
    assert (again.lag_rows, again.lag_seconds) == (1, first.lag_seconds + 19.0)
    now[0] += 2.0
    assert (look().lag_rows, look().lag_seconds) == (0, 0.0)


def test_a_look_that_costs_little_is_taken_each_time(settings: Settings) -> None:
    look = facts.Sparing(lambda: settings)
    assert look().lag_rows == 0
    memory.execute(settings.source.database, "UPDATE memory_events SET content = 'x' WHERE id = 1")
    assert look().lag_rows == 1
    settings.source.database.rename(settings.source.database.with_name("away.db"))
    with pytest.raises(SyncerError):
        look()
