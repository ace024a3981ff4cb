"""More commands and their options: ``recover`` and ``wait``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from syncer.cli.app import Config, Json, Set, app
from syncer.cli.app import _settings as load
from syncer.errors import SettingsError


@app.command()
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


@app.command()
def wait(
    config: Config = None,
    overrides: Set = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, help="Seconds to wait at most.")
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Wait until what is committed now can be searched."""
    from syncer.cli import wait as command

    found = command.wait(load(config, overrides), timeout)
    typer.echo(json.dumps(found.as_dict()) if as_json else found.in_words())
    raise typer.Exit(int(found.exit_code))


def _confirmed(number: int) -> bool:
    return typer.confirm(f"Delete {number} foreign points for good?", err=True)
