"""Options that many commands share, and the settings that come of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syncer.errors import SettingsError

if TYPE_CHECKING:
    from syncer.settings import Settings

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
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def load(config: Path | None, overrides: list[str] | None) -> Settings:
    """Return the settings of the file, the environment and the options given.

    Raises SettingsError for what cannot be used.
    """
    from syncer import settings

    path = config or settings.find(os.environ, Path.cwd())
    return settings.load(path, environ=os.environ, options=pairs(overrides, "--set"))


def pairs(values: list[str] | None, option: str) -> dict[str, object]:
    """Return what was given to an `option` that takes NAME=VALUE, by name; else SettingsError."""
    found: dict[str, object] = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if not equals or not name:
            raise SettingsError(
                f"{option} wants NAME=VALUE, not {name!r}",
                hint=f"See `syncer {_command()} --help`.",
            )
        found[name] = rest
    return found


def _command() -> str:
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")
