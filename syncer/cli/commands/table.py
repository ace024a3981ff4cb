"""Commands about the table: ``init``, ``attach``, ``detach``, ``recover``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from syncer.cli.options import Config, Json, Set, load
from syncer.errors import SettingsError

ShowSql = Annotated[
    bool, typer.Option("--dry-run", help="Print the SQL that would be run; change nothing.")
]


def init(
    database: Annotated[
        Path | None, typer.Argument(help="The SQLite file; default: source.database.")
    ] = None,
    config: Config = None,
    overrides: Set = None,
) -> None:
    """Make or complete the canonical schema."""
    from syncer.cli import init as command

    command.init(database, config, lambda: load(config, overrides))


def attach(config: Config = None, overrides: Set = None, dry_run: ShowSql = False) -> None:
    """Put a change log on a table of your own."""
    from syncer.cli import attach as command

    settings = load(config, overrides)
    typer.echo(command.attach_sql(settings) if dry_run else command.attach(settings))


def detach(config: Config = None, overrides: Set = None, dry_run: ShowSql = False) -> None:
    """Take the change log out of the database again."""
    from syncer.cli import attach as command

    settings = load(config, overrides)
    typer.echo(command.detach_sql(settings) if dry_run else command.detach(settings))


def recover(
    config: Config = None,
    overrides: Set = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write them into this file instead.", metavar="FILE"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List them; write nothing.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show their texts, too.")] = False,
    delete_foreign: Annotated[
        bool,
        typer.Option("--delete-foreign", help="Delete what is left of them then; asks before."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Bring points home that were written past SQLite."""
    from syncer.cli import recover as command

    settings = load(config, overrides)
    if delete_foreign and not (yes or dry_run or sys.stdin.isatty()):
        raise SettingsError(
            "--delete-foreign deletes what is nowhere else, and nobody is there to be asked",
            hint="Nothing was done. Give --yes as well if that is meant.",
        )
    wish = command.Wish(
        to=to,
        delete=delete_foreign,
        show=show,
        as_json=as_json,
        confirmed=(lambda _: True) if yes else _confirmed,
    )
    if dry_run:
        command.dry_run(settings, wish)
        return
    raise typer.Exit(int(command.recover(settings, wish)))


def _confirmed(number: int) -> bool:
    return typer.confirm(f"Delete {number} foreign points for good?", err=True)
