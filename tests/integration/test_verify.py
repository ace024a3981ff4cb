"""Both stores compared: every kind of drift found, named and mended, in local mode and by wire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import comparing
import memory
import pytest
from comparing import CLEAN, DRIFT, LONG, Compared, same
from qdrant_client import models
from qdrant_http import Options, running

from syncer.guard import Limit
from syncer.result import Drift
from syncer.verify import Sampling, verify

LATER = "2031-01-01T00:00:00.000Z"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Qdrant server of the tests' own."""
    with running(Options(folder=tmp_path_factory.mktemp("qdrant") / "storage")) as server:
        yield server.url


@pytest.fixture(params=["local", "wire"])
def here(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> Iterator[Compared]:
    """A memory of ten rows in sync, two of them of four chunks, without a sparse vector."""
    with made(tmp_path, url if request.param == "wire" else None, sparse=False) as found:
        yield found


@pytest.fixture(params=["local", "wire"])
def both(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> Iterator[Compared]:
    """The same with a dense and a sparse vector, which takes half a second to load."""
    with made(tmp_path, url if request.param == "wire" else None, sparse=True) as found:
        yield found


@contextmanager
def made(folder: Path, url: str | None, *, sparse: bool) -> Iterator[Compared]:
    """Make a memory in sync; nothing of it stays on a server."""
    with comparing.compared(folder, url, {"sparse.enabled": sparse}) as found:
        yield found
        if url is not None:
            for one in found.client.get_collections().collections:
                found.client.delete_collection(one.name)


def test_stores_that_are_equal_are_found_equal(here: Compared) -> None:
    result = here.verify()
    assert result.clean
    assert comparing.named(result) == CLEAN
    assert (result.rows, result.points) == (10, 16)
    assert [len(result.pending), len(result.quarantined), len(result.withheld)] == [0, 0, 0]


@pytest.mark.parametrize("kind", DRIFT)
def test_each_kind_of_drift_is_found_named_and_mended(both: Compared, kind: Drift) -> None:
    before = both.points()
    cause, rows = DRIFT[kind]
    cause(both)
    assert both.found() == {kind.value: rows}
    _, first, after = both.mend()
    assert comparing.named(first) == {kind.value: rows}
    if kind is Drift.FOREIGN:
        assert comparing.named(after) == {kind.value: rows}
        assert both.points().keys() > before.keys()
        return
    assert after.clean
    assert same(both.points(), before)


@pytest.mark.rule("CT-02")
def test_all_kinds_at_once_are_found_and_mended_and_a_second_repair_writes_nothing(
    both: Compared,
) -> None:
    before = both.points()
    for kind in (Drift.ORPHAN, Drift.NO_VECTOR, Drift.STALE, Drift.FOREIGN):
        DRIFT[kind][0](both)
    both.client.delete("memory", [1, comparing.chunk(2, 3)])
    comparing.put(both, comparing.chunk(6, 5), "6", 5, 6)
    found = both.found()
    assert found == {
        "missing": {"1"},
        "stale": {"3", "4", "5"},
        "orphan": {"901", "902", "903"},
        "incomplete": {"2", "6"},
        "no_vector": {"7"},
        "foreign": DRIFT[Drift.FOREIGN][1],
    }
    mended, _, after = both.mend()
    assert mended.wrote
    assert comparing.named(after) == {"foreign": DRIFT[Drift.FOREIGN][1]}
    points = both.points()
    assert same({one: points[one] for one in before}, before)
    token = both.pipeline.target.token()
    again, _, _ = both.mend()
    assert not again.wrote
    assert same(both.points(), points)
    assert both.pipeline.target.token() == token


@pytest.mark.rule("QT-15")
def test_equal_counts_with_other_rows_are_found(here: Compared) -> None:
    here.client.delete("memory", [1])
    comparing.put(here, 901, "901", 0, 1)
    assert len(here.points()) == 16
    assert here.found() == {"missing": {"1"}, "orphan": {"901"}}


@pytest.mark.rule("CT-02")
def test_a_position_that_is_wrong_hides_nothing_and_is_left_alone(here: Compared) -> None:
    head = memory.head_of(here.pipeline)
    here.execute("UPDATE memory_events SET content = 'edited' WHERE id = 3")
    here.execute("DELETE FROM memory_events WHERE id = 5")
    here.execute(
        "INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', 'new')"
    )
    assert here.found() == CLEAN
    assert set(here.verify().pending) == {"3", "5", "11"}
    here.poison(change_seq=head + 3)
    position = here.pipeline.state.position()
    assert here.found() == {"stale": {"3"}, "orphan": {"5"}, "missing": {"11"}}
    assert here.mend()[2].clean
    assert here.pipeline.state.position() == position


def test_rows_that_the_walk_has_not_come_to_are_pending(here: Compared) -> None:
    here.client.delete("memory", [1, 9])
    here.poison(walked=0, last_id="5")
    result = here.verify()
    assert comparing.named(result) == {"missing": {"1"}}
    assert set(result.pending) == {"9"}


def test_a_row_that_expired_since_is_pending_and_one_that_expired_before_is_not(
    here: Compared,
) -> None:
    soon = "2030-06-01T00:00:00.000Z"
    here.execute("UPDATE memory_events SET expires_at = ? WHERE id = 1", soon)
    here.sync()
    assert here.found() == CLEAN
    later = replace(here.terms, now=lambda: LATER)
    result = verify(here.pipeline, later)
    assert (comparing.named(result), set(result.pending)) == (CLEAN, {"1"})
    here.poison(expired_to=LATER)
    assert comparing.named(verify(here.pipeline, later)) == {"orphan": {"1"}}


def test_a_quarantined_row_without_a_point_is_listed_apart(here: Compared) -> None:
    here.quietly("UPDATE memory_events SET content = CAST(x'ff00' AS BLOB) WHERE id = 3")
    assert here.found() == {"orphan": {"3"}}
    assert here.mend()[2].clean
    result = here.verify()
    assert (comparing.named(result), set(result.quarantined)) == (CLEAN, {"3"})
    here.quietly("UPDATE memory_events SET content = 'well again' WHERE id = 3")
    result = here.verify()
    assert (comparing.named(result), set(result.quarantined)) == (CLEAN, {"3"})


def test_a_foreign_point_under_a_rows_id_is_found_and_kept(here: Compared) -> None:
    struct = models.PointStruct(id=3, payload={"document": "foreign"}, vector={})
    here.client.upsert("memory", [struct], wait=True)
    result = here.verify()
    assert (comparing.named(result), set(result.quarantined)) == ({"foreign": {"3"}}, {"3"})
    here.mend()
    assert here.points()[3][0] == {"document": "foreign"}


@pytest.mark.rule("CT-19")
def test_too_many_orphans_are_withheld_listed_apart_and_kept(here: Compared) -> None:
    here.limit = Limit(rows=2, share=0.1)
    before = here.points()
    here.quietly("DELETE FROM memory_events WHERE id <= 4")
    here.client.delete("memory", [7])
    comparing.put(here, comparing.chunk(903, 1), "903", 1, 3)  # of no row that is held
    result, first, after = here.mend()
    assert set(first.drift[Drift.ORPHAN]) == {"1", "2", "3", "4", "903"}
    assert (result.withheld, result.embedded) == (4, 1)
    assert comparing.named(after) == CLEAN
    assert set(after.withheld) == {"1", "2", "3", "4"}
    assert same(here.points(), before)


def test_a_chunk_that_no_row_has_counts_for_no_row_that_is_taken_out(here: Compared) -> None:
    here.limit = Limit(rows=0, share=0.0)
    comparing.put(here, comparing.chunk(903, 1), "903", 1, 3)
    result, _, after = here.mend()
    assert (result.deleted, result.withheld) == (1, 0)
    assert after.clean


def test_a_vector_that_is_not_its_texts_is_found_by_a_sample_only(here: Compared) -> None:
    before = here.points()
    name = here.pipeline.layout.vector
    wrong = models.PointVectors(id=comparing.chunk(2, 1), vector={name: [1.0] + [0.0] * 7})
    here.client.update_vectors("memory", [wrong], wait=True)
    assert here.found() == CLEAN
    everything = Sampling(rows=10)
    assert here.found(everything) == {"wrong_vector": {"2"}}
    assert here.verify(everything).sampled == 10
    assert here.mend(everything)[2].clean
    assert same(here.points(), before)


def test_a_sample_is_the_same_for_the_same_seed(here: Compared) -> None:
    name = here.pipeline.layout.vector
    for one in range(1, 11):
        wrong = models.PointVectors(id=one, vector={name: [1.0] + [0.0] * 7})
        here.client.update_vectors("memory", [wrong], wait=True)
    found = [here.found(Sampling(rows=4, seed=seed))["wrong_vector"] for seed in (1, 1, 2, 3)]
    assert {len(each) for each in found} == {4}
    assert found[0] == found[1]
    assert len({frozenset(each) for each in found}) > 1


def test_a_chunk_count_beyond_all_reason_is_an_incomplete_row(here: Compared) -> None:
    here.client.set_payload("memory", {"chunks": 10**9}, [2], key="_sync")
    here.client.set_payload("memory", {"chunks": 0}, [3], key="_sync")
    assert here.found() == {"incomplete": {"2", "3"}}


def test_rows_out_of_scope_or_without_text_are_orphans_while_they_have_points(
    here: Compared,
) -> None:
    here.quietly("UPDATE memory_events SET content = ' ' WHERE id = 1")
    here.quietly("UPDATE memory_events SET deleted_by = 'x' WHERE id = 2")
    assert here.found() == {"orphan": {"1", "2"}}
    assert here.mend()[2].clean


def test_no_text_of_a_row_stands_in_a_result(both: Compared) -> None:
    for kind in (Drift.NO_VECTOR, Drift.INCOMPLETE, Drift.STALE, Drift.ORPHAN, Drift.FOREIGN):
        DRIFT[kind][0](both)
    said = str(both.mend())
    assert "901" in said
    assert LONG not in said
    assert "foreign" in said
    for text in comparing.TEXTS:
        assert f"'{text}'" not in said
