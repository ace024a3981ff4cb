"""Rules about reading SQLite (SR) that no other test holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import memory
import pytest
from commands import run

from syncer.cli import specs
from syncer.errors import SourceError
from syncer.model import Position
from syncer.source import LogSource, filesystem

SETTINGS = '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\n'
NOW = "2029-01-01T00:00:00.000Z"


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory of 30 rows that is in sync."""
    folder = tmp_path_factory.mktemp("synced")
    memory.make_memory(folder, [f"text {number}" for number in range(1, 31)])
    (folder / "syncer.toml").write_text(SETTINGS)
    assert run("once", cwd=folder).code == 0
    return folder


@pytest.fixture
def folder(synced: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "memory"
    shutil.copytree(synced, copy)
    return copy


def points(folder: Path) -> memory.Points:
    return memory.points_in(memory.settings_for(folder))


@contextmanager
def somebody_else() -> Iterator[None]:
    """Be a user without rights while the block runs."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.rule("SR-02")
def test_a_write_ahead_log_in_a_folder_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are for one user alone
        folder = Path(name)
        path = memory.make_memory(folder, ["one"])
        spec = specs.table_spec(memory.settings_for(folder))
        folder.chmod(0o555)
        with somebody_else(), pytest.raises(SourceError, match="cannot be opened") as found:
            LogSource(path, spec)
        folder.chmod(0o755)
    assert "write-ahead log" in str(found.value)
    assert "VACUUM INTO" in str(found.value)


@pytest.mark.rule("SR-02")
def test_a_folder_that_cannot_be_entered_is_named() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = memory.make_memory(folder, ["one"])
        spec = specs.table_spec(memory.settings_for(folder))
        folder.chmod(0o000)
        with somebody_else(), pytest.raises(SourceError, match="cannot be reached"):
            LogSource(path, spec)
        folder.chmod(0o755)


@pytest.mark.rule("SR-05")
def test_a_database_that_is_replaced_while_it_is_open_is_noticed(folder: Path) -> None:
    path = folder / "memory.db"
    with closing(LogSource(path, specs.table_spec(memory.settings_for(folder)))) as source:
        other = folder / "other.db"
        with closing(memory.write(path)) as here, closing(memory.write(other)) as there:
            here.backup(there)
        other.replace(path)
        with pytest.raises(SourceError, match="was replaced by another file"):
            source.read(Position("g"), head=0, now=NOW)
        path.unlink()
        with pytest.raises(SourceError, match="is not there any more") as found:
            source.read(Position("g"), head=0, now=NOW)
        assert "Nothing was taken for deleted" in str(found.value)


@pytest.mark.rule("SR-05")
def test_another_database_in_its_place_is_refused_before_its_position_is_used(
    folder: Path, tmp_path: Path
) -> None:
    before = points(folder)
    (tmp_path / "other").mkdir()
    other = memory.make_memory(tmp_path / "other", ["another"])
    for suffix in ("-wal", "-shm"):
        (folder / f"memory.db{suffix}").unlink(missing_ok=True)
    other.replace(folder / "memory.db")
    done = run("once", cwd=folder)
    assert done.code == 4
    assert points(folder) == before


WATCHING = """
import os, sys
database = os.path.realpath("memory.db")
def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path in {database, database + "-wal", database + "-shm"}:
            print("OPENED", path)
sys.addaudithook(watch)
from syncer.cli import main
sys.exit(main(["once"]))
"""


@pytest.mark.rule("SR-07")
def test_the_database_is_never_opened_as_a_plain_file(folder: Path) -> None:
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    done = subprocess.run(
        [sys.executable, "-c", WATCHING], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "OPENED" not in done.stdout
    assert '"embedded": 1' in done.stderr


MOUNTS = """\
22 27 0:21 / / rw,relatime - ext4 /dev/sda1 rw
31 22 0:35 / {point} rw,relatime shared:1 - {kind} server:/export rw
"""


@pytest.mark.rule("SR-08")
@pytest.mark.parametrize("kind", ["nfs4", "cifs", "smb3", "9p", "fuse.sshfs"])
def test_a_database_on_a_network_file_system_is_warned_of(tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.format(point=tmp_path, kind=kind))
    (warning,) = filesystem.warning(tmp_path / "memory.db", mounts)
    assert str(tmp_path) in warning
    assert kind in warning
    assert filesystem.warning(Path("/elsewhere/memory.db"), mounts) == []
    assert filesystem.warning(tmp_path / "memory.db") == []


@pytest.mark.rule("SR-08")
def test_a_damaged_database_takes_nothing_out(folder: Path) -> None:
    path = folder / "memory.db"
    memory.execute(path, "DELETE FROM memory_events WHERE id = 1")
    with closing(memory.write(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'memory_events'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    before = points(folder)
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    done = run("once", cwd=folder)
    assert done.code == 5, done.err
    assert points(folder) == before


@pytest.mark.rule("SR-09")
def test_a_text_that_is_not_utf8_is_read_with_replacements_or_quarantined(folder: Path) -> None:
    path = folder / "memory.db"
    memory.execute(
        path, "UPDATE memory_events SET content = CAST(x'636166e9' AS TEXT) WHERE id = 1"
    )
    memory.execute(path, "UPDATE memory_events SET content = 'fine' WHERE id = 2")
    assert run("once", cwd=folder).code == 0
    assert points(folder)[1][0]["document"] == "caf\ufffd"  # type: ignore[index]

    strict = run("once", "--set", "source.invalid_utf8=quarantine", cwd=folder)
    assert strict.code == 3
    (event,) = [event for event in strict.log if event["event"] == "quarantined"]
    assert (event["row"], event["reason"]) == ("1", "invalid_text")
    assert 1 not in points(folder)
    assert points(folder)[2][0]["document"] == "fine"  # type: ignore[index]


@pytest.mark.rule("SR-17")
def test_a_mapped_column_that_goes_away_stops_the_sync_and_deletes_nothing(folder: Path) -> None:
    before = points(folder)
    memory.execute(folder / "memory.db", "ALTER TABLE memory_events RENAME COLUMN scope TO area")
    done = run("once", cwd=folder)
    assert done.code == 4
    assert "scope" in done.err
    assert points(folder) == before


@pytest.mark.rule("SR-17")
def test_a_column_that_is_added_changes_nothing(folder: Path) -> None:
    before = points(folder)
    memory.execute(folder / "memory.db", "ALTER TABLE memory_events ADD COLUMN mood TEXT")
    assert run("once", cwd=folder).code == 0
    assert points(folder) == before


@pytest.mark.rule("SR-18")
def test_a_row_that_is_too_large_is_quarantined_and_the_others_go_on(folder: Path) -> None:
    path = folder / "memory.db"
    memory.execute(path, "UPDATE memory_events SET content = ? WHERE id = 1", ("x" * 2**21,))
    memory.execute(path, "UPDATE memory_events SET content = 'fine' WHERE id = 2")
    done = run("once", cwd=folder)
    assert done.code == 3
    (event,) = [event for event in done.log if event["event"] == "quarantined"]
    assert (event["row"], event["reason"]) == ("1", "too_large")
    assert str(2**21) in str(event["detail"])
    assert 1 not in points(folder)
    assert points(folder)[2][0]["document"] == "fine"  # type: ignore[index]
