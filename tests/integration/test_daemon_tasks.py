"""The daemon's tasks in this process: what wakes them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import memory
import on_the_wire as wire
import pytest

from syncer.cli.observed import ObservedReport
from syncer.cli.tasks import Tasks
from syncer.settings import Settings
from syncer.telemetry import UNKNOWN
from syncer.telemetry.metrics import Metrics
from syncer.worker import Stop


def tasks_by(settings: Settings) -> Tasks:
    """Return the tasks of a daemon with these settings."""
    metrics = Metrics(lambda: UNKNOWN, {"version": "test"}, of_process=False)
    report = ObservedReport(wire.Told(), metrics, lambda: None)
    return Tasks(lambda: settings, settings, None, report, Stop())


@pytest.fixture(params=[True, False], ids=["wake", "no wake"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """A memory of two rows, and a daemon that commits wake or not."""
    memory.make_memory(tmp_path, ["one", "two"])
    return memory.settings_for(tmp_path, **{"daemon.wake": request.param, "sparse.enabled": False})


def test_a_commit_wakes_the_daemon_if_that_is_asked_for(settings: Settings) -> None:
    with closing(tasks_by(settings)) as tasks:
        assert tasks.sync()
        assert not tasks.is_woken()
        memory.execute(settings.source.database, "UPDATE memory_events SET content = 'uno'")
        assert tasks.is_woken() is settings.daemon.wake
        assert tasks.sync()
        assert not tasks.is_woken()
