"""Whatever the server and the network do, in the end both stores are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from qdrant_http import KINDS, Options, running
from soak import faulty

SEED = 20_260_101


def soak(folder: Path, seconds: float, changes: int, *, grpc: bool = False) -> None:
    """Change and sync, under faults, until both so many seconds and changes are over."""
    with running(Options(folder=folder / "storage"), grpc=grpc) as server:
        run = faulty.begun(folder, server, SEED)
        timed = faulty.for_seconds(seconds)
        faulty.go_on(run, lambda done: timed(done) and done >= changes)
        met = {one.kind for one in server.faults.happened}
        print(  # noqa: T201 - what a soak has to tell
            f"{run.changes} changes, {len(server.faults.happened)} faults of {len(met)} kinds, "
            f"runs by exit code: {dict(run.codes)}"
        )
        assert run.differences() == []
        assert run.quarantined() == []
        assert run.changes >= changes
        assert len(server.faults.happened) > 20
        assert ("Points.Upsert" in server.rpc.names()) if grpc else server.connections.made
        if changes:
            assert met == set(KINDS)


def test_under_random_faults_both_stores_end_the_same(tmp_path: Path) -> None:
    soak(tmp_path, seconds=45, changes=0)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_under_random_faults_for_twenty_minutes_both_stores_end_the_same(tmp_path: Path) -> None:
    soak(tmp_path, seconds=20 * 60, changes=20_000)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_under_random_faults_over_grpc_both_stores_end_the_same(tmp_path: Path) -> None:
    soak(tmp_path, seconds=5 * 60, changes=0, grpc=True)
