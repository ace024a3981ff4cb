"""The command line as a whole: the commands in the order in which ``--help`` lists them."""

from __future__ import annotations

from typing import Annotated

import typer

import syncer
from syncer.cli.commands import checks, generations, rows, sync, table

app = typer.Typer(
    name="syncer",
    help="Keeps a Qdrant collection equal to a SQLite table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"syncer {syncer.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            callback=lambda wanted: _version(wanted=wanted),
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Keep a Qdrant collection equal to a SQLite table."""


for _command in (
    table.init,
    table.attach,
    table.detach,
    sync.once,
    sync.run,
    generations.rebuild,
    generations.rollback,
    generations.gc,
    rows.confirm_deletes,
    checks.status,
    checks.search,
    checks.verify,
    checks.doctor,
    checks.demo,
    table.recover,
    sync.wait,
):
    app.command()(_command)

app.add_typer(rows.quarantine, name="quarantine")
