"""Load settings in tests: those that are taken, and the lines of those that are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from syncer.errors import ExitCode, SettingsError
from syncer.settings import Settings, load

KEY = "sk-very-secret"
DATABASE = {"source.database": "/data/memory.db"}


def given(**options: object) -> Settings:
    """Load from options alone; ``target__url`` stands for target.url."""
    dotted = {name.replace("__", "."): value for name, value in options.items()}
    return load(None, environ={}, options=DATABASE | dotted)


def problems(
    text: str = "",
    tmp_path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> list[str]:
    """Return the lines that loading is refused with."""
    path = None
    if tmp_path:
        path = tmp_path / "syncer.toml"
        path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(path, environ=environ or {}, options=options)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "docs/settings.md" in (caught.value.hint or "")
    head, *lines = caught.value.message.splitlines()
    assert head.startswith("The settings cannot be used")
    return [line.removeprefix("- ") for line in lines]


def refusal(**options: object) -> str:
    """Return the one line that these options are refused with."""
    dotted = {name.replace("__", "."): value for name, value in options.items()}
    (line,) = problems(options=DATABASE | dotted)
    return line
