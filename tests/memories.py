"""Memories in folders of their own, with a settings file, as the commands' tests need them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import memory

from syncer.settings import Settings, load
from syncer.target import GenerationTarget

SETTINGS = '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\ndimension = 8\n'


def fresh(folder: Path, contents: Sequence[str]) -> Path:
    """Make a memory with its settings in `folder`."""
    folder.mkdir(exist_ok=True)
    memory.make_memory(folder, contents)
    (folder / "syncer.toml").write_text(SETTINGS)
    return folder


def in_sync(folder: Path) -> Path:
    """Make a memory of three rows that is in sync."""
    fresh(folder, ["one", "two", "three"])
    memory.sync_memory(settings_of(folder))
    return folder


def settings_of(folder: Path) -> Settings:
    """Return what the settings file in `folder` says."""
    return load(folder / "syncer.toml", environ={})


def documents(place: Path | Settings) -> dict[object, object]:
    """Return the text of each point, by id; `place` is a memory's folder or its settings."""
    settings = settings_of(place) if isinstance(place, Path) else place
    points = memory.points_in(settings)
    return {key: payload["document"] for key, (payload, _) in points.items()}  # type: ignore[index]


def change(folder: Path) -> None:
    """Edit one row, give one other metadata, delete one, add one."""
    path = folder / "memory.db"
    memory.execute(path, "UPDATE memory_events SET content = 'uno' WHERE id = 1")
    memory.execute(path, "UPDATE memory_events SET scope = 'other' WHERE id = 2")
    memory.execute(path, "DELETE FROM memory_events WHERE id = 3")
    memory.execute(
        path,
        "INSERT INTO memory_events (agent, scope, source, content) VALUES ('b', 's', 'x', '4')",
    )


def contents(folder: Path) -> dict[str, str]:
    """Return a hash of every file below `folder`, but for what SQLite's readers leave behind."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".db-shm"
        if path.suffix != ".db-wal" or path.stat().st_size
    }


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Hold the local Qdrant folder, as a running syncer does."""
    with memory.connect(memory.specs.target_spec(settings_of(folder))):
        yield


def another_collection(folder: Path) -> None:
    with memory.connect(memory.specs.target_spec(settings_of(folder))) as connection:
        (found,) = connection.client.get_collections().collections
        GenerationTarget(connection, found.name).write_token("somebody else's")


def no_collection(folder: Path) -> None:
    (folder / "qdrant").rename(folder / "elsewhere")
