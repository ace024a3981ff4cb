"""Find the settings file, put the layers together, and report every problem at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from syncer.errors import SettingsError
from syncer.settings.checks import EntriesError, secret_from_text
from syncer.settings.layers import (
    CONFIG_VARIABLE,
    Given,
    file_layer,
    option_layer,
    variable_layer,
)
from syncer.settings.places import default_state
from syncer.settings.problems import line, shown, unknown_entry, variable_name
from syncer.settings.reference import requirement
from syncer.settings.sections import ENTRIES, FIELDS, SECTIONS, Settings

MAX_KEY_FILE = 64 * 1024  # bytes; no API key comes near, and a device would never end


def find(environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the settings file to use, None if there is none.

    ``SYNCER_CONFIG`` names it, whether it exists or not; else it is ``syncer.toml`` in `cwd`, or
    ``syncer/syncer.toml`` in ``$XDG_CONFIG_HOME`` (by default ``~/.config``).
    """
    home = environ.get("HOME", "")
    if named := environ.get(CONFIG_VARIABLE):
        in_home = bool(home) and named.startswith("~/")
        return Path(home + named[1:]) if in_home else cwd / named
    configured = environ.get("XDG_CONFIG_HOME", "")
    folders = [cwd]
    if Path(configured).is_absolute():
        folders.append(Path(configured) / "syncer")
    elif home:
        folders.append(Path(home) / ".config" / "syncer")
    files = (folder / "syncer.toml" for folder in folders)
    return next((file for file in files if file.is_file()), None)


def load(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    options: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings: the file at `path`, below variables, below `options`.

    Options go by dotted key, ``{"source.database": …}``; one that is None was not given. In the
    result all paths are absolute, exactly one of ``target.path`` and ``target.url`` is set, and
    ``api_key`` holds the key whether it came by value or by file.

    Raises SettingsError with a line for each problem there is.
    """
    cwd, home = Path.cwd(), environ.get("HOME")
    file = file_layer(path, home)
    variables = variable_layer(environ, cwd, home)
    chosen = option_layer(options or {}, cwd, home)
    given = {**file.values, **variables.values, **chosen.values}
    problems = [*file.problems, *variables.problems, *chosen.problems]
    settings, found = _validated(given, ignore_missing=not file.complete)
    keys = {section: _key_from_file(given, section) for section in ("target", "embed")}
    problems += [*found, *(one for _, unreadable in keys.values() for one in unreadable)]
    if problems or settings is None:
        raise _refusal(problems)
    settings = _completed(settings, environ)
    return settings.model_copy(
        update={
            section: getattr(settings, section).model_copy(update={"api_key": key})
            for section, (key, _) in keys.items()
            if key
        }
    )


def _validated(
    given: Mapping[str, Given], *, ignore_missing: bool
) -> tuple[Settings | None, list[str]]:
    values: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
    for dotted, one in given.items():
        section, _, name = dotted.partition(".")
        values[section][name] = one.value
    try:
        return Settings.model_validate(values), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
    return None, list(_lines(details, given, ignore_missing=ignore_missing))


def _lines(
    details: list[ErrorDetails], given: Mapping[str, Given], *, ignore_missing: bool
) -> Iterator[str]:
    seen: set[str] = set()
    for detail in details:
        key = ".".join(str(part) for part in detail["loc"][:2])
        in_entry = key in ENTRIES and len(detail["loc"]) > len(("source", "joined"))
        error = detail.get("ctx", {}).get("error")
        if isinstance(error, EntriesError):
            for number, name, what in error.found:
                yield _entry_line(key, (number, name), what, given[key])
        elif in_entry:
            place = detail["loc"][2:4]
            if repr(place) not in seen:  # of a choice between types each may be complained of
                yield _entry_line(key, place, _entry_cause(key, detail), given[key])
            seen.add(repr(place))
        elif key in seen or (ignore_missing and detail["type"] == "missing"):
            continue
        elif key in given:
            subject = f"{key} = {shown(key, given[key].value)}"
            yield line(subject, _cause(FIELDS[key], detail), given[key].origin)
        elif detail["type"] == "missing":
            yield line(key, f"is not set; give it in syncer.toml or as {variable_name(key)}")
        else:
            yield line(key, _cause(FIELDS[key], detail))
        seen.add(key)


def _cause(info: FieldInfo, detail: ErrorDetails) -> str:
    """Return what is wrong: a check's own words, or what the type and the bound ask for."""
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    return f"must be {requirement(info)}"


def _entry_cause(key: str, detail: ErrorDetails) -> str:
    """Return what is wrong with an entry of a list of tables, or with a setting in it."""
    fields = ENTRIES[key].model_fields
    if len(detail["loc"]) == len(("source", "joined", 0)):
        return f"must be a table with {', '.join(fields)}"
    name = str(detail["loc"][3])
    if detail["type"] == "missing":
        return "is not set"
    return _cause(fields[name], detail) if name in fields else unknown_entry(name, fields)


def _entry_line(key: str, place: Sequence[int | str], what: str, given: Given) -> str:
    """Return the line for an entry, or for a setting in it; not its value if that is unknown."""
    value, subject = given.value, key
    for part in place:
        subject += f"[{part}]" if isinstance(part, int) else f".{part}"
        known = isinstance(part, int) or part in ENTRIES[key].model_fields
        if known and isinstance(value, (list, tuple, dict)):
            value = value.get(part) if isinstance(value, dict) else value[int(part)]
        else:
            value = None
    shown_value = "" if value is None else f" = {shown(subject, value)}"
    return line(f"{subject}{shown_value}", what, given.origin)


def _key_from_file(given: Mapping[str, Given], section: str) -> tuple[SecretStr | None, list[str]]:
    """Return the API key in a section's ``api_key_file``, or what is wrong with that file."""
    key = f"{section}.api_key_file"
    one = given.get(key)
    if one is None or not isinstance(one.value, (str, Path)) or not str(one.value).strip():
        return None, []
    try:
        with Path(one.value).open("rb") as file:
            secret = secret_from_text(file.read(MAX_KEY_FILE).decode("ascii"))
        cause = "" if secret else "the file is empty"
    except OSError as error:
        secret, cause = None, f"the file cannot be read: {error.strerror}"
    except ValueError:  # not ASCII, not one line, or a NUL in the path
        secret, cause = None, "the file must hold the key, one line of visible ASCII characters"
    subject = f"{key} = {shown(key, one.value)}"
    return secret, [line(subject, cause, one.origin)] if cause else []


def _refusal(problems: list[str]) -> SettingsError:
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return SettingsError(
        "\n".join([f"The settings cannot be used ({count}):", *(f"- {one}" for one in problems)]),
        hint="docs/settings.md lists every setting with its type, default and bound.",
    )


def _completed(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Fill in the defaults that follow from other settings."""
    target = settings.target
    changes: dict[str, object] = {}
    if target.url is None and target.path is None:
        changes["path"] = settings.source.database.parent / "qdrant"
    if "payload_indexes" not in target.model_fields_set:
        changes["payload_indexes"] = tuple(
            index.replace("metadata.", f"{target.metadata_key}.", 1)
            for index in target.payload_indexes
        )
    source = settings.source
    if source.changes != "log" and source.state is None:
        source = source.model_copy(update={"state": default_state(source.database, environ)})
    return settings.model_copy(
        update={"source": source, "target": target.model_copy(update=changes)}
    )
