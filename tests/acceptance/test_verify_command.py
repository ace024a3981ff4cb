"""``syncer verify`` as a user runs it: what it says, its exit codes, and what it leaves alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import memory
import pytest
from commands import run
from memories import contents, documents, holding, in_sync, settings_of

from syncer.cli import specs
from syncer.target import connect

CANARY = "canary text that nobody may read"


@pytest.fixture
def synced(tmp_path: Path) -> Path:
    """A memory of three rows in sync."""
    return in_sync(tmp_path / "memory")


def damage(folder: Path, *ids: int) -> None:
    """Take points out of the collection."""
    with connect(specs.target_spec(settings_of(folder))) as connection:
        connection.client.delete("memory", list(ids))


def test_equal_stores_end_with_0_and_drift_with_3_until_it_is_mended(synced: Path) -> None:
    damage(synced, 1, 3)
    said = run("verify", "--json", cwd=synced)
    found = json.loads(said.out)
    assert (said.code, found["exit_code"]) == (3, 3)
    assert found["drift"]["missing"] == 2
    assert found["named"]["missing"] == ["1", "3"]
    mended = run("verify", "--repair", "--json", cwd=synced)
    found = json.loads(mended.out)
    assert (mended.code, found["clean"], found["embedded"]) == (0, True, 2)
    assert documents(synced) == {1: "one", 2: "two", 3: "three"}
    assert run("verify", cwd=synced).code == 0


def test_a_comparison_writes_nothing_but_its_result(synced: Path) -> None:
    damage(synced, 1)
    status = json.loads(run("status", "--json", cwd=synced).out)
    assert (status["drift"], status["verified_at"]) == (None, None)
    (synced / "qdrant" / ".syncer.lock").touch()
    before = contents(synced)
    assert run("verify", cwd=synced).code == 3
    after = contents(synced)
    assert {name for name in after if after[name] != before.get(name)} <= {"memory.db"}
    status = json.loads(run("status", "--json", cwd=synced).out)
    assert (status["drift"], status["verified_at"] is not None) == (1, True)


def test_what_is_found_is_a_table_for_people(synced: Path) -> None:
    damage(synced, 1)
    said = run("verify", "--set", "log.format=console", cwd=synced)
    assert "3 rows and 2 points compared: 1 differ" in said.out
    assert "missing             1  rows that the collection does not have: 1" in said.out


def test_a_folder_that_is_held_ends_with_8_and_names_the_holder(synced: Path) -> None:
    with holding(synced):
        said = run("verify", "--set", "target.lock_wait=0", cwd=synced)
    assert said.code == 8
    assert f"process {os.getpid()} on" in said.err


def test_without_a_collection_it_is_refused(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    (tmp_path / "syncer.toml").write_text(
        '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\ndimension = 8\n'
    )
    said = run("verify", "--repair", cwd=tmp_path)
    assert said.code == 4
    assert "syncer once" in said.err


def test_a_sample_is_embedded_again_by_the_collections_own_recipe(synced: Path) -> None:
    said = run("verify", "--sample", "2", "--seed", "7", "--json", cwd=synced)
    assert said.code == 0, said.err
    assert json.loads(said.out)["sampled"] == 2


@pytest.mark.rule("CT-19")
def test_a_repair_that_withholds_deletes_ends_with_9(tmp_path: Path) -> None:
    folder = in_sync(tmp_path / "memory")
    head = "SELECT max(seq) FROM syncer_changes_memory_events"
    memory.execute(folder / "memory.db", "DELETE FROM memory_events")
    memory.execute(folder / "memory.db", f"UPDATE syncer_generations SET change_seq = ({head})")
    limits = ("--set", "sync.max_deletes=0", "--set", "sync.max_delete_share=0.1")
    said = run("verify", "--repair", "--json", *limits, cwd=folder)
    assert said.code == 9
    assert json.loads(said.out)["withheld"] == 3
    assert len(documents(folder)) == 3
    assert run("verify", cwd=folder).code == 9


def test_no_text_of_a_row_is_said(synced: Path) -> None:
    path = synced / "memory.db"
    memory.execute(path, "UPDATE memory_events SET content = ? WHERE id = 1", (CANARY,))
    memory.execute(path, "UPDATE memory_events SET agent = ? WHERE id = 2", (CANARY,))
    head = "SELECT max(seq) FROM syncer_changes_memory_events"
    memory.execute(path, f"UPDATE syncer_generations SET change_seq = ({head})")
    for options in (("--set", "log.format=console"), ("--repair", "--json")):
        said = run("verify", *options, cwd=synced)
        assert said.code in (0, 3)
        assert CANARY not in said.out + said.err
    assert documents(synced)[1] == CANARY
