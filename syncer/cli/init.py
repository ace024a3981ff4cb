"""``syncer init``: make the canonical schema, or complete it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import typer

from syncer import changelog, migrate, restore
from syncer.cli import watch
from syncer.cli.attach import open_readwrite, writing
from syncer.cli.specs import table_spec
from syncer.errors import SettingsError
from syncer.settings import Settings, find, write_example
from syncer.settings.base import CANONICAL_TABLE
from syncer.state import StateStore
from syncer.table import TableSpec

SETTINGS_FILE = Path("syncer.toml")


def init(database: Path | None, config: Path | None, load: Callable[[], Settings]) -> None:
    """Apply what the database lacks and say what was done and what comes next."""
    settings = None
    if database is None or config is not None:
        settings = load()
        configured = settings.source.database
        if database is not None and database.resolve() != configured.resolve():
            raise SettingsError(
                f"{database} was named, but source.database in {config} is {configured}",
                hint="Leave one of them out.",
            )
        database = configured
    applied = migrate.init_database(database)
    for done in applied:
        typer.echo(f"applied {done.set}/{done.version:04}_{done.name}")
    for name in _complete_change_log(database, settings):
        typer.echo(f"put in {name}")
    ready = f"ready: write to its table {CANONICAL_TABLE}" if applied else "up to date"
    typer.echo(f"{database} is {ready}")
    found = config or find(os.environ, Path.cwd())
    if found is None:
        _write_settings(database)
    elif settings is None:
        typer.echo(f"left {found} as it is; see that its source.database is {database}")


def _complete_change_log(database: Path, settings: Settings | None) -> list[str]:
    """Put back what of the change log is missing, also for unique indexes that somebody added.

    Tables are joined by the settings, so without any those are left alone.
    Returns the names; where there are any, both stores are to be compared, since nobody watched.
    """
    with closing(open_readwrite(database)) as connection, writing(database):
        spec = TableSpec(CANONICAL_TABLE)
        made = restore.restore(connection)
        missing = changelog.find_eviction_faults(connection, spec)
        changelog.attach_evictions(connection, spec)
        if settings is not None and watch.is_canonical(settings, connection):
            missing |= changelog.find_joined_faults(connection, table_spec(settings))
            changelog.attach_joined(connection, table_spec(settings))
    made += [name for name, fault in missing.items() if fault != "left over"]
    if made:
        with closing(StateStore(database)) as store:
            store.compare(CANONICAL_TABLE)
    return made


def _write_settings(database: Path) -> None:
    """Leave settings for `database` in this folder."""
    try:
        with SETTINGS_FILE.open("x", encoding="utf-8") as file:
            file.write(write_example(database))
    except OSError as error:
        raise SettingsError(
            f"{SETTINGS_FILE} cannot be written here: {error.strerror}",
            hint=f"The database is ready. Run syncer with --set source.database={database}.",
        ) from error
    typer.echo(f"wrote {SETTINGS_FILE}; next: syncer once")
