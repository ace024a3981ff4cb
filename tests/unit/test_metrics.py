"""What a registry exports: each metric of the docs, no other, and nothing unknown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from syncer.errors import (
    EmbedderUnavailableError,
    IdentityError,
    SourceBusyError,
    SourceError,
    TargetUnavailableError,
)
from syncer.model import Position, Quarantined, Reason
from syncer.result import Sample, SyncResult
from syncer.telemetry import UNKNOWN, Facts
from syncer.telemetry.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
INFO = {
    "version": "1", "python": "3", "sqlite": "3", "changes": "log", "provider": "hash",
    "target": "local",
}  # fmt: skip
FACTS = Facts(
    lag_rows=3,
    lag_seconds=1.5,
    quarantined={"refused": 2, "too_large": 1},
    withheld=4,
    last_success=100.0,
    last_verify=90.0,
    drift={"missing": 1, "foreign": 0},
    rebuild_progress=0.25,
)
RESULT = SyncResult(
    "memory--1",
    Position("memory--1"),
    read=9,
    embedded=4,
    payload_only=1,
    unchanged=2,
    deleted=1,
    empty=1,
    quarantined=Sample.of(
        [Quarantined("5", Reason.REFUSED, "no"), Quarantined("6", Reason.REFUSED)]
    ),
    newly_quarantined=1,
    seconds={"read": 0.5, "embed": 2.0},
)

Values = dict[str, float]


def values(metrics: Metrics) -> Values:
    """Return what is exported, by series as it is written."""
    lines = metrics.exposition().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def made(facts: Callable[[], Facts] = lambda: FACTS, *, of_process: bool = False) -> Metrics:
    return Metrics(facts, INFO, of_process=of_process)


def full() -> Metrics:
    """Return metrics that have seen one of everything."""
    metrics = made(of_process=True)
    metrics.window(RESULT)
    metrics.succeeded(caught_up=True)
    metrics.uncounted = 2
    return metrics


def documented() -> dict[str, tuple[str, str]]:
    """Return labels and type of every metric in the docs."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| (\w+) \|", PAGE, re.MULTILINE)
    return {name: (labels.strip().replace("`", ""), kind) for name, labels, kind in rows}


def exported(metrics: Metrics) -> dict[str, tuple[str, str]]:
    found = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = [label for label in family.samples[0].labels if label != "le"]
        found[name] = (", ".join(labels), family.type)
    return found


def test_every_exported_metric_is_documented_with_its_labels_and_type_and_no_other() -> None:
    found, told = exported(full()), documented()
    assert found.keys() == told.keys()
    for name, (labels, kind) in found.items():
        assert kind == told[name][1]
        assert set(labels.split(", ")) == set(told[name][0].split(", "))


def test_every_value_of_a_label_is_documented() -> None:
    for family in text_string_to_metric_families(full().exposition().decode()):
        if family.name in {"syncer_info", "syncer"}:
            continue
        for sample in family.samples:
            for label, value in sample.labels.items():
                assert label == "le" or f"`{value}`" in PAGE, (family.name, value)


def test_a_window_counts_its_rows_by_what_was_done() -> None:
    metrics = made()
    metrics.window(RESULT)
    metrics.window(SyncResult("memory--1", Position("memory--1"), read=1, unchanged=1))
    found = values(metrics)
    rows = {name: value for name, value in found.items() if name.startswith("syncer_rows_total")}
    assert rows == {
        'syncer_rows_total{op="embedded"}': 4,
        'syncer_rows_total{op="payload_only"}': 1,
        'syncer_rows_total{op="unchanged"}': 3,
        'syncer_rows_total{op="deleted"}': 1,
        'syncer_rows_total{op="empty"}': 1,
        'syncer_rows_total{op="quarantined"}': 1,
    }
    assert found['syncer_windows_total{result="written"}'] == 1
    assert found['syncer_windows_total{result="unchanged"}'] == 1
    assert found['syncer_stage_seconds_count{stage="embed"}'] == 1
    assert found['syncer_stage_seconds_sum{stage="embed"}'] == 2
    assert metrics.rows == 6


