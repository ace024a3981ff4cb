"""Seeing that tables and triggers are whole, and putting back what of a change log is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

import syncer
from syncer.cli.specs import table_spec
from syncer.errors import SchemaError
from syncer.settings import Settings, digest
from syncer.source import open_readonly
from syncer.state import StateStore


@dataclass(frozen=True, slots=True)
class Schema:
    """A mark of the schema as it was found whole, and what had to be put back for that."""

    mark: str
    mended: tuple[str, ...] = ()


def check(settings: Settings, store: StateStore, *, may_mend: bool) -> Schema:
    """Raise SchemaError unless tables and triggers are as they should be, or may be put back.

    While a generation bears the mark, nothing has changed since a run looked at everything, and
    the look is spared.
    """
    known = store.serving(settings.target.collection)
    if known is not None and known.schema_seen == _mark(settings, store):
        return Schema(known.schema_seen)
    with closing(open_readonly(store.path)) as connection:
        faults = _faults(settings, connection)
    if not faults:
        return Schema(_mark(settings, store))
    if known is None or not may_mend or not settings.source.repair_triggers:
        _refuse(settings, faults)
    mended = mend(settings, store)
    return Schema(_mark(settings, store), tuple(mended))


def mend(settings: Settings, store: StateStore) -> list[str]:
    """Put the change log back and let everything be compared: nobody watched for a while.

    Returns the names of what was put back.
    """
    from syncer import changelog, restore
    from syncer.cli.attach import open_readwrite, writing

    spec = table_spec(settings)
    with closing(open_readwrite(store.path)) as connection, writing(store.path):
        if is_canonical(settings, connection):
            names = restore.restore(connection)
            names += list(changelog.find_eviction_faults(connection, spec))
            changelog.attach_evictions(connection, spec)
            names += list(changelog.find_joined_faults(connection, spec))
            changelog.attach_joined(connection, spec)
        else:
            names = list(changelog.find_faults(connection, spec))
            changelog.attach(connection, spec)
    store.compare(spec.table)
    return names


def is_canonical(settings: Settings, connection: sqlite3.Connection) -> bool:
    """Say whether the source is the table that ``syncer init`` made in this database."""
    from syncer import migrate
    from syncer.settings.base import CANONICAL_TABLE

    return settings.source.table == CANONICAL_TABLE and migrate.holds(connection, "canonical")


def _mark(settings: Settings, store: StateStore) -> str:
    return f"{syncer.__version__}:{store.schema_version()}:{digest(settings)}"


def _faults(settings: Settings, connection: sqlite3.Connection) -> Mapping[str, str]:
    """Return what of the change log is missing or altered; raise for what cannot be put back."""
    from syncer import changelog, migrate, schema

    if settings.source.changes != "log":
        migrate.check(connection, ("state",))
        return {}
    spec = table_spec(settings)
    if is_canonical(settings, connection):
        lost = migrate.lost(connection, schema.SETS)
        added = changelog.find_eviction_faults(connection, spec)
        joined = changelog.find_joined_faults(connection, spec)
        return {**lost, **_worded({**added, **joined})}
    if pending := migrate.pending(connection, "state"):
        _refuse(settings, dict.fromkeys(pending, "is not applied"))
    migrate.check(connection, ("state",))
    return _worded(changelog.find_faults(connection, spec))


def _worded(faults: Mapping[str, str]) -> dict[str, str]:
    return {name: f"is {fault}" for name, fault in faults.items()}


def _refuse(settings: Settings, faults: Mapping[str, str]) -> None:
    found = ", ".join(f"{name} {fault}" for name, fault in faults.items())
    raise SchemaError(
        f"{settings.source.database}: the change log of {settings.source.table} is not whole: "
        f"{found}",
        hint="Run `syncer init` for the table that it made, `syncer attach` for any other. They "
        "put everything back and keep what was logged.",
    )
