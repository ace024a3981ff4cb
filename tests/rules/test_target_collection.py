"""Rules about the collection (QT): made, found as it should be, and changed by somebody else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import memory
import on_the_wire as wire
import pytest
from on_the_wire import Wire, point
from qdrant_client import models
from qdrant_http import Server

from syncer.cli.search import search
from syncer.errors import ExitCode, SchemaError, TargetError, TargetUnavailableError
from syncer.target import Catalog, GenerationTarget, TargetSpec, connect

POINTS = "/collections/*/points"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of three rows."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    return tmp_path


def info(server: Server, name: str = "memory") -> models.CollectionInfo:
    """Return what the server says of a collection."""
    with wire.anywhere_else(server.url) as client:
        return client.get_collection(name)


def alter(server: Server, **change: Any) -> None:
    """Change the collection as somebody else does."""
    with wire.anywhere_else(server.url) as client:
        (alias,) = client.get_aliases().aliases
        client.update_collection(alias.collection_name, **change)


@pytest.mark.rule("QT-10")
def test_indexes_that_are_missing_are_made_on_collections_that_are_there_too(
    server: Server, folder: Path
) -> None:
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    wanted = {"_sync.row", "metadata.agent", "metadata.scope"}
    assert set(info(server).payload_schema) == wanted
    with wire.anywhere_else(server.url) as client:
        (alias,) = client.get_aliases().aliases
        client.delete_payload_index(alias.collection_name, "metadata.agent")
        client.create_payload_index(
            alias.collection_name, "metadata.source", models.PayloadSchemaType.TEXT
        )
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new'")
    more = [*settings.target.payload_indexes, "metadata.source"]
    assert wire.once(wire.settings(folder, server.url, **{"target.payload_indexes": more}))[0] == 0
    found = info(server).payload_schema
    assert set(found) == wanted | {"metadata.source"}
    assert found["metadata.source"].data_type == models.PayloadSchemaType.TEXT


@pytest.mark.rule("QT-10")
def test_in_strict_mode_a_run_goes_through_and_a_filter_without_index_names_its_key(
    server: Server, folder: Path
) -> None:
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    strict = models.StrictModeConfig(
        enabled=True, unindexed_filtering_retrieve=False, unindexed_filtering_update=False
    )
    alter(server, strict_mode_config=strict)
    path = folder / "memory.db"
    memory.execute(path, "UPDATE memory_events SET content = 'new' WHERE id = 1")
    memory.execute(path, "DELETE FROM memory_events WHERE id = 2")
    code, told = wire.once(settings)
    assert (code, told.retried) == (ExitCode.OK, [])
    assert wire.documents(settings) == {1: "new", 3: "three"}
    assert search(settings, "new", 5, {"agent": "a"})
    with pytest.raises(SchemaError, match=r"metadata\.source[\s\S]*target\.payload_indexes") as no:
        search(settings, "new", 5, {"source": "x"})
    assert no.value.exit_code == ExitCode.REFUSED


@pytest.mark.rule("QT-10")
def test_strict_mode_s_own_bounds_are_kept_to(server: Server) -> None:
    with wire.fresh(server.url) as target:
        limits = models.StrictModeConfig(enabled=True, upsert_max_batchsize=30, max_query_limit=40)
        target.client.update_collection(target.generation, strict_mode_config=limits)
        sink = GenerationTarget(target.connection, target.generation)
        assert sink.upsert([point(number) for number in range(100)]) == {}
        assert [len(one.ids) for one in target.upserts] == [30, 30, 30, 10]
        assert len(wire.rows(sink)) == 100


@pytest.mark.rule("QT-11")
@pytest.mark.parametrize("form", ["json", "date"])
def test_a_wait_that_the_server_asks_for_is_kept_and_no_row_pays_for_it(
    server: Server, folder: Path, form: str
) -> None:
    settings = wire.settings(folder, server.url)
    with memory.pipeline_for(settings) as (pipeline, _):
        for method, path in (("PUT", POINTS), ("POST", POINTS)):
            server.faults.next("too_many", method=method, path=path, seconds=7, form=form)
            with pytest.raises(TargetUnavailableError) as found:
                memory.sync(pipeline)
            assert 5 <= found.value.retry_after <= 8
        assert memory.sync(pipeline).quarantined.count == 0
    assert wire.documents(settings) == {1: "one", 2: "two", 3: "three"}


@pytest.mark.rule("QT-11")
def test_a_server_that_asks_to_wait_without_saying_for_how_long_is_asked_again(
    server: Server, folder: Path
) -> None:
    server.faults.next("too_many", 2, form="none")
    server.faults.next("error", status=503)
    code, told = wire.once(wire.settings(folder, server.url))
    assert code == ExitCode.OK
    assert len(told.retried) == 3


@pytest.mark.rule("QT-12")
def test_other_vectors_than_described_are_refused_with_both_sides(
    server: Server, folder: Path
) -> None:
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new'")
    for kind, sides in {
        "wrong_dimension": ("hash-8 (9, Cosine)", "hash-8 (8, Cosine)"),
        "missing_vector": ("the vectors none", "hash-8 (8, Cosine)"),
    }.items():
        server.faults.next(kind)
        code, told = wire.once(settings)
        assert code == ExitCode.REFUSED
        assert all(side in str(told.error) for side in sides)
    assert wire.documents(settings)[1] == "one"
    named = wire.settings(folder, server.url, **{"target.vector": "other"})
    code, told = wire.once(named)
    assert code == ExitCode.REFUSED
    assert "other" in str(told.error)
    assert "hash-8" in str(told.error)


@pytest.mark.rule("QT-16")
def test_a_full_disk_ends_the_run_with_the_server_s_words_and_without_trying_again(
    server: Server, folder: Path
) -> None:
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new'")
    server.faults.next("disk_full", 100, path=POINTS)
    code, told = wire.once(settings)
    assert (code, told.retried) == (ExitCode.TARGET, [])
    assert "No space left on device: WAL buffer size exceeds" in str(told.error)
    assert len(server.faults.happened) == 1
    server.faults.clear()
    assert wire.once(settings)[0] == ExitCode.OK
    assert set(wire.documents(settings).values()) == {"new"}


@pytest.mark.rule("QT-16")
def test_a_collection_that_is_red_is_left_alone_and_the_reason_told(target: Wire) -> None:
    def red(
        request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]
    ) -> httpx.Response:
        answer = send(request)
        said = answer.json()
        said["result"] |= {"status": "red", "optimizer_status": {"error": "out of memory"}}
        return httpx.Response(200, json=said)

    target.client.http.client.add_middleware(red)
    with pytest.raises(TargetError, match="is red: out of memory"):
        Catalog(target.connection).describe(target.generation)


@pytest.mark.rule("QT-23")
def test_a_collection_that_another_makes_at_the_same_time_is_taken_as_it_is(
    server: Server,
) -> None:
    made: list[Exception | None] = []

    def make() -> None:
        with connect(TargetSpec(url=server.url)) as connection:
            there.wait()
            try:
                Catalog(connection).create("g", "a", wire.DESCRIPTION, ["_sync.row"])
            except Exception as error:  # noqa: BLE001 - told below, in the test's own thread
                made.append(error)
            else:
                made.append(None)

    for _ in range(3):
        there = threading.Barrier(4)
        threads = [threading.Thread(target=make) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        with wire.anywhere_else(server.url) as client:
            client.delete_collection("g")
    assert made == [None] * 12


@pytest.mark.rule("QT-23")
@pytest.mark.parametrize("kind", ["dropped", "swapped", "emptied"])
@pytest.mark.parametrize("path", ["/collections/*/points", "/collections/*/points/count"])
def test_a_collection_that_goes_in_the_midst_of_a_run_is_an_operator_s_matter(
    server: Server, folder: Path, kind: str, path: str
) -> None:
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new' WHERE id = 1")
    server.faults.next(kind, path=path)
    code, told = wire.once(settings)
    assert (code, told.retried) == (ExitCode.REFUSED, [])
    assert "syncer rebuild" in str(told.error) or "reconcile" in str(told.error)
    code, _ = wire.once(settings, reconcile=kind != "swapped", start_over=kind == "swapped")
    assert code == ExitCode.OK
    assert wire.documents(settings) == {1: "new", 2: "two", 3: "three"}


@pytest.mark.rule("QT-23")
def test_a_collection_of_the_right_size_in_the_other_s_place_is_not_taken_for_it(
    server: Server, folder: Path
) -> None:
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new'")
    server.faults.next("swapped", method="PUT", path=POINTS)
    code, told = wire.once(settings)
    assert code == ExitCode.REFUSED
    assert "does not carry the token" in str(told.error)


@pytest.mark.rule("QT-23")
def test_a_collection_that_is_replaced_while_it_is_made_does_not_keep_a_new_one_from_being_made(
    server: Server, folder: Path
) -> None:
    server.faults.next("error", 1000, path="/collections/aliases")
    impatient = wire.settings(folder, server.url, **{"target.retry_budget": 0})
    assert wire.once(impatient)[0] == ExitCode.TARGET
    server.faults.clear()
    with wire.anywhere_else(server.url) as client:
        (half_made,) = client.get_collections().collections
        client.delete_collection(half_made.name)
        client.create_collection(half_made.name, vectors_config={})
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    assert wire.documents(settings) == {1: "one", 2: "two", 3: "three"}


@pytest.mark.rule("QT-24")
def test_no_setting_of_the_collection_s_is_touched_by_a_run(server: Server, folder: Path) -> None:
    settings = wire.settings(folder, server.url)
    assert wire.once(settings)[0] == ExitCode.OK
    alter(server, optimizers_config=models.OptimizersConfigDiff(indexing_threshold=7))
    before = info(server).config
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'new'")
    server.faults.next("disk_full", path=POINTS)
    assert wire.once(settings)[0] == ExitCode.TARGET
    assert wire.once(settings)[0] == ExitCode.OK
    after = info(server).config
    assert after.model_copy(update={"metadata": None}) == before.model_copy(
        update={"metadata": None}
    )
