"""Commands about generations: ``rebuild``, ``rollback``, ``gc``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from syncer.cli.options import Config, Json, Set, load
from syncer.errors import SettingsError


def rebuild(
    config: Config = None,
    overrides: Set = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be embedded, and how long; do nothing.")
    ] = False,
    adopt: Annotated[
        bool,
        typer.Option("--adopt", help="Take over a collection that another tool has made."),
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Where the points of that one go.", metavar="FILE"),
    ] = None,
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="Export their vectors, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build the collection again while it keeps serving."""
    from syncer.cli import planned, report
    from syncer.cli import rebuild as command

    settings = load(config, overrides)
    if not adopt and (export is not None or with_vectors):
        raise SettingsError(
            "--export and --with-vectors say where the points of another tool's collection go",
            hint="Give --adopt as well, or leave them out.",
        )
    if adopt and plan:
        raise SettingsError(
            "--plan says what a rebuild would do, and knows nothing of --adopt",
            hint="Nothing was done. Leave one of them out.",
        )
    if adopt:
        from syncer.cli import adopt as adopting

        chosen = report.of_run(settings, as_json=as_json, whole=True)
        raise typer.Exit(int(adopting.adopt(settings, chosen, export, with_vectors=with_vectors)))
    if plan:
        found = planned.plan(settings)
        typer.echo(json.dumps(found.as_dict()) if as_json else found.in_words())
        return
    chosen = report.of_run(settings, as_json=as_json, whole=True)
    raise typer.Exit(int(command.rebuild(settings, chosen)))


def rollback(
    to: Annotated[
        str | None,
        typer.Argument(help="A generation, as `status` lists it; default: the last that served."),
    ] = None,
    config: Config = None,
    overrides: Set = None,
    as_json: Json = False,
) -> None:
    """Let the generation that served before serve again."""
    from syncer.cli import rebuild as command
    from syncer.cli import report

    settings = load(config, overrides)
    chosen = report.of_run(settings, as_json=as_json, whole=True)
    raise typer.Exit(int(command.rollback(settings, chosen, to)))


def gc(
    config: Config = None,
    overrides: Set = None,
    keep: Annotated[
        int | None,
        typer.Option(min=0, help="How many to leave for `rollback`; default: as set."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go; remove nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove generations that nothing needs any more."""
    from syncer.cli import gc as command

    fates = command.gc(load(config, overrides), keep, dry_run=dry_run)
    typer.echo(command.as_json(fates) if as_json else command.in_words(fates, dry_run=dry_run))
