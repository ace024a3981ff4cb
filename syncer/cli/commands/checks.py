"""Commands that show how things are: ``status``, ``search``, ``verify``, ``doctor``, ``demo``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from syncer.cli.options import Config, Json, Set, load, pairs
from syncer.model import Mode


def status(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """Say how far behind the collection is."""
    from syncer.cli import status as command

    found = command.status(load(config, overrides))
    typer.echo(json.dumps(found.as_dict()) if as_json else found.in_words())


def search(
    text: Annotated[str, typer.Argument(help="What to look for.")],
    config: Config = None,
    overrides: Set = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=1000, help="How many hits.")
    ] = 5,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="Keep hits with this metadata.", metavar="NAME=VALUE"),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(help="By meaning, by words or by both; default: both where there are both."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the collection, to see that it works."""
    from syncer.cli import search as command

    wanted = pairs(where, "--where")
    hits = command.search(load(config, overrides), text, limit, wanted, mode)
    typer.echo(command.as_json(hits) if as_json else command.in_words(hits))


def verify(
    config: Config = None,
    overrides: Set = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what differs.")] = False,
    sample: Annotated[
        int, typer.Option("--sample", min=0, help="Embed so many rows again and compare vectors.")
    ] = 0,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Choose the same rows as with this seed before.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the collection with the table, row by row."""
    from syncer.cli import report
    from syncer.cli import verify as command

    settings = load(config, overrides)
    chosen = report.of_run(settings, as_json=as_json)
    asked = command.Asked(repair=repair, sample=sample, seed=seed)
    raise typer.Exit(int(command.verify(settings, chosen, asked)))


def doctor(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """Check all that a run depends on, and say what is wrong."""
    from syncer.cli import doctor as command

    checks = command.doctor(lambda: load(config, overrides))
    typer.echo(command.as_json(checks) if as_json else command.in_words(checks))
    raise typer.Exit(int(command.exit_code(checks)))


def demo(
    folder: Annotated[Path, typer.Argument(help="A folder for the demo; made anew.")] = Path(
        "demo-memory"
    ),
) -> None:
    """Run the whole job on real text, in its own folder."""
    from syncer.cli import demo as command

    command.demo(folder)
