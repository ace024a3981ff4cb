"""The database that holds syncer's state: the source's own, or a file beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from syncer import migrate
from syncer.errors import SourceError
from syncer.settings import Settings


def state_path(settings: Settings) -> Path:
    """Return the database that holds the state."""
    source = settings.source
    return source.database if source.changes == "log" or source.state is None else source.state


@contextmanager
def ready(settings: Settings, *, to_write: bool) -> Iterator[Path]:
    """Return a database with syncer's tables for the time of the block.

    Where changes are logged that is the source's, and it is left as it is. Else it is made or
    completed if `to_write`; if it is not there and may not be made, an empty one stands in for it.
    """
    path = state_path(settings)
    if settings.source.changes == "log" or (path.exists() and not to_write):
        yield path
    elif to_write:
        _complete(path)
        yield path
    else:
        with TemporaryDirectory(prefix="syncer-") as folder:
            stand_in = Path(folder) / path.name
            _complete(stand_in)
            yield stand_in


def _complete(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            migrate.apply(connection, "state")
    except (OSError, sqlite3.OperationalError) as error:
        raise SourceError(
            f"the state file {path} cannot be made: {error}",
            hint="syncer must be able to write to its folder; or choose another file with "
            "source.state.",
        ) from error
