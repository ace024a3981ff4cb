"""Commands about rows that are held back: ``confirm-deletes`` and ``quarantine``."""

from __future__ import annotations

from typing import Annotated

import typer

from syncer.cli.options import Config, Json, Set, load

quarantine = typer.Typer(
    help="Rows that could not be indexed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Keys = Annotated[
    list[str] | None, typer.Argument(help="Keys of rows, as `list` shows them; default: all.")
]


def confirm_deletes(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """Take out the rows whose deletion was withheld."""
    from syncer.cli import report, rows

    settings = load(config, overrides)
    chosen = report.of_run(settings, as_json=as_json)
    raise typer.Exit(int(rows.confirm_deletes(settings, chosen)))


@quarantine.command("list")
def quarantine_list(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """List the rows that could not be indexed, and why; never their text."""
    from syncer.cli import rows

    found = rows.listed(load(config, overrides))
    typer.echo(rows.as_json(found) if as_json else rows.in_words(found))


@quarantine.command("retry")
def quarantine_retry(
    keys: Keys = None, config: Config = None, overrides: Set = None, as_json: Json = False
) -> None:
    """Try quarantined rows again now: those named, or all."""
    from syncer.cli import report, rows

    settings = load(config, overrides)
    chosen = report.of_run(settings, as_json=as_json)
    raise typer.Exit(int(rows.retry(settings, chosen, keys or ())))


@quarantine.command("forget")
def quarantine_forget(keys: Keys = None, config: Config = None, overrides: Set = None) -> None:
    """Drop the records of quarantined rows; they stay out until they change."""
    from syncer.cli import report, rows

    settings = load(config, overrides)
    for row in rows.forget(settings, keys or ()):
        typer.echo(f"forgot row {row}")
    report.leave_figures(settings)
