"""Rules about change tracking (CT) that no other test holds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import memory
import pytest
from commands import run

SETTINGS = """\
[source]
database = "memory.db"
table = "notes"
content = "body"

[embed]
provider = "hash"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of somebody else's, attached and in sync: ids may be given twice."""
    with closing(memory.write(tmp_path / "memory.db")) as connection:
        connection.executescript(
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT UNIQUE, body TEXT);"
            "INSERT INTO notes VALUES (1, 'a', 'one'), (2, 'b', 'two'), (3, 'c', 'three');"
        )
    (tmp_path / "syncer.toml").write_text(SETTINGS)
    assert run("attach", cwd=tmp_path).code == 0
    assert run("once", cwd=tmp_path).code == 0
    return tmp_path


def documents(folder: Path) -> dict[object, object]:
    points = memory.points_in(memory.settings_for(folder))
    return {key: payload["document"] for key, (payload, _) in points.items()}  # type: ignore[index]


def change(folder: Path, *statements: str) -> None:
    """Run the statements in one transaction, sync, and see that all went well."""
    with closing(memory.write(folder / "memory.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    done = run("once", cwd=folder)
    assert done.code == 0, done.err


@pytest.mark.rule("CT-10")
def test_a_row_that_replace_evicts_goes(folder: Path) -> None:
    change(folder, "INSERT OR REPLACE INTO notes VALUES (9, 'b', 'two, again')")
    assert documents(folder) == {1: "one", 3: "three", 9: "two, again"}


@pytest.mark.rule("CT-12")
def test_an_id_that_is_given_again_is_another_row(folder: Path) -> None:
    change(
        folder,
        "DELETE FROM notes WHERE id = 3",
        "INSERT INTO notes (name, body) VALUES ('d', 'another')",
    )
    assert documents(folder) == {1: "one", 2: "two", 3: "another"}


@pytest.mark.rule("CT-14")
def test_a_key_that_changes_takes_its_point_along(folder: Path) -> None:
    change(folder, "UPDATE notes SET id = 30 WHERE id = 3")
    assert documents(folder) == {1: "one", 2: "two", 30: "three"}


@pytest.mark.rule("CT-18")
def test_a_row_that_is_deleted_and_made_again_is_there(folder: Path) -> None:
    change(
        folder,
        "DELETE FROM notes WHERE id = 2",
        "INSERT INTO notes VALUES (2, 'b', 'two')",
        "DELETE FROM notes WHERE id = 1",
        "INSERT INTO notes VALUES (1, 'a', 'one, again')",
    )
    assert documents(folder) == {1: "one, again", 2: "two", 3: "three"}


@pytest.mark.rule("CT-02")
def test_a_position_that_is_wrong_is_refused_and_mended_by_comparing_both_stores(
    folder: Path,
) -> None:
    memory.execute(folder / "memory.db", "UPDATE notes SET body = 'unseen' WHERE id = 1")
    memory.execute(folder / "memory.db", "UPDATE syncer_generations SET change_seq = 1000")
    assert run("once", cwd=folder).code == 4
    assert run("once", "--on-regression", "reconcile", cwd=folder).code == 0
    assert documents(folder)[1] == "unseen"


@pytest.mark.rule("CT-17")
def test_a_touch_that_changes_no_mapped_column_is_no_change(folder: Path) -> None:
    with closing(memory.write(folder / "memory.db")) as connection, connection:
        connection.execute("UPDATE notes SET name = name || '!'")
    assert run("once", cwd=folder).log[-1]["event"] == "nothing to do"


def lose_triggers(folder: Path, table: str) -> None:
    """Do what a migration tool does, and change rows that nobody watches."""
    with closing(memory.write(folder / "memory.db")) as connection, connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE ?",
            (f"syncer_changes_{table}%",),
        ).fetchall()
        assert names
        for (name,) in names:
            connection.execute(f'DROP TRIGGER "{name}"')


UNSEEN = (
    "UPDATE {table} SET {text} = 'edited' WHERE id = 1",
    "DELETE FROM {table} WHERE id = 2",
)


@pytest.mark.rule("CT-11")
def test_triggers_that_vanished_are_put_back_and_the_unwatched_time_is_made_good(
    folder: Path,
) -> None:
    lose_triggers(folder, "notes")
    for statement in UNSEEN:
        memory.execute(folder / "memory.db", statement.format(table="notes", text="body"))
    done = run("once", cwd=folder)
    assert done.code == 0, done.err
    assert any("the change log was not whole" in str(event.get("message")) for event in done.log)
    assert documents(folder) == {1: "edited", 3: "three"}
    change(folder, "UPDATE notes SET body = 'seen' WHERE id = 3")
    assert documents(folder)[3] == "seen"


@pytest.mark.rule("CT-11")
def test_triggers_of_the_canonical_table_are_put_back_too(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one", "two", "three"])
    settings = '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\n'
    (tmp_path / "syncer.toml").write_text(settings)
    assert run("once", cwd=tmp_path).code == 0
    lose_triggers(tmp_path, "memory_events")
    for statement in UNSEEN:
        memory.execute(
            tmp_path / "memory.db", statement.format(table="memory_events", text="content")
        )
    assert run("once", cwd=tmp_path).code == 0
    assert documents(tmp_path) == {1: "edited", 3: "three"}


@pytest.mark.rule("CT-11")
def test_where_triggers_are_not_to_be_touched_their_loss_is_refused(folder: Path) -> None:
    lose_triggers(folder, "notes")
    done = run("once", "--set", "source.repair_triggers=false", cwd=folder)
    assert done.code == 4
    assert "syncer_changes_notes_insert is missing" in done.err
    assert run("attach", cwd=folder).code == 0
    memory.execute(folder / "memory.db", "UPDATE notes SET body = 'edited' WHERE id = 1")
    assert run("once", "--set", "source.repair_triggers=false", cwd=folder).code == 0
    assert documents(folder)[1] == "edited"
