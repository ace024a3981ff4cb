"""Every command, option, setting and exit code stands in the docs, and the docs name no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from syncer.cli.app import app
from syncer.errors import ExitCode, RefusedError

ROOT = Path(__file__).parents[2]
COMMANDS_PAGE = (ROOT / "docs" / "commands.md").read_text()
RUNBOOK = (ROOT / "docs" / "operations.md").read_text()
ALERTS = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
README = (ROOT / "README.md").read_text()

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_and_its_options_are_documented(name: str) -> None:
    assert f"| `syncer {name}" in README
    section = re.search(rf"(?s)## `syncer {name}.*?(?=\n## )", COMMANDS_PAGE)
    assert section is not None
    everywhere = COMMANDS_PAGE.split("\n## ")[0]
    for parameter in COMMANDS[name].params:
        for option in getattr(parameter, "opts", []):
            if option.startswith("-"):
                assert f"`{option}" in section[0] + everywhere, option


def test_no_command_is_documented_that_is_not_there() -> None:
    documented = set(re.findall(r"## `syncer ([\w-]+)", COMMANDS_PAGE))
    assert documented == set(COMMANDS)
    assert set(re.findall(r"^\| `syncer ([\w-]+)", README, re.MULTILINE)) == set(COMMANDS)


def test_every_exit_code_is_documented_and_no_other() -> None:
    table = COMMANDS_PAGE.split("## Exit codes")[1].split("\n## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert documented == {int(code) for code in ExitCode}


def test_the_runbook_has_a_heading_for_each_exit_code_refusal_and_alert() -> None:
    headings = set(re.findall(r"^### `?(\w+)`?$", RUNBOOK, re.MULTILINE))
    codes = {str(int(code)) for code in ExitCode}
    refusals = {each.__name__ for each in RefusedError.__subclasses__()}
    alerts = set(re.findall(r"alert: (\w+)", ALERTS))
    assert headings == codes | refusals | alerts


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_readme_opens_with_the_guarantee() -> None:
    first = README.split("\n\n")[2]
    assert "nothing is skipped" in first
    assert "nothing is duplicated" in first
    assert "disposable" in first
