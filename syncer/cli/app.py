"""The commands and their options; what they do stands in the modules beside this one."""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import syncer
from syncer.errors import SettingsError
from syncer.model import Mode

if TYPE_CHECKING:
    from syncer.settings import Settings

app = typer.Typer(
    name="syncer",
    help="Keeps a Qdrant collection equal to a SQLite table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

quarantine = typer.Typer(
    help="Rows that could not be indexed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(quarantine, name="quarantine")


class OnRegression(StrEnum):
    """What to do if a store went back or was replaced."""

    REFUSE = "refuse"
    RECONCILE = "reconcile"


Config = Annotated[
    Path | None,
    typer.Option("-c", "--config", help="Settings file; default ./syncer.toml.", metavar="FILE"),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Override one setting, e.g. target.path=/srv/q.", metavar="KEY=VALUE"
    ),
]
Keys = Annotated[
    list[str] | None, typer.Argument(help="Keys of rows, as `list` shows them; default: all.")
]
ShowSql = Annotated[
    bool, typer.Option("--dry-run", help="Print the SQL that would be run; change nothing.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


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


@app.command()
def init(
    database: Annotated[
        Path | None, typer.Argument(help="The SQLite file; default: source.database.")
    ] = None,
    config: Config = None,
    overrides: Set = None,
) -> None:
    """Make or complete the canonical schema."""
    from syncer.cli import init as command

    command.init(database, config, lambda: _settings(config, overrides))


@app.command()
def attach(config: Config = None, overrides: Set = None, dry_run: ShowSql = False) -> None:
    """Put a change log on a table of your own."""
    from syncer.cli import attach as command

    settings = _settings(config, overrides)
    typer.echo(command.attach_sql(settings) if dry_run else command.attach(settings))


@app.command()
def detach(config: Config = None, overrides: Set = None, dry_run: ShowSql = False) -> None:
    """Take the change log out of the database again."""
    from syncer.cli import attach as command

    settings = _settings(config, overrides)
    typer.echo(command.detach_sql(settings) if dry_run else command.detach(settings))


@app.command()
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
    from syncer.cli import report

    settings = _settings(config, overrides)
    if dry_run:
        result = command.dry_run(settings)
        typer.echo(report.as_json(result) if as_json else "would do: " + report.in_words(result))
        return
    chosen = report.with_textfile(report.choose(settings, as_json=as_json), settings)
    reconcile = on_regression is OnRegression.RECONCILE
    code = command.once(settings, chosen, start_over=start_over, reconcile=reconcile)
    raise typer.Exit(int(code))


@app.command()
def run(config: Config = None, overrides: Set = None) -> None:
    """Keep the collection in step: the daemon."""
    from syncer import settings
    from syncer.cli import daemon

    path = config or settings.find(os.environ, Path.cwd())
    code = daemon.run(lambda: _settings(path, overrides), path)
    raise typer.Exit(int(code))


@app.command()
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

    settings = _settings(config, overrides)
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

        chosen = report.choose(settings, as_json=as_json)
        raise typer.Exit(int(adopting.adopt(settings, chosen, export, with_vectors=with_vectors)))
    if plan:
        found = planned.plan(settings)
        typer.echo(json.dumps(found.as_dict()) if as_json else found.in_words())
        return
    chosen = report.choose(settings, as_json=as_json)
    raise typer.Exit(int(command.rebuild(settings, chosen)))


@app.command()
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

    settings = _settings(config, overrides)
    chosen = report.choose(settings, as_json=as_json)
    raise typer.Exit(int(command.rollback(settings, chosen, to)))


@app.command()
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

    fates = command.gc(_settings(config, overrides), keep, dry_run=dry_run)
    typer.echo(command.as_json(fates) if as_json else command.in_words(fates, dry_run=dry_run))


@app.command("confirm-deletes")
def confirm_deletes(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """Take out the rows whose deletion was withheld."""
    from syncer.cli import report, rows

    settings = _settings(config, overrides)
    chosen = report.choose(settings, as_json=as_json)
    raise typer.Exit(int(rows.confirm_deletes(settings, chosen)))


@quarantine.command("list")
def quarantine_list(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """List the rows that could not be indexed, and why; never their text."""
    from syncer.cli import rows

    found = rows.listed(_settings(config, overrides))
    typer.echo(rows.as_json(found) if as_json else rows.in_words(found))


@quarantine.command("retry")
def quarantine_retry(
    keys: Keys = None, config: Config = None, overrides: Set = None, as_json: Json = False
) -> None:
    """Try quarantined rows again now: those named, or all."""
    from syncer.cli import report, rows

    settings = _settings(config, overrides)
    chosen = report.choose(settings, as_json=as_json)
    raise typer.Exit(int(rows.retry(settings, chosen, keys or ())))


@quarantine.command("forget")
def quarantine_forget(keys: Keys = None, config: Config = None, overrides: Set = None) -> None:
    """Drop the records of quarantined rows; they stay out until they change."""
    from syncer.cli import rows

    for row in rows.forget(_settings(config, overrides), keys or ()):
        typer.echo(f"forgot row {row}")


@app.command()
def status(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """Say how far behind the collection is."""
    from syncer.cli import status as command

    found = command.status(_settings(config, overrides))
    typer.echo(json.dumps(found.as_dict()) if as_json else found.in_words())


@app.command()
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

    wanted = _pairs(where, "--where")
    hits = command.search(_settings(config, overrides), text, limit, wanted, mode)
    typer.echo(command.as_json(hits) if as_json else command.in_words(hits))


@app.command()
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

    settings = _settings(config, overrides)
    chosen = report.choose(settings, as_json=as_json)
    asked = command.Asked(repair=repair, sample=sample, seed=seed)
    raise typer.Exit(int(command.verify(settings, chosen, asked)))


@app.command()
def doctor(config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """Check all that a run depends on, and say what is wrong."""
    from syncer.cli import doctor as command

    checks = command.doctor(lambda: _settings(config, overrides))
    typer.echo(command.as_json(checks) if as_json else command.in_words(checks))
    raise typer.Exit(int(command.exit_code(checks)))


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="A folder for the demo; made anew.")] = Path(
        "demo-memory"
    ),
) -> None:
    """Run the whole job on real text, in its own folder."""
    from syncer.cli import demo as command

    command.demo(folder)


def _settings(config: Path | None, overrides: list[str] | None) -> Settings:
    from syncer import settings

    path = config or settings.find(os.environ, Path.cwd())
    return settings.load(path, environ=os.environ, options=_pairs(overrides, "--set"))


def _pairs(values: list[str] | None, option: str) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if not equals or not name:
            raise SettingsError(
                f"{option} wants NAME=VALUE, not {name!r}",
                hint=f"See `syncer {_command()} --help`.",
            )
        pairs[name] = rest
    return pairs


def _command() -> str:
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")


from syncer.cli import more  # noqa: E402, F401 - its commands register themselves here
