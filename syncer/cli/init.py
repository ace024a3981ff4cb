"""``syncer init``: make the canonical schema, or complete it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from syncer import migrate
from syncer.errors import SettingsError
from syncer.settings import Settings, write_example

SETTINGS_FILE = Path("syncer.toml")


def init(database: Path | None, config: Path | None, load: Callable[[], Settings]) -> None:
    """Apply what the database lacks and say what was done and what comes next."""
    if database is None or config is not None:
        configured = load().source.database
        if database is not None and database.resolve() != configured.resolve():
            raise SettingsError(
                f"{database} was named, but source.database in {config} is {configured}",
                hint="Leave one of them out.",
            )
        database = configured
    applied = migrate.init_database(database)
    for done in applied:
        typer.echo(f"applied {done.set}/{done.version:04}_{done.name}")
    if not applied:
        typer.echo(f"{database} is up to date")
        return
    typer.echo(f"{database} is ready: write to its table memory_events")
    if config is None and not SETTINGS_FILE.exists():
        SETTINGS_FILE.write_text(write_example(database), encoding="utf-8")
        typer.echo(f"wrote {SETTINGS_FILE}; next: syncer once")
