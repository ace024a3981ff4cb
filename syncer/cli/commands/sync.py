"""Commands that keep the collection in step: ``once``, ``run``, ``wait``."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from syncer.cli.options import Config, Json, Set, load


class OnRegression(StrEnum):
    """What to do if a store went back or was replaced."""

    REFUSE = "refuse"
    RECONCILE = "reconcile"


def once(
    config: Config = None,
    overrides: Set = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
    start_over: Annotated[
        bool,
        typer.Option("--start-over", help="Build a new collection and let the alias point at it."),
    ] = False,
    on_regression: Annotated[
        OnRegression,
        typer.Option(help="What to do if a store went back or was replaced."),
    ] = OnRegression.REFUSE,
    as_json: Json = False,
) -> None:
    """Catch up, then exit."""
    from syncer.cli import once as command
    from syncer.cli import report, synced

    settings = load(config, overrides)
    if dry_run:
        result = command.dry_run(settings)
        typer.echo(synced.as_json(result) if as_json else "would do: " + synced.in_words(result))
        return
    chosen = report.of_run(settings, as_json=as_json, whole=True)
    reconcile = on_regression is OnRegression.RECONCILE
    code = command.once(settings, chosen, start_over=start_over, reconcile=reconcile)
    raise typer.Exit(int(code))


def run(config: Config = None, overrides: Set = None) -> None:
    """Keep the collection in step: the daemon."""
    from syncer import settings
    from syncer.cli import daemon

    path = config or settings.find(os.environ, Path.cwd())
    code = daemon.run(lambda: load(path, overrides), path)
    raise typer.Exit(int(code))


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
