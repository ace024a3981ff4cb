"""Putting back triggers and views of syncer's migrations that are missing or were altered."""

from __future__ import annotations

import sqlite3

from syncer.schema import OBJECTS, SETS, load, packaged, replay
from syncer.sqlite import transaction

_RESTORED = frozenset({"trigger", "view"})


def restore(connection: sqlite3.Connection) -> list[str]:
    """Make the triggers and views that the migrations make and return the names of those made.

    One transaction; tables and indexes are not touched. The connection must not be in one.
    """
    with transaction(connection):
        found = {(kind, name): sql for kind, name, sql in connection.execute(OBJECTS)}
        everything = tuple(one for name in SETS for one in load(name, packaged()))
        lost = [
            one
            for one in replay(everything)
            if one.kind in _RESTORED and found.get((one.kind, one.name)) != one.sql
        ]
        for one in lost:
            connection.execute(f"DROP {one.kind.upper()} IF EXISTS {one.name}")
            connection.execute(str(one.sql))
    return [one.name for one in lost]
