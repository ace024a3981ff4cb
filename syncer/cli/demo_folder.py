"""The demo's folder: made anew each time, and never at the cost of somebody else's files."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from syncer import lock, migrate
from syncer.cli.demo_texts import Memory
from syncer.errors import SettingsError
from syncer.settings import Settings, load

DATABASE = "memory.db"
MARKER = "# Made by `syncer demo`, which empties this folder when it is run on it again."
_SETTINGS_FILE = "syncer.toml"
SETTINGS = f"""\
{MARKER}

[source]
database = "{DATABASE}"

[target]
path = "qdrant"

[sync]
window_rows = 50  # small, so that the progress can be seen
"""
_LOCK = "demo.lock"
_OWN = frozenset({DATABASE, _SETTINGS_FILE, _LOCK, "qdrant"})
_PASSED_ON = ("HOME", "SYNCER_EMBED__MODEL_PATH", "SYNCER_EMBED__CACHE_DIR")
"""Variables that say where the model is; others could lead to data that is not the demo's."""


@contextmanager
def anew(folder: Path) -> Iterator[Settings]:
    """Make the folder, or empty one that an earlier demo made, and hold it during the block.

    Yields the settings for it, read from the file that is left there. Raises SettingsError, with
    nothing touched, if the folder holds anything that the demo has not made; LockedError if
    another demo runs in it.
    """
    with _translated(folder):
        _check(folder)
        folder.mkdir(parents=True, exist_ok=True)
    with lock.held(folder / _LOCK, f"the demo's folder {folder}"):
        with _translated(folder):
            _empty(folder)
            (folder / _SETTINGS_FILE).write_text(SETTINGS, encoding="utf-8")
        environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        yield load(folder / _SETTINGS_FILE, environ=environ)


def fill(database: Path, memories: Sequence[Memory]) -> None:
    """Make the canonical schema and insert the memories, ids from 1 on."""
    migrate.init_database(database)
    rows = [
        (one.agent, one.scope, one.source, one.content, json.dumps({"kind": one.kind}))
        for one in memories
    ]
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(
            "INSERT INTO memory_events (agent, scope, source, content, metadata)"
            " VALUES (?, ?, ?, ?, ?)",
            rows,
        )


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SettingsError(
            f"the demo cannot use the folder {folder}: {error.strerror}",
            hint="Name a folder that you may write to: syncer demo FOLDER",
        ) from error


def _check(folder: Path) -> None:
    if not folder.exists():
        return
    entries = sorted(folder.iterdir())
    foreign = [entry.name for entry in entries if not _is_own(entry.name)]
    if entries and not foreign and not _is_marked(folder):
        foreign = [entry.name for entry in entries if entry.name != _LOCK]
    if foreign:
        raise SettingsError(
            f"{folder} holds what the demo has not made: {', '.join(foreign[:5])}",
            hint="Nothing was touched. Name a folder that is new or empty: syncer demo FOLDER",
        )


def _is_own(name: str) -> bool:
    return name in _OWN or name.startswith(f"{DATABASE}-")  # SQLite's and syncer's side files


def _is_marked(folder: Path) -> bool:
    try:
        with (folder / _SETTINGS_FILE).open(encoding="utf-8", errors="replace") as file:
            return file.readline().rstrip("\n") == MARKER
    except FileNotFoundError:
        return False


def _empty(folder: Path) -> None:
    """Remove what an earlier demo made; the marker goes last, so this may be cut short."""
    for entry in sorted(folder.iterdir(), key=lambda one: one.name == _SETTINGS_FILE):
        if entry.name == _LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
