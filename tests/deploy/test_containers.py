"""Image and Compose file, parsed: nobody is root, one service writes, keys stand in no file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import memory
import pytest
import yaml
from commands import run

from syncer.settings import find, load

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())
SERVICES = COMPOSE["services"]
INSTRUCTION = re.compile(r"([A-Z]+)\s+(.*)")
CRON = (ROOT / "deploy" / "cron" / "syncer").read_text()


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, continued lines joined, comments left out."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    found = [INSTRUCTION.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    assert all(found), "a line is no instruction"
    return [(one[1], one[2]) for one in found if one]


def last_stage() -> list[tuple[str, str]]:
    every = instructions()
    begins = [place for place, (name, _) in enumerate(every) if name == "FROM"]
    assert len(begins) == 2
    return every[begins[-1] :]


def test_the_image_has_no_build_tools_and_is_nobodys_root() -> None:
    stage = last_stage()
    names = [name for name, _ in stage]
    users = [value for name, value in stage if name == "USER"]
    assert users == ["10001:10001"]
    assert names.index("USER") < names.index("ENTRYPOINT")
    copied = [value for name, value in stage if name == "COPY"]
    assert copied == ["--from=build /opt/syncer /opt/syncer"]
    runs = " ".join(value for name, value in stage if name == "RUN")
    assert "pip uninstall" in runs
    assert "pip install" not in runs
    assert "apt-get" not in runs


def test_the_image_asks_for_its_own_health_and_stops_in_order() -> None:
    stage = dict(last_stage())
    assert "/healthz" in stage["HEALTHCHECK"]
    assert stage["STOPSIGNAL"] == "SIGTERM"
    assert stage["ENTRYPOINT"] == '["syncer"]'


def test_what_the_image_is_built_from_is_there_and_let_through() -> None:
    kept = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        name
        for instruction, value in instructions()
        if instruction == "COPY" and not value.startswith("--from")
        for name in value.split()[:-1]
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_the_versions_that_the_image_is_built_with_are_those_of_the_lock() -> None:
    pattern = re.compile(r"^([a-zA-Z0-9._-]*==[^\\]*).*")
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    constraints = [found[1].strip() for line in lines if (found := pattern.match(line))]
    assert any(line.startswith("qdrant-client==") for line in constraints)
    assert not [line for line in constraints if "--hash" in line]


def test_only_syncer_gets_the_key_that_writes() -> None:
    holders = {name for name, one in SERVICES.items() if "${QDRANT_API_KEY" in str(one)}
    assert holders == {"qdrant", "syncer"}
    assert [secret["environment"] for secret in COMPOSE["secrets"].values()] == [
        "QDRANT_READ_ONLY_API_KEY", "GRAFANA_PASSWORD"
    ]  # fmt: skip
    assert SERVICES["prometheus"]["secrets"] == ["qdrant_read_only_key"]
    environment = SERVICES["qdrant"]["environment"]
    assert environment["QDRANT__SERVICE__API_KEY"].startswith("${QDRANT_API_KEY:?")
    read_only = environment["QDRANT__SERVICE__READ_ONLY_API_KEY"]
    assert read_only.startswith("${QDRANT_READ_ONLY_API_KEY:?")
    assert {name for name, one in SERVICES.items() if "API_KEY" in str(one.get("environment"))} == {
        "qdrant", "syncer"
    }  # fmt: skip
    assert set(COMPOSE["secrets"]) == {
        secret for one in SERVICES.values() for secret in one.get("secrets", [])
    }


def test_no_secret_has_to_be_copied_into_a_read_only_file_system() -> None:
    """Compose refuses it, unless the secret is a file that it can mount."""
    copied = {name for name, one in COMPOSE["secrets"].items() if "file" not in one}
    for name, service in SERVICES.items():
        if service.get("read_only"):
            assert not copied & set(service.get("secrets", [])), name


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_listens_to_this_machine_only_and_may_gain_nothing(name: str) -> None:
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert ":latest" not in service["image"]
    assert "build" in service or re.search(r":v?\d+\.\d+\.\d+$", service["image"])


def test_what_is_mounted_from_here_is_here() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("../"):
                assert (ROOT / "deploy" / "compose" / source).exists(), source
            elif not source.startswith("$"):
                assert source in COMPOSE["volumes"]


def test_syncers_settings_in_image_and_compose_are_settings_that_need_no_file(
    tmp_path: Path,
) -> None:
    baked = dict(pair.split("=", 1) for pair in shlex.split(dict(last_stage())["ENV"]))
    given = {
        name: re.sub(r"\$\{[^}:]*:\?[^}]*\}", "a-key", value)
        for name, value in SERVICES["syncer"]["environment"].items()
    }
    blank = {name: re.sub(r"\$\{[^}]*:-\}", "", value) for name, value in given.items()}
    environment = {**baked, **blank}
    assert not [value for value in environment.values() if "${" in value]
    settings = load(find(environment, tmp_path), environ=environment)
    assert settings.target.api_key is not None
    assert settings.target.api_key.get_secret_value() == "a-key"
    assert settings.target.url == "http://qdrant:6333"
    assert settings.metrics.listen == "0.0.0.0:9464"
    assert SERVICES["syncer"]["read_only"] is True


def test_everything_that_has_to_be_set_is_in_the_example() -> None:
    text = (ROOT / "deploy/compose/compose.yaml").read_text()
    wanted = set(re.findall(r"\$\{(\w+):\?", text)) | {
        one["environment"] for one in COMPOSE["secrets"].values()
    }
    example = (ROOT / "deploy/compose/.env.example").read_text()
    assert wanted <= set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    assert not re.findall(r"^\w*(?:KEY|PASSWORD)=\S", example, re.MULTILINE)


def test_the_scrape_configuration_names_services_of_compose() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    for job in config["scrape_configs"]:
        for target in job["static_configs"][0]["targets"]:
            assert target.split(":")[0] in SERVICES


def test_the_cron_lines_have_a_user_and_a_command() -> None:
    lines = [line for line in CRON.splitlines() if re.match(r"[*\d]", line)]
    assert [line.split()[7] for line in lines] == ["once", "verify"]
    for line in lines:
        *when, user, program = shlex.split(line)[:7]
        assert (len(when), user, program) == (5, "syncer", "/opt/syncer/bin/syncer")
    assert CRON.endswith("\n")


def test_cron_has_nothing_to_send_while_all_is_well(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    (tmp_path / "syncer.toml").write_text(
        '[source]\ndatabase = "memory.db"\n[embed]\nprovider = "hash"\n'
    )
    environment = dict(re.findall(r"^(SYNCER_\w+)=(.*)$", CRON, re.MULTILINE))
    for command in ("once", "once", "verify"):
        done = run(command, cwd=tmp_path, **environment)
        assert (done.code, done.out, done.err) == (0, "", "")
    (tmp_path / "memory.db").unlink()
    assert "there is no database" in run("once", cwd=tmp_path, **environment).err