def test_a_series_exists_before_anything_has_happened() -> None:
    found = values(made())
    assert found['syncer_rows_total{op="deleted"}'] == 0
    assert found['syncer_errors_total{kind="target"}'] == 0
    assert found['syncer_skipped_ticks_total{why="late"}'] == 0


def test_runs_and_errors_are_counted_by_what_failed() -> None:
    metrics = made()
    metrics.failed(TargetUnavailableError(), now=10)
    metrics.failed(IdentityError(), now=20)
    metrics.failed(ZeroDivisionError(), now=30)
    metrics.retried(SourceBusyError())
    metrics.retried(EmbedderUnavailableError())
    found = values(metrics)
    assert found['syncer_errors_total{kind="target"}'] == 1
    assert found['syncer_errors_total{kind="refused"}'] == 1
    assert found['syncer_errors_total{kind="bug"}'] == 1
    assert found['syncer_windows_total{result="failed"}'] == 1
    assert found['syncer_retries_total{where="source"}'] == 1
    assert found["syncer_consecutive_failures"] == 3
    assert found["syncer_last_run_timestamp_seconds"] == 30
    metrics.succeeded(caught_up=False, now=40)
    found = values(metrics)
    assert found["syncer_consecutive_failures"] == 0
    assert found["syncer_last_success_timestamp_seconds"] == 40


@pytest.mark.rule("OP-04")
def test_what_is_not_known_is_absent_and_not_zero() -> None:
    metrics = made(lambda: UNKNOWN)
    found = values(metrics)
    for name in (
        "syncer_lag_rows", "syncer_lag_seconds", "syncer_quarantined_rows",
        "syncer_withheld_deletes", "syncer_last_success_timestamp_seconds",
        "syncer_last_run_timestamp_seconds", "syncer_last_verify_timestamp_seconds",
        "syncer_rebuild_progress_ratio", "syncer_uncounted_points",
    ):  # fmt: skip
        assert name not in found
    assert not [name for name in found if name.startswith("syncer_drift_points")]
    assert found["syncer_state_readable"] == 1


@pytest.mark.rule("OP-04")
def test_a_state_that_cannot_be_read_takes_its_figures_away_and_nothing_else() -> None:
    def broken() -> Facts:
        raise SourceError("moved away")

    metrics = made(broken)
    metrics.succeeded(caught_up=True, now=5)
    found = values(metrics)
    assert found["syncer_state_readable"] == 0
    assert "syncer_lag_rows" not in found
    assert found["syncer_last_success_timestamp_seconds"] == 5


@pytest.mark.rule("OP-04")
def test_the_lag_is_computed_at_each_scrape_so_that_it_cannot_freeze() -> None:
    ages = iter([1.0, 2.0])
    metrics = made(lambda: Facts(lag_seconds=next(ages)))
    assert [values(metrics)["syncer_lag_seconds"] for _ in range(2)] == [1.0, 2.0]


def test_facts_are_exported_as_they_are() -> None:
    found = values(made())
    assert found["syncer_lag_rows"] == 3
    assert found["syncer_lag_seconds"] == 1.5
    assert found["syncer_quarantined_rows"] == 3
    assert found["syncer_withheld_deletes"] == 4
    assert found['syncer_drift_points{kind="foreign"}'] == 0
    assert found["syncer_rebuild_progress_ratio"] == 0.25
    assert found["syncer_last_success_timestamp_seconds"] == 100  # of the process before


@pytest.mark.rule("OP-01")
def test_a_second_registry_in_the_same_process_works_and_counts_for_itself() -> None:
    first, second = made(of_process=True), made(of_process=True)
    first.window(RESULT)
    assert values(first)['syncer_rows_total{op="embedded"}'] == 4
    assert values(second)['syncer_rows_total{op="embedded"}'] == 0


def test_nothing_is_exported_about_when_a_series_began() -> None:
    assert "_created" not in full().exposition().decode()
