"""A JSON Lines file of foreign points: it grows, holds each once, and is whole at any moment."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TextIO

from syncer.errors import SettingsError
from syncer.foreign import Foreign

_HINT = "Name another file. This one was left as it is."


class Export:
    """What is added to the file while it is open; nothing of it counts before that ends well."""

    def __init__(self, path: Path, file: TextIO, known: sqlite3.Connection) -> None:
        self._path = path
        self._file = file
        self._known = known
        known.execute("CREATE TABLE known (key TEXT PRIMARY KEY) WITHOUT ROWID")

    def add(self, point: Foreign, collection: str) -> bool:
        """Add a point with all that is known of it; False if the file holds it already.

        Raises ValueError if its payload is no JSON.
        """
        return self._note(_record(point, collection))

    def holds(self, point: Foreign, collection: str) -> bool:
        """Say whether the file holds this very point, its payload as it is now."""
        try:
            key = _key(_record(point, collection))
        except ValueError:
            return False
        return (
            self._known.execute("SELECT 1 FROM known WHERE key = ?", (key,)).fetchone() is not None
        )

    def take_over(self, file: TextIO) -> None:
        """Add what the file holds already; raise SettingsError if that is something else."""
        for line in file:
            if not line.endswith("\n"):  # whatever has cut it off: it is added anew
                return
            try:
                record = json.loads(line)
                self._note(record)
            except (ValueError, KeyError, TypeError):
                raise SettingsError(
                    f"{self._path} holds something else than exported points", hint=_HINT
                ) from None

    def _note(self, record: dict[str, object]) -> bool:
        added = self._known.execute("INSERT OR IGNORE INTO known (key) VALUES (?)", (_key(record),))
        if not added.rowcount:
            return False
        self._file.write(json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n")
        return True


def _record(point: Foreign, collection: str) -> dict[str, object]:
    vectors = {"vectors": point.vectors} if point.vectors else {}
    said = {"collection": collection, "id": point.id, "hash": point.hash, "payload": point.payload}
    return {**said, **vectors}


def _key(record: dict[str, object]) -> str:
    return json.dumps([record["collection"], record["id"], record["hash"], "vectors" in record])


@contextmanager
def exporting(path: Path) -> Iterator[Export]:
    """Give the file to add points to; in the end it is on the disk, or as it was before.

    Readable by its owner alone, since it holds texts. Raises SettingsError if it cannot be written
    or holds something else.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with closing(sqlite3.connect("")) as known, _written(part) as file:  # "": a file of its own
            export = Export(path, file, known)
            if path.exists():
                with path.open(encoding="utf-8") as before:
                    export.take_over(before)
            yield export
        part.replace(path)
        _make_durable(path.absolute().parent)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}", hint=_HINT) from error


@contextmanager
def _written(part: Path) -> Iterator[TextIO]:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open already
        yield file
        file.flush()
        os.fsync(file.fileno())


def _make_durable(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
