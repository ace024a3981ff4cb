"""Status pages for the tests: one with something of everything, and the servers that show them."""

from __future__ import annotations

from syncer.telemetry import Facts, GenerationFacts, Health, Minute, Runs
from syncer.telemetry.metrics import CONTENT_TYPE
from syncer.web import NextRun, Pages, StatusPage

NOW = 1_796_000_000.0
FACTS = Facts(
    lag_rows=12_840,
    lag_seconds=93.0,
    quarantined={"too_large": 3, "refused": 1},
    withheld=0,
    last_verify=NOW - 7200,
    drift={"missing": 0, "stale": 2},
    rebuild_progress=0.437,
    generations=(
        GenerationFacts("memory--20261130t201356-25be", "serving", 1_234_567),
        GenerationFacts("memory--20261130t210000-9f3c", "being filled", 540_000),
    ),
)
MINUTES = tuple(
    None if 20 < place < 26 else Minute(place, place * 2.0, place * 3) for place in range(60)
)
PAGE = StatusPage(
    name="memory",
    version="0.1.0",
    now=NOW,
    runs=Runs(NOW - 9000, last_run=NOW - 2, last_success=NOW - 42),
    health=Health(well=True),
    facts=FACTS,
    minutes=MINUTES,
    next_runs=(NextRun("verify", NOW + 25_200), NextRun("sync", NOW + 8)),
    doing="rebuilding",
)


def pages(page: StatusPage = PAGE, *, ready: bool = True) -> Pages:
    """Return what a server serves that shows `page`."""
    return Pages(
        metrics=lambda: b"up 1\n",
        metrics_type=CONTENT_TYPE,
        health=lambda: page.health,
        ready=lambda: ready,
        status=lambda: page,
    )
