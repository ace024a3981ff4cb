"""The experiment that the project began with, against Qdrant's local mode."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import memory
import pytest
from commands import run

from syncer.errors import TargetUnavailableError
from syncer.settings import Settings


class FlakyClient:
    """The real client, but the upsert with a given number does not arrive."""

    def __init__(self, inner: object, fail_on: int) -> None:
        self._inner, self._fail_on = inner, fail_on
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        """Pass everything else through."""
        return getattr(self._inner, name)

    def upsert(self, *args: object, **options: object) -> object:
        """Fail once."""
        self.calls += 1
        if self.calls == self._fail_on:
            raise ConnectionError("simulated: qdrant unreachable")
        return self._inner.upsert(*args, **options)  # type: ignore[attr-defined]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """45 rows, and windows of 20."""
    memory.make_memory(tmp_path, [f"memory event #{number}" for number in range(1, 46)])
    return memory.settings_for(tmp_path, **{"sync.window_rows": 20})


def last_id(settings: Settings) -> int:
    """Return what the view in the seed's shape says."""
    with closing(memory.write(settings.source.database)) as connection:
        rows = connection.execute("SELECT target, last_id FROM sync_status").fetchall()
    assert [target for target, _ in rows] == ["memory"]
    return int(rows[0][1])


@pytest.mark.rule("CT-01")
def test_a_failed_upsert_is_sent_again_and_a_replay_adds_nothing(settings: Settings) -> None:
    with memory.pipeline_for(settings) as (pipeline, connection):
        flaky = FlakyClient(connection.client, fail_on=2)
        pipeline.target._writes._client = flaky  # type: ignore[attr-defined] # noqa: SLF001
        with pytest.raises(TargetUnavailableError, match="qdrant unreachable"):
            memory.sync(pipeline)
        assert pipeline.state.position().last_id == "20"
        assert last_id(settings) == 20
        assert len(memory.all_points(connection)) == 20

    with memory.pipeline_for(settings) as (pipeline, connection):
        result = memory.sync(pipeline)
        assert (result.embedded, result.unchanged) == (25, 0)
        assert last_id(settings) == 45
        assert len(memory.all_points(connection)) == 45

    memory.execute(
        settings.source.database,
        "UPDATE syncer_generations SET last_id = NULL, walked = 0, change_seq = 0",
    )
    with memory.pipeline_for(settings) as (pipeline, connection):
        result = memory.sync(pipeline)
        assert (result.read, result.embedded, result.unchanged) == (45, 0, 45)
        assert last_id(settings) == 45
        assert len(memory.all_points(connection)) == 45


SEED_TABLE = """
CREATE TABLE events (
    id         INTEGER PRIMARY KEY,
    scope      TEXT NOT NULL,
    source     TEXT NOT NULL,
    content    TEXT NOT NULL
);
INSERT INTO events (scope, source, content) VALUES ('s', 'x', 'one'), ('s', 'x', 'two');
"""


def test_a_key_without_autoincrement_is_called_a_risk_by_doctor_and_at_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    with closing(memory.write(path)) as connection:
        connection.executescript(SEED_TABLE)
    arguments = ("--set", f"source.database={path}", "--set", "source.table=events")
    hashed = ("--set", "embed.provider=hash")
    assert run("attach", *arguments, cwd=tmp_path).code == 0

    once = run("once", *arguments, *hashed, cwd=tmp_path)
    assert once.code == 0
    (risk,) = [line for line in once.log if line["event"] == "risk"]
    doctor = run("doctor", "--json", *arguments, *hashed, cwd=tmp_path)
    assert doctor.code == 0
    (check,) = [check for check in json.loads(doctor.out) if check["subject"] == "key"]
    assert check["verdict"] == "warning"
    for text in (str(risk["message"]), str(check["finding"])):
        assert "events.id is INTEGER PRIMARY KEY without AUTOINCREMENT" in text
        assert "deleted last row" in text
