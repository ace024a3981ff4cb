"""The built wheel, in an environment that holds nothing but it and its dependencies."""

from __future__ import annotations

import json
import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path, PurePosixPath

import fresh_environment
import pytest
from fresh_environment import CHECKOUT, Environment, run

import syncer

pytestmark = pytest.mark.timeout(600)  # seconds; the first test builds and installs


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=CHECKOUT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the wheel alone; what it does not declare is not there."""
    folder = tmp_path_factory.mktemp("installed")
    fresh_environment.require_index(folder)
    pins = folder / "constraints.txt"
    pins.write_text(locked_versions(CHECKOUT / "requirements.lock"))
    environment = fresh_environment.create(folder / "venv")
    environment.install(wheel, "-c", pins)
    return environment


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return variables that keep a run inside the test's folder."""
    own = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(tmp_path))
    return {**own, "SYNCER_EMBED__PROVIDER": "hash"}


def locked_versions(lock: Path) -> str:
    """Return the lock's pins without their hashes.

    pip's hash checking wants every requirement pinned, and the wheel's own are ranges.
    """
    pins = [line for line in lock.read_text().splitlines() if line and not line.startswith(" ")]
    return "".join(f"{pin.removesuffix(chr(92)).strip()}\n" for pin in pins)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def below(folder: Path, pattern: str) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob(pattern)
    }


def tables(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def test_the_wheel_holds_every_migration_as_it_is_in_the_checkout(wheel: Path) -> None:
    expected = below(CHECKOUT / "migrations", "*.sql")
    prefix = "syncer/migrations/"
    inside = {name: data for name, data in contents(wheel).items() if name.startswith(prefix)}
    assert {name.removeprefix(prefix): data for name, data in inside.items()} == expected
    assert {"canonical", "state"} == {PurePosixPath(name).parts[0] for name in expected}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    package = below(CHECKOUT / "syncer", "*.py")
    names = set(contents(wheel))
    info = f"syncer-{syncer.__version__}.dist-info"
    assert {PurePosixPath(name).parts[0] for name in names} == {"syncer", info}
    modules = {name.removeprefix("syncer/") for name in names if name.endswith(".py")}
    assert modules == set(package)
    assert {"syncer/py.typed", f"{info}/licenses/LICENSE"} <= names
    parts = {part for name in names for part in PurePosixPath(name).parts}
    assert not [part for part in parts if part == "tests" or part.startswith("test_")]


def test_the_installed_package_is_the_wheels_and_its_dependencies_fit(
    installed: Environment, tmp_path: Path
) -> None:
    found = run(installed.python, "-c", "import syncer; print(syncer.__file__)", cwd=tmp_path)
    assert Path(found.stdout.strip()).is_relative_to(installed.path)
    run(installed.python, "-m", "pip", "check", cwd=tmp_path)


def test_the_console_script_shows_its_help_and_version(
    installed: Environment, tmp_path: Path, home: dict[str, str]
) -> None:
    shown = run(installed.script("syncer"), "--help", cwd=tmp_path, variables=home)
    assert {"init", "once", "search"} <= set(shown.stdout.split())
    version = run(installed.script("syncer"), "--version", cwd=tmp_path, variables=home)
    assert version.stdout == f"syncer {syncer.__version__}\n"


def test_init_makes_the_canonical_schema_from_the_migrations_in_the_wheel(
    installed: Environment, tmp_path: Path, home: dict[str, str]
) -> None:
    run(installed.script("syncer"), "init", "memory.db", cwd=tmp_path, variables=home)
    expected = {"memory_events", "audit_log", "syncer_changes_memory_events", "sync_status"}
    assert expected <= tables(tmp_path / "memory.db")


def test_a_row_is_synced_and_found_with_what_the_wheel_brings(
    installed: Environment, tmp_path: Path, home: dict[str, str]
) -> None:
    script = installed.script("syncer")
    run(script, "init", "memory.db", cwd=tmp_path, variables=home)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        connection.execute(
            "INSERT INTO memory_events (scope, source, content) VALUES ('s', 'test', 'a row')"
        )
    run(script, "once", cwd=tmp_path, variables=home)
    found = run(script, "search", "a row", "--json", cwd=tmp_path, variables=home)
    assert [(hit["row"], hit["document"]) for hit in json.loads(found.stdout)] == [("1", "a row")]
