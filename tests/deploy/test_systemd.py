"""The units: systemd's own tool takes them, and they are shut as tightly as is claimed."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest
from commands import run
from packaged_tools import ran

from syncer.errors import ExitCode

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICES = ("syncer@.service", "syncer-once@.service", "syncer-verify@.service")
MOST_EXPOSED = 2.5
HARDENED_ALIKE = (
    "User", "Group", "NoNewPrivileges", "CapabilityBoundingSet", "AmbientCapabilities",
    "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "DevicePolicy", "ProtectProc",
    "ProcSubset", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime",
    "RestrictSUIDSGID", "LockPersonality", "KeyringMode", "MemoryDenyWriteExecute",
    "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber", "UMask", "RemoveIPC",
    "LoadCredential", "Environment", "StateDirectory", "WorkingDirectory",
)  # fmt: skip


def settings_of(unit: str, section: str = "Service") -> dict[str, list[str]]:
    """Return a unit's settings, each with all its values."""
    found: dict[str, list[str]] = {}
    inside = ""
    for line in (UNITS / unit).read_text().splitlines():
        if line.startswith("["):
            inside = line.strip("[]")
        elif inside == section and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_the_tool_takes_all_units(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/opt/syncer/bin/syncer", "/bin/true")
        (tmp_path / unit.name.replace("@", "@memory")).write_text(text)
    units = sorted(tmp_path.iterdir())
    assert len(units) == 5
    checked = ran("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("unit", SERVICES)
def test_a_service_is_exposed_less_than_the_bound(unit: str) -> None:
    judged = ran("systemd-analyze", "security", "--offline=true", "--no-pager", UNITS / unit)
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", judged.stdout)
    assert float(exposure) < MOST_EXPOSED


@pytest.mark.parametrize("unit", SERVICES[1:])
def test_all_services_are_hardened_alike(unit: str) -> None:
    daemon, other = settings_of(SERVICES[0]), settings_of(unit)
    for name in HARDENED_ALIKE:
        assert daemon[name] == other[name], name


@pytest.mark.parametrize("unit", SERVICES)
def test_secrets_come_as_credentials_and_nowhere_else(unit: str) -> None:
    found = settings_of(unit)
    assert found["LoadCredential"] == ["qdrant.key:/etc/syncer/%i.qdrant.key"]
    assert "SYNCER_TARGET__API_KEY_FILE=%d/qdrant.key" in found["Environment"]
    assert "API_KEY=" not in (UNITS / unit).read_text()


def test_the_service_manager_knows_the_exit_codes() -> None:
    daemon, once, verify = (settings_of(unit) for unit in SERVICES)
    signals = {str(int(ExitCode.INTERRUPTED)), str(int(ExitCode.TERMINATED))}
    assert set(daemon["SuccessExitStatus"][0].split()) == signals
    decided = {str(int(ExitCode.USAGE)), str(int(ExitCode.REFUSED))}
    assert set(daemon["RestartPreventExitStatus"][0].split()) == decided
    quarantined = str(int(ExitCode.QUARANTINED))
    assert set(once["SuccessExitStatus"][0].split()) == signals | {quarantined}
    assert set(verify["SuccessExitStatus"][0].split()) == signals


@pytest.mark.parametrize("unit", SERVICES)
def test_a_service_runs_a_command_with_options_that_there_are(unit: str, tmp_path: Path) -> None:
    (line,) = settings_of(unit)["ExecStart"]
    program, *arguments = shlex.split(line.replace("%i", "nothing"))
    assert program == "/opt/syncer/bin/syncer"
    done = run(*arguments, cwd=tmp_path)
    assert done.code == ExitCode.USAGE
    assert "/etc/syncer/nothing.toml: there is no such settings file" in done.err


def test_the_daemon_is_watched_and_timers_start_the_one_shots() -> None:
    daemon = settings_of("syncer@.service")
    assert daemon["Type"] == ["notify"]
    assert daemon["WatchdogSec"]
    timer = configparser.ConfigParser()
    timer.read(UNITS / "syncer-once@.timer")
    assert timer["Timer"]["OnCalendar"] == "*:0/5"
    for unit in SERVICES[1:]:
        assert settings_of(unit)["Type"] == ["oneshot"]
        assert (UNITS / unit).with_suffix(".timer").exists()
