"""Where values come from: the file, then ``SYNCER_…`` variables, then options.

A layer keeps with each value where it was given, so that a problem can be traced to its place.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic.fields import FieldInfo

from syncer.settings.checks import looks_like_uri
from syncer.settings.problems import PREFIX, line, unknown_key, unknown_variable, variable_name
from syncer.settings.reference import types_of
from syncer.settings.sections import FIELDS, SECTIONS

CONFIG_VARIABLE = "SYNCER_CONFIG"
RESERVED = frozenset({CONFIG_VARIABLE})
"""Variables that belong to syncer and are no settings."""

VARIABLES = {variable_name(key): key for key in FIELDS}
"""Every setting by the name of its variable."""


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was given, and by what: a file, a variable or an option."""

    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place gives, by dotted key, and what is wrong with it, a line each.

    `complete` is False when the place could not be read at all.
    """

    values: Mapping[str, Given]
    problems: tuple[str, ...] = ()
    complete: bool = True


def file_layer(path: Path | None, home: str | None) -> Layer:
    """Return what the settings file at `path` gives; relative paths start from its folder."""
    if path is None:
        return Layer({})
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        problem = f"{path}: there is no such settings file; `syncer init` writes one, -c names one"
    except OSError as error:
        problem = f"{path}: the settings file cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        problem = f"{path}: the settings file is not UTF-8: byte {error.start} does not fit"
    except tomllib.TOMLDecodeError as error:
        problem = f"{path}{_line_number(str(error))}: not valid TOML: {error}"
    else:
        return _from_document(document, path, home)
    return Layer({}, (problem,), complete=False)


def variable_layer(environ: Mapping[str, str], cwd: Path, home: str | None) -> Layer:
    """Return what the ``SYNCER_SECTION__KEY`` variables give; texts become what the key takes."""
    values: dict[str, Given] = {}
    problems = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in RESERVED:
            continue
        if key := VARIABLES.get(name):
            value = _absolute(key, _from_text(FIELDS[key], environ[name]), cwd, home)
            values[key] = Given(value, f"variable {name}")
        else:
            problems.append(unknown_variable(name, RESERVED))
    return Layer(values, tuple(problems))


def option_layer(options: Mapping[str, object], cwd: Path, home: str | None) -> Layer:
    """Return what options give, by dotted key; None stands for an option that was not given."""
    values: dict[str, Given] = {}
    problems = []
    for key, value in options.items():
        if value is None:
            continue
        if key in FIELDS:
            typed = _from_text(FIELDS[key], value) if isinstance(value, str) else value
            values[key] = Given(_absolute(key, typed, cwd, home), f"option {key}")
        else:
            problems.append(unknown_key(key, f"option {key}"))
    return Layer(values, tuple(problems))


def _from_document(document: Mapping[str, object], path: Path, home: str | None) -> Layer:
    values: dict[str, Given] = {}
    problems = []
    for section, table in document.items():
        if section not in SECTIONS:
            problems.append(unknown_key(section, str(path)))
        elif not isinstance(table, dict):
            problems.append(line(section, f"must be a section, [{section}]", str(path)))
        else:
            keys = [f"{section}.{name}" for name in table]
            problems += [unknown_key(key, str(path)) for key in keys if key not in FIELDS]
            values |= _from_table(section, table, path, home)
    return Layer(values, tuple(problems))


def _from_table(
    section: str, table: Mapping[str, object], path: Path, home: str | None
) -> dict[str, Given]:
    folder = path.absolute().parent
    keys = {f"{section}.{name}": value for name, value in table.items()}
    return {
        key: Given(_absolute(key, value, folder, home), str(path))
        for key, value in keys.items()
        if key in FIELDS
    }


def _absolute(key: str, value: object, base: Path, home: str | None) -> object:
    """Return a path from `base`, with ``~`` filled in; whatever is no path, as it is."""
    if Path not in types_of(FIELDS[key].annotation) or not isinstance(value, (str, Path)):
        return value
    text = str(value)
    if not text.strip() or looks_like_uri(text):
        return value
    if home and (text == "~" or text.startswith("~/")):
        return str(Path(home + text[1:]))
    try:
        return str(base / Path(text).expanduser())
    except RuntimeError:  # no such user: the check of the value says so
        return text


def _from_text(info: FieldInfo, text: str) -> object:
    """Return what `text` means for a setting; the text itself if it does not fit its type."""
    for kind in types_of(info.annotation):
        if convert := _CONVERT.get(kind):
            try:
                return convert(text)
            except ValueError:
                return text
    return text


def _truth(text: str) -> bool:
    truths = {"true": True, "1": True, "false": False, "0": False}
    if text.strip().lower() not in truths:
        raise ValueError("neither true nor false")
    return truths[text.strip().lower()]


def _items(text: str) -> object:
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [item.strip() for item in text.split(",")] if text.strip() else []


_CONVERT: dict[object, Callable[[str], object]] = {
    bool: _truth,
    int: int,
    float: float,
    tuple: _items,
}


def _line_number(cause: str) -> str:
    found = re.search(r"at line (\d+)", cause)
    return f", line {found[1]}" if found else ""
