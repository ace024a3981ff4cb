"""What the state says of a collection, for metrics and the status page."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import memory
import pytest

from syncer.cli import facts
from syncer.errors import SourceError, SyncerError
from syncer.telemetry import UNKNOWN, Facts


def test_before_the_first_run_nothing_is_known(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    assert facts.gather(memory.settings_for(tmp_path)) == UNKNOWN


def test_in_sync_the_lag_is_nothing_and_known_to_be(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "two"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings)
    found = facts.gather(settings)
    assert (found.lag_rows, found.lag_seconds) == (0, 0.0)
    assert (found.quarantined, found.withheld) == ({}, 0)
    assert found.last_success is not None
    assert abs(found.last_success - datetime.now(UTC).timestamp()) < 3600
    (generation,) = found.generations
    assert (generation.phase, generation.rows) == ("serving", 2)
    assert (found.last_verify, found.drift, found.rebuild_progress) == (None, None, None)


@pytest.mark.rule("OP-04")
def test_a_change_that_waits_is_counted_and_has_an_age(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "two"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings)
    memory.execute(tmp_path / "memory.db", "UPDATE memory_events SET content = 'x' WHERE id = 1")
    found = facts.gather(settings)
    assert found.lag_rows == 1
    assert found.lag_seconds is not None
    assert 0 < found.lag_seconds < 3600


@pytest.mark.rule("OP-04")
def test_quarantined_rows_are_told_by_reason_and_are_no_lag(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "two"])
    settings = memory.settings_for(tmp_path)
    memory.execute(tmp_path / "memory.db", "UPDATE memory_events SET content = x'ff' WHERE id = 1")
    memory.sync_memory(settings)
    found = facts.gather(settings)
    assert found.quarantined == {"blob_in_text": 1}
    assert (found.lag_rows, found.lag_seconds) == (0, 0.0)


def test_a_rebuild_under_way_has_a_phase_and_a_progress(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "two", "three", "four"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings)
    green = (
        "INSERT INTO syncer_generations (generation, alias, source_table, created_at, expired_to,"
        " change_seq, phase, last_id, rows) SELECT 'memory--2', alias, source_table, created_at,"
        " expired_to, change_seq, 'building', ?, ? FROM syncer_generations"
    )
    memory.execute(tmp_path / "memory.db", green, ("1", 1))
    found = facts.gather(settings)
    assert found.rebuild_progress == 0.25
    assert [one.phase for one in found.generations] == ["serving", "being built by a rebuild"]
    assert found.lag_rows == 0
    memory.execute(tmp_path / "memory.db", "UPDATE syncer_generations SET walked = 1")
    assert facts.gather(settings).rebuild_progress == 1.0


def test_facts_are_gathered_from_any_thread(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings)
    found: list[Facts] = []
    asking = threading.Thread(target=lambda: found.append(facts.gather(settings)))
    asking.start()
    asking.join()
    assert found[0].lag_rows == 0


def test_a_database_that_is_locked_or_gone_is_an_error_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.make_memory(tmp_path, ["one"])
    settings = memory.settings_for(tmp_path, **{"source.busy_timeout": 3600})
    memory.sync_memory(settings)
    monkeypatch.setattr(facts, "_PATIENCE", 0.1)
    with closing(memory.write(tmp_path / "memory.db")) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SyncerError):
            facts.gather(settings)
    (tmp_path / "memory.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(SourceError):
        facts.gather(settings)
