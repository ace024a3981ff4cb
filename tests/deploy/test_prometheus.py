"""Prometheus's own tool takes what we ship, and what we ship asks only for what is exported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaged_tools import ran
from prometheus_client.parser import text_string_to_metric_families

from syncer.model import Position
from syncer.result import SyncResult
from syncer.telemetry import Facts
from syncer.telemetry.metrics import DRIFT, STAGES, Metrics

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/syncer.json").read_text())
ALERTS = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"][0]["rules"]
OURS = re.compile(r"\b((?:syncer|process)_\w+)\s*(?:\{([^}]*)\})?")
OF_THE_SCRAPE = {"job", "instance"}


def exposition() -> str:
    """Return what a registry exports that has seen one of everything."""
    facts = Facts(
        lag_rows=1,
        lag_seconds=1.0,
        quarantined={"refused": 1},
        withheld=1,
        last_success=1.0,
        last_verify=1.0,
        drift=dict.fromkeys(DRIFT, 1),
        rebuild_progress=0.5,
    )
    metrics = Metrics(lambda: facts, {"version": "1"})
    metrics.window(SyncResult("g", Position("g"), read=1, seconds=dict.fromkeys(STAGES, 0.1)))
    metrics.succeeded(caught_up=True)
    metrics.uncounted = 1
    return metrics.exposition().decode()


def exported() -> dict[str, set[str]]:
    """Return the labels of each series that there is, by its name."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(exposition()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def queries() -> Iterator[tuple[str, str]]:
    """Yield every query of the dashboard and of the alerts, with where it stands."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"].replace("$__rate_interval", "5m")
    for rule in ALERTS:
        yield f"alert {rule['alert']}", rule["expr"]


def test_the_tool_takes_the_configuration_and_the_rules(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a key")
    text = (PROMETHEUS / "prometheus.yml").read_text()
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/run/secrets/qdrant_read_only_key", str(tmp_path / "key")))
    (tmp_path / "alerts.yml").write_text((PROMETHEUS / "alerts.yml").read_text())
    checked = ran("promtool", "check", "config", config)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"SUCCESS: {len(ALERTS)} rules found" in checked.stdout


def test_each_alert_fires_when_it_should_and_is_quiet_before() -> None:
    tested = ran("promtool", "test", "rules", "alerts_test.yml", cwd=PROMETHEUS)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    cases = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    for case in cases:
        quiet, firing = case["alert_rule_test"]
        assert quiet["alertname"] == firing["alertname"] == case["name"]
        assert "exp_alerts" not in quiet
        assert firing["exp_alerts"]
    assert [case["name"] for case in cases] == [rule["alert"] for rule in ALERTS]


def test_the_tool_finds_nothing_wrong_with_what_is_exported() -> None:
    checked = ran("promtool", "check", "metrics", given=exposition())
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.parametrize(("where", "query"), list(queries()))
def test_a_query_asks_for_metrics_and_labels_that_are_exported(where: str, query: str) -> None:
    series = exported()
    names = OURS.findall(query)
    assert names or "up{" in query, where
    known = set(OF_THE_SCRAPE)
    for name, selector in names:
        assert name in series, (where, name)
        known |= series[name]
        labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))
        assert labels <= series[name] | OF_THE_SCRAPE, (where, name)
    for listed in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", query):
        assert {label.strip() for label in listed.split(",")} <= known, where


def test_the_tool_takes_every_query_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"a:b{number}", "expr": query.replace("$job", "j").replace("$instance", "i")}
        for number, (_, query) in enumerate(queries())
    ]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    checked = ran("promtool", "check", "rules", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_legends_and_variables_of_the_dashboard_are_labels_that_are_exported() -> None:
    every = set().union(*exported().values()) | OF_THE_SCRAPE
    legends = {
        target["legendFormat"] for panel in DASHBOARD["panels"] for target in panel["targets"]
    }
    assert {name for one in legends for name in re.findall(r"{{(\w+)}}", one)} <= every
    for variable in DASHBOARD["templating"]["list"][1:]:
        metric, label = re.fullmatch(
            r"label_values\((\w+)(?:{.*})?, (\w+)\)", variable["query"]["query"]
        ).groups()  # type: ignore[union-attr]
        assert metric in exported()
        assert label in OF_THE_SCRAPE


def test_every_panel_has_a_place_of_its_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(identifiers)) == len(identifiers)


def test_each_alert_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    documented = re.findall(r"^\| `(Syncer\w+)` \|", page, re.MULTILINE)
    assert documented == [rule["alert"] for rule in ALERTS]
