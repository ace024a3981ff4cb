"""The database that holds syncer's state: the source's own, or a file beside it."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from syncer import migrate
from syncer.errors import SourceError, StateError
from syncer.settings import Settings
from syncer.sqlite import primary_code, translate

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_RIGHTS = "syncer must be able to write to its folder; or choose another file with source.state."


def state_path(settings: Settings) -> Path:
    """Return the database that holds the state."""
    source = settings.source
    return source.database if source.changes == "log" or source.state is None else source.state


@contextmanager
def ready(settings: Settings, *, to_write: bool, renew: bool = False) -> Iterator[Path]:
    """Return a database with syncer's tables for the time of the block.

    Where changes are logged that is the source's, and it is left as it is. Else it is made or
    completed if `to_write`; if it is not there and may not be made, an empty one stands in for it.
    Raises StateError if the file is damaged; with `renew` it is put aside and a new one made.
    """
    path = state_path(settings)
    if settings.source.changes == "log":
        yield path
        return
    if path.exists() and (damage := _damage(path)) is not None:
        if not renew:
            raise _refusal(path, damage)
        _put_aside(path)
    if to_write:
        _complete(path, settings)
        yield path
    elif path.exists():
        yield path
    else:
        with TemporaryDirectory(prefix="syncer-") as folder:
            stand_in = Path(folder) / path.name
            _make(stand_in, settings)
            yield stand_in


def _damage(path: Path) -> str | None:
    """Return what is wrong with the file, None if SQLite finds it whole.

    An empty file is damage, too: syncer never leaves one, since a new state file comes into its
    place as a whole.
    """
    if path.stat().st_size == 0:
        return "it is empty"
    try:
        with closing(_open(path)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        if primary_code(error) in _DAMAGED:
            return str(error)
        raise _translated(error, path) from error
    return None if found == "ok" else str(found).splitlines()[-1]


def _refusal(path: Path, damage: str) -> StateError:
    return StateError(
        f"the state file {path} is damaged: {damage}",
        hint="Nothing was changed. If you have a copy of the file, put it back. Else run `syncer "
        "once --on-regression reconcile`: it keeps the file under another name, makes a new one "
        "and compares both stores row by row; what the collection already holds is not embedded "
        "again.",
    )


def _put_aside(path: Path) -> Path:
    """Rename the file, and what SQLite left beside it, and return the new name."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = path.with_name(f"{path.name}.damaged-{now}")
    for suffix in ("-journal", "-wal", "-shm", ""):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + suffix))
    return aside


def _complete(path: Path, settings: Settings) -> None:
    """Bring the file up to date; a new one comes into its place whole, or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
                made = Path(folder) / path.name
                _make(made, settings)
                _place(made, path)
        with closing(_open(path)) as connection:
            migrate.apply(connection, "state")
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    except OSError as error:
        raise SourceError(f"the state file {path} cannot be made: {error}", hint=_RIGHTS) from error


def _make(path: Path, settings: Settings) -> None:
    """Make a state file for the source of `settings`.

    The source's id follows from where the database lies: so a collection knows its source again
    when the state file was lost.
    """
    where = f"{settings.source.database.resolve()}\0{settings.source.table}"
    source_id = hashlib.sha256(where.encode(errors="surrogateescape")).hexdigest()[:32]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate.apply(connection, "state")
        connection.execute("UPDATE syncer_identity SET source_id = ?", (source_id,))


def _place(made: Path, path: Path) -> None:
    """Give a whole file its name, unless another process was faster; it survives a power cut."""
    with made.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(made, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        made.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None)


def _translated(error: sqlite3.Error, path: Path) -> SourceError:
    return translate(error, f"the state file {path}", "cannot be read or made", _RIGHTS)
