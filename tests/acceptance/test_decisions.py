"""What an operator decides: withheld deletes, quarantined rows, stores that went back."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import memory
import pytest
from commands import run

SETTINGS = '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\n'
ROWS = 40


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synced")
    memory.make_memory(folder, [f"text {number}" for number in range(1, ROWS + 1)])
    (folder / "syncer.toml").write_text(SETTINGS)
    assert run("once", cwd=folder).code == 0
    return folder


@pytest.fixture
def folder(synced: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "memory"
    shutil.copytree(synced, copy)
    return copy


def execute(folder: Path, sql: str) -> None:
    memory.execute(folder / "memory.db", sql)


def ids(folder: Path) -> set[object]:
    return set(memory.points_in(memory.settings_for(folder)))


def test_withheld_deletes_are_said_until_they_are_confirmed(folder: Path) -> None:
    execute(folder, "DELETE FROM memory_events WHERE id > 2")
    first = run("once", cwd=folder)
    assert first.code == 9
    assert first.log[-1]["withheld"] == ROWS - 2
    assert len(ids(folder)) == ROWS
    idle = run("once", cwd=folder)
    assert (idle.code, idle.log[-1]["event"]) == (9, "nothing to do")
    assert f"{ROWS - 2} deletes are withheld" in run("status", cwd=folder).out
    assert json.loads(run("status", "--json", cwd=folder).out)["withheld"] == ROWS - 2

    confirmed = run("confirm-deletes", cwd=folder)
    assert (confirmed.code, confirmed.log[-1]["deleted"]) == (0, ROWS - 2)
    assert ids(folder) == {1, 2}
    assert run("once", cwd=folder).code == 0


def test_the_limit_can_be_set(folder: Path) -> None:
    execute(folder, "DELETE FROM memory_events WHERE id > 2")
    assert run("once", "--set", "sync.max_deletes=1000", cwd=folder).code == 0
    assert ids(folder) == {1, 2}


def put_foreign_point(folder: Path, identifier: int) -> None:
    settings = memory.settings_for(folder)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        connection.client.upsert(
            "memory",
            [memory.models.PointStruct(id=identifier, payload={"document": "mine"}, vector={})],
        )


def move_foreign_point(folder: Path, identifier: int) -> None:
    """Take it out of the row's way; a point fewer would be another matter."""
    put_foreign_point(folder, 999)
    settings = memory.settings_for(folder)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        connection.client.delete("memory", [identifier])


def test_a_quarantined_row_is_listed_tried_again_and_forgotten(folder: Path) -> None:
    put_foreign_point(folder, 41)
    execute(folder, "INSERT INTO memory_events (scope, source, content) VALUES ('', '', 'SECRET')")
    assert run("once", cwd=folder).code == 3
    assert run("once", cwd=folder).code == 0  # it is not newly quarantined any more

    listed = run("quarantine", "list", cwd=folder)
    assert "row 41  foreign_point: a foreign point has this row's id" in listed.out
    assert "SECRET" not in listed.out + listed.err
    (record,) = json.loads(run("quarantine", "list", "--json", cwd=folder).out)
    assert (record["row"], record["attempts"]) == ("41", 1)

    assert run("quarantine", "retry", "41", cwd=folder).code == 0
    (record,) = json.loads(run("quarantine", "list", "--json", cwd=folder).out)
    assert record["attempts"] == 2

    move_foreign_point(folder, 41)
    assert run("quarantine", "retry", cwd=folder).log[-1]["embedded"] == 1
    assert 41 in ids(folder)
    assert run("quarantine", "list", cwd=folder).out == "no row is quarantined\n"


def test_a_row_that_is_not_quarantined_cannot_be_tried_or_forgotten(folder: Path) -> None:
    for command in ("retry", "forget"):
        done = run("quarantine", command, "7", cwd=folder)
        assert done.code == 2
        assert "not quarantined: row 7" in done.err


def test_a_forgotten_row_stays_out_until_it_changes(folder: Path) -> None:
    put_foreign_point(folder, 41)
    execute(folder, "INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', 'y')")
    run("once", cwd=folder)
    assert run("quarantine", "forget", "41", cwd=folder).out == "forgot row 41\n"
    assert run("once", cwd=folder).code == 0
    execute(folder, "UPDATE memory_events SET content = 'z' WHERE id = 41")
    assert run("once", cwd=folder).code == 3


def test_a_quarantined_row_is_tried_again_when_its_time_has_come(folder: Path) -> None:
    put_foreign_point(folder, 41)
    execute(folder, "INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', 'y')")
    run("once", cwd=folder)
    move_foreign_point(folder, 41)
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"
    execute(folder, "UPDATE syncer_quarantine SET next_try = '2020-01-01T00:00:00.000Z'")
    assert run("once", cwd=folder).log[-1]["embedded"] == 1
    assert 41 in ids(folder)


def restore_backup(folder: Path) -> None:
    """Let the database go back behind what the collection holds."""
    path = folder / "memory.db"
    backup = folder / "backup.db"
    with closing(memory.write(path)) as source, closing(memory.write(backup)) as copy:
        source.backup(copy)
    execute(folder, "INSERT INTO memory_events (scope, source, content) VALUES ('s', 'x', 'later')")
    execute(folder, "UPDATE memory_events SET content = 'edited later' WHERE id = 1")
    execute(folder, "DELETE FROM memory_events WHERE id = 2")
    assert run("once", cwd=folder).code == 0
    with closing(memory.write(path)) as target, closing(memory.write(backup)) as copy:
        copy.backup(target)


def empty_collection(folder: Path) -> None:
    settings = memory.settings_for(folder)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        connection.client.delete("memory", list(range(1, 21)))


def replace_collection(folder: Path) -> None:
    shutil.rmtree(folder / "qdrant")


def put_other_token(folder: Path) -> None:
    settings = memory.settings_for(folder)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        (name,) = [c.name for c in connection.client.get_collections().collections]
        connection.client.update_collection(name, metadata={"syncer_token": "other"})


@pytest.mark.rule("CT-05")
@pytest.mark.rule("CT-23")
@pytest.mark.parametrize(
    "happen", [restore_backup, empty_collection, replace_collection, put_other_token]
)
def test_a_store_that_went_back_is_refused_and_reconciled_when_asked(
    folder: Path, happen: object
) -> None:
    happen(folder)  # type: ignore[operator]
    always_look = ("--set", "target.check_interval=0")
    before = ids(folder) if (folder / "qdrant").exists() else set()
    refused = run("once", *always_look, cwd=folder)
    assert refused.code == 4
    assert (ids(folder) if before else set()) == before

    mended = run("once", *always_look, "--on-regression", "reconcile", cwd=folder)
    assert mended.code == 0, mended.err
    points = memory.points_in(memory.settings_for(folder))
    assert set(points) == set(range(1, ROWS + 1))
    assert points[1][0]["document"] == "text 1"  # type: ignore[index]
    assert run("once", *always_look, cwd=folder).log[-1]["event"] == "nothing to do"


def test_points_that_nobody_has_counted_are_warned_of(folder: Path) -> None:
    put_foreign_point(folder, 99)
    execute(folder, "UPDATE memory_events SET content = 'new' WHERE id = 1")
    done = run("once", cwd=folder)
    assert done.code == 0
    assert any("1 points that syncer has not counted" in str(e.get("message")) for e in done.log)
