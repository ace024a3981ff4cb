"""Makes canonical tables of any size, and pipelines that end in a target that keeps nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from syncer import migrate
from syncer.cli import compose, opening
from syncer.cli.opening import Sides
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.settings import Settings, digest, load
from syncer.state import utc_now
from syncer.worker import Stop, Terms, catch_up

SETTINGS = """\
[source]
database = "memory.db"

[target]
check_interval = 86400  # so that only those runs ask the target that are told to

[embed]
provider = "hash"
dimension = {dimension}
"""
MAX_SIZE = 2**18  # bytes of one row's content
_TEXT = 2 * MAX_SIZE  # bytes from which contents are cut
_INSERT = "INSERT INTO memory_events (agent, scope, source, content) VALUES (?, ?, ?, ?)"


def make_folder(folder: Path, rows: int, size: int, dimension: int = 384) -> Path:
    """Make a folder with a table and return its settings file; contents are `size` bytes each.

    A process of its own fills the table, so that this one's memory knows nothing of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "syncer.toml"
    path.write_text(SETTINGS.format(dimension=dimension), encoding="utf-8")
    filling = get_context("spawn").Process(target=fill, args=(folder / "memory.db", rows, size))
    filling.start()
    filling.join()
    if filling.exitcode != 0:
        raise SystemExit(f"the table in {folder} could not be filled")
    return path


def fill(database: Path, rows: int, size: int) -> None:
    """Make the canonical table with so many rows, no two alike, of `size` bytes of content."""
    migrate.init_database(database)
    text = " ".join(str(number) for number in range(_TEXT // 5))
    starts = (7 * number % MAX_SIZE for number in range(rows))
    contents = (f"{number} {text[at : at + size]}"[:size] for number, at in enumerate(starts))
    with closing(sqlite3.connect(database)) as connection, connection:
        values = (("agent", "scope", "benchmark", content) for content in contents)
        connection.executemany(_INSERT, values)


def settings_in(path: Path, **options: object) -> Settings:
    """Return the settings in a file, whatever the environment says; options by dotted key."""
    return load(path, environ={}, options=options)


@contextmanager
def to_nowhere(settings: Settings) -> Iterator[tuple[Sides, Pipeline]]:
    """Open the parts of ``syncer once``, the target apart: it takes every point and forgets it.

    The state ends up as after a real run, so that the next one has nothing to do.
    """
    with opening.opened(settings) as sides:
        name = f"{sides.alias}--benchmark"
        sides.store.add(name, sides.alias, settings.source.table)
        sides.store.serve(name, digest(settings), sides.mapping)
        pipeline = compose.preview_pipeline(sides, compose.null_target())  # has the hash provider
        with opening.locked(sides, name):
            yield sides, replace(pipeline, state=sides.store.bind(name))
        sides.store.see_schema(name, sides.schema)


def sync(sides: Sides, pipeline: Pipeline) -> SyncResult:
    """Catch up with the whole table, as ``syncer once`` does."""
    head = sides.source.head()
    return catch_up(pipeline, Terms(utc_now, Stop()), head=head, report=lambda _: None)
