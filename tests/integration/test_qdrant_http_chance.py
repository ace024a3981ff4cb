"""Faults that happen by chance, and to which requests they happen at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_http import KINDS, Fault, Faults, Options, Server, anywhere, running


def test_chance_comes_from_the_seed_alone_and_keeps_its_share() -> None:
    def drawn(seed: int) -> list[str | None]:
        faults = Faults(seed)
        faults.by_chance(0.3, *(Fault(kind=kind) for kind in ("slow", "error", "acknowledged")))
        met = [faults.draw("GET", "/") for _ in range(1000)]
        return [one.kind if one else None for one in met]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    slow, error, acknowledged = (drawn(1).count(kind) for kind in ("slow", "error", "acknowledged"))
    assert all(110 < share < 190 for share in (slow, error))
    assert acknowledged == 0  # nothing was written


def test_nothing_happens_once_faults_are_cleared() -> None:
    faults = Faults()
    faults.next("slow")
    faults.by_chance(1.0, Fault(kind="slow"))
    faults.clear()
    assert faults.draw("GET", "/") is None


def test_a_probability_is_each_fault_s_own() -> None:
    faults = Faults(1)
    faults.add(Fault(kind="slow", times=None, probability=0.2))
    met = [faults.draw("GET", "/") for _ in range(1000)]
    assert 150 < sum(one is not None for one in met) < 250


def test_a_fault_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no fault 'slwo'"):
        Faults().next("slwo")


def test_a_server_that_meets_all_faults_by_chance_is_well_afterwards(tmp_path: Path) -> None:
    with running(Options(folder=tmp_path)) as server:
        client = anywhere.client(server.url)
        client.create_collection("a", vectors_config={})
        meet_all(server, client)
        server.faults.clear()
        assert {one.kind for one in server.faults.happened} == set(MET)
        client.create_collection("fresh", vectors_config={})
        client.upsert("fresh", [models.PointStruct(id=1, vector={})])
        assert client.count("fresh").count == 1
        client.close()


MET = [kind for kind in KINDS if kind != "dropped"]  # after which there is nothing left to meet
FAILURES = (UnexpectedResponse, ResponseHandlingException, QdrantException, ValueError)


def meet_all(server: Server, client: QdrantClient) -> None:
    server.faults.reseed(113)
    server.faults.by_chance(0.6, *(Fault(kind=kind, seconds=0.01, target="a") for kind in MET))
    asked: list[Callable[[], object]] = [
        lambda: client.upsert("a", [models.PointStruct(id=1, vector={})]),
        lambda: client.delete("now", [3]),
        lambda: client.scroll("a"),
        lambda: client.get_collection("a"),
        client.get_aliases,
        client.info,
        lambda: client.count("now"),
        lambda: client.update_collection("a", metadata={"x": 1}),
    ]
    for one in asked * 20:
        with contextlib.suppress(*FAILURES):
            one()


@pytest.mark.parametrize(
    ("kind", "method", "path"),
    [
        ("acknowledged", "POST", "/collections/a/points/scroll"),
        ("half_applied", "POST", "/collections/a/points/payload"),
        ("disk_full", "GET", "/collections"),
        ("dropped", "POST", "/collections/aliases"),
        ("missing_vector", "GET", "/collections/a/exists"),
        ("old_version", "GET", "/collections"),
    ],
)
def test_a_fault_does_not_meet_requests_that_it_makes_no_sense_for(
    kind: str, method: str, path: str
) -> None:
    faults = Faults()
    faults.next(kind)
    assert faults.draw(method, path) is None
    assert faults.waiting
