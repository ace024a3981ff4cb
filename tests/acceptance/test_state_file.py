"""A state file of its own that a power cut left damaged: refused, kept, and made good."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import memory
import pytest
from commands import run

from syncer.cli.state_file import ready
from syncer.settings import load

SETTINGS = """
[source]
database = "app.db"
table = "notes"
content = "body"
changes = "append_only"
[embed]
provider = "hash"
dimension = 8
"""
ROWS = 30


def zeroed(data: bytes) -> bytes:
    return bytes(len(data))


def emptied(data: bytes) -> bytes:
    return b""


def without_its_header(data: bytes) -> bytes:
    return b"\xff" * 4096 + data[4096:]


def without_its_end(data: bytes) -> bytes:
    return data[: len(data) // 2]


def with_a_page_of_noise(data: bytes) -> bytes:
    return data[:4096] + b"\xa5" * 4096 + data[8192:]


DAMAGES = (zeroed, emptied, without_its_header, without_its_end, with_a_page_of_noise)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An application's database in sync, with the state in a file of its own."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection, connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)")
        rows = [(f"note {number}",) for number in range(ROWS)]
        connection.executemany("INSERT INTO notes (body) VALUES (?)", rows)
    (tmp_path / "syncer.toml").write_text(SETTINGS)
    assert run("once", cwd=tmp_path).code == 0
    return tmp_path


def documents(folder: Path) -> list[str]:
    points = memory.points_in(load(folder / "syncer.toml", environ={}))
    return sorted(str(payload["document"]) for payload, _ in points.values())  # type: ignore[index]


@pytest.mark.rule("CT-20")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_file_is_refused_kept_and_made_good_without_embedding(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    state = folder / "app.db.syncer.db"
    damaged = damage(state.read_bytes())
    state.write_bytes(damaged)
    for command in (["once"], ["status"], ["once", "--dry-run"], ["quarantine", "list"]):
        refused = run(*command, cwd=folder)
        assert refused.code == 4, refused.err
        assert str(state) in refused.err
        assert "--on-regression reconcile" in refused.err
        assert "Traceback" not in refused.err
        assert state.read_bytes() == damaged
    memory.execute(folder / "app.db", "INSERT INTO notes (body) VALUES ('another')", ())
    done = run("once", "--on-regression", "reconcile", "--json", cwd=folder)
    assert done.code == 0, done.err
    assert json.loads(done.out)["embedded"] == 1
    (aside,) = list(folder.glob("app.db.syncer.db.damaged-*"))
    assert aside.read_bytes() == damaged
    assert documents(folder) == sorted([f"note {number}" for number in range(ROWS)] + ["another"])
    again = run("once", cwd=folder)
    assert again.log[-1]["event"] == "nothing to do"


def test_a_lost_state_file_asks_before_it_takes_the_collection_over(folder: Path) -> None:
    (folder / "app.db.syncer.db").unlink()
    assert run("once", cwd=folder).code == 4
    done = run("once", "--on-regression", "reconcile", "--json", cwd=folder)
    assert (done.code, json.loads(done.out)["embedded"]) == (0, 0)


def test_a_collection_of_another_database_is_not_taken_over(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with closing(sqlite3.connect(other / "app.db")) as connection, connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)")
        connection.execute("INSERT INTO notes (body) VALUES ('of another')")
    shared = f'[target]\npath = "{folder / "qdrant"}"\n'
    (other / "syncer.toml").write_text(SETTINGS + shared)
    assert run("once", cwd=other).code == 4
    before = documents(folder)
    done = run("once", "--on-regression", "reconcile", "--json", cwd=other)
    assert json.loads(done.out)["embedded"] == 1  # into a generation of its own
    assert documents(other) == ["of another"]
    assert len(before) == ROWS


def test_a_state_file_comes_into_its_place_whole(folder: Path) -> None:
    state = folder / "app.db.syncer.db"
    state.unlink()
    settings = load(folder / "syncer.toml", environ={})
    with ready(settings, to_write=True) as path:
        assert path == state
    assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []
