"""The engine and the client's local mode do the same, but for what is listed here.

Each difference is a test below, named after what the server does:

* ids that are negative, too large or no UUID: refused; local mode takes the numbers, and finds
  nothing for the strings
* a refused upsert: applied in part (the engine goes through a batch in no particular order); local
  mode applies nothing
* ``wait=False``: `acknowledged`, and no word of a failure; local mode completes or raises
* IDF: counts points that were deleted or written over until their segment is built anew; local mode
  counts those that are there
* IDF: does not count points whose sparse vector is empty; local mode does
* order_by: needs a range index; local mode sorts by any key
* vectors asked for by a name that there is not: refused; local mode leaves them out
* ``set_payload`` with null on a point whose payload was cleared: the null stays; else it takes the
  key away, as in local mode
* numbers beyond 64 bits in payloads: become floats; local mode keeps them
* a name for both a dense and a sparse vector: refused; local mode takes it
* strict mode and payload indexes: local mode knows neither
* aliases changed in one request, one of them refused: those before it stay changed; local mode
  changes none

Status codes aside: local mode raises ValueError or KeyError where the server answers 4xx. Scores of
local mode are computed with 64-bit numbers from stored 32-bit ones, and differ by some 1e-7; points
with the same score come in any order on both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from qdrant_client import QdrantClient, models
from qdrant_http.both import CLOSE, Both, Do, equal, same


@pytest.mark.parametrize("identifier", [-1, 2**64])
def test_a_number_that_is_no_id_is_refused_by_the_server_alone(both: Both, identifier: int) -> None:
    point = models.PointStruct(id=identifier, vector={})
    assert both.do(lambda c, n: c.upsert(n, [point])) == ("refused", "completed")
    assert both.do(lambda c, n: c.delete(n, [identifier])) == ("refused", "completed")


def test_asking_for_an_id_that_none_can_have_is_refused_by_the_server_alone(both: Both) -> None:
    assert both.do(lambda c, n: c.retrieve(n, ["row-1"])) == ("refused", [])


def test_a_refused_upsert_leaves_points_on_the_server_alone(both: Both) -> None:
    points = [models.PointStruct(id=number, vector={}) for number in range(1, 9)]
    points[3] = models.PointStruct(id=4, vector={"unknown": [1.0]})
    counts = set()
    for _ in range(20):  # now and then the bad one comes first
        assert both.do(lambda c, n: c.upsert(n, points)) == ("refused", "refused")
        counts.add(both.do(lambda c, n: c.count(n)))
    assert max(server for server, _ in counts if isinstance(server, int)) > 0
    assert {local for _, local in counts} == {0}


def test_a_write_that_does_not_wait_hides_its_failure_on_the_server_alone(both: Both) -> None:
    good = [models.PointStruct(id=1, vector={})]
    bad = [models.PointStruct(id=1, vector={"d": [1.0]})]
    assert both.do(lambda c, n: c.upsert(n, good, wait=False)) == ("acknowledged", "completed")
    assert both.do(lambda c, n: c.upsert(n, bad, wait=False)) == ("acknowledged", "refused")


def put_terms(both: Both, *terms: Sequence[int]) -> None:
    points = [
        models.PointStruct(
            id=number,
            vector={"idf": models.SparseVector(indices=list(one), values=[1.0] * len(one))},
        )
        for number, one in enumerate(terms, start=1)
    ]
    both.do(lambda c, n: c.upsert(n, points))


def by_term(term: int) -> Do:
    query = models.SparseVector(indices=[term], values=[1.0])
    return lambda c, n: c.query_points(n, query, using="idf")


def test_idf_of_fresh_points_is_the_same(both: Both) -> None:
    put_terms(both, [1], [1, 2], [1], [3])
    both.do(lambda c, n: c.upsert(n, [models.PointStruct(id=9, vector={})]))
    for term in (1, 2, 3):
        assert same(*both.do(by_term(term)))


def test_idf_counts_points_without_a_single_term_in_local_mode_alone(both: Both) -> None:
    put_terms(both, [1], [2], [])
    server, local = both.do(by_term(1))
    assert server == [[pytest.approx(0.693, abs=CLOSE), "1"]]  # ln((2 - 1 + 0.5) / (1 + 0.5) + 1)
    assert local == [[pytest.approx(0.981, abs=CLOSE), "1"]]  # ln((3 - 1 + 0.5) / (1 + 0.5) + 1)


def test_idf_counts_points_that_are_gone_on_the_server_alone(both: Both) -> None:
    put_terms(both, [1], [1], [1], [2])
    both.do(lambda c, n: c.delete(n, [1, 2]))
    server, local = both.do(by_term(2))
    assert server == [[pytest.approx(1.204, abs=CLOSE), "4"]]  # ln((4 - 1 + 0.5) / (1 + 0.5) + 1)
    assert local == [[pytest.approx(0.693, abs=CLOSE), "4"]]  # ln((2 - 1 + 0.5) / (1 + 0.5) + 1)


def test_an_order_needs_an_index_on_the_server_alone(both: Both) -> None:
    points = [models.PointStruct(id=n, vector={}, payload={"at": -n}) for n in (1, 2)]
    both.do(lambda c, n: c.upsert(n, points))
    ordered: Do = lambda c, n: [one.id for one in c.scroll(n, order_by="at")[0]]  # noqa: E731
    assert both.do(ordered) == ("refused", [2, 1])
    both.do(lambda c, n: c.create_payload_index(n, "at", models.PayloadSchemaType.INTEGER))
    assert both.do(ordered) == ([2, 1], [2, 1])


def test_vectors_of_an_unknown_name_are_refused_by_the_server_alone(both: Both) -> None:
    both.do(lambda c, n: c.upsert(n, [models.PointStruct(id=1, vector={})]))
    found = both.do(lambda c, n: c.retrieve(n, [1], with_vectors=["unknown"]))
    assert found == ("refused", [["1", {}, {}]])


def test_null_takes_a_key_away_but_stays_in_a_cleared_payload_on_the_server(both: Both) -> None:
    full = models.PointStruct(id=1, vector={}, payload={"a": 1, "b": 2, "n": None})
    cleared = models.PointStruct(id=2, vector={}, payload={"a": 1})
    both.do(lambda c, n: c.upsert(n, [full, cleared]))
    both.do(lambda c, n: c.clear_payload(n, [2]))
    both.do(lambda c, n: c.set_payload(n, {"b": None, "c": 3}, [1, 2]))
    of_full = ["1", {"a": 1, "n": None, "c": 3}, {}]
    assert both.points() == (
        [of_full, ["2", {"b": None, "c": 3}, {}]],
        [of_full, ["2", {"c": 3}, {}]],
    )


def test_numbers_beyond_64_bits_become_floats_on_the_server_alone(both: Both) -> None:
    point = models.PointStruct(id=1, vector={}, payload={"most": 2**64 - 1, "more": 2**70})
    both.do(lambda c, n: c.upsert(n, [point]))
    server, local = both.do(lambda c, n: c.retrieve(n, [1]))
    assert local == [["1", {"most": 2**64 - 1, "more": 2**70}, None]]
    assert json.loads(json.dumps(server)) == [
        ["1", {"most": 2**64 - 1, "more": pytest.approx(2.0**70)}, None]
    ]
    assert "e+21" in json.dumps(server)


def test_one_name_for_two_vectors_is_refused_by_the_server_alone(both: Both) -> None:
    def make(client: QdrantClient, name: str) -> object:
        return client.create_collection(
            f"{name}-2",
            vectors_config={"v": models.VectorParams(size=2, distance=models.Distance.DOT)},
            sparse_vectors_config={"v": models.SparseVectorParams()},
        )

    assert both.do(make) == ("refused", True)


def test_strict_mode_holds_on_the_server_alone(both: Both) -> None:
    settings = models.StrictModeConfig(enabled=True, unindexed_filtering_retrieve=False)
    both.do(lambda c, n: c.update_collection(n, strict_mode_config=settings))
    assert both.do(lambda c, n: c.count(n, equal("a", 1))) == ("refused", 0)


def test_alias_changes_before_a_refused_one_stay_on_the_server_alone(both: Both) -> None:
    def change(client: QdrantClient, name: str) -> object:
        made = [(f"{name}-1", name), (f"{name}-2", f"{name}-no")]
        return client.update_collection_aliases(
            [
                models.CreateAliasOperation(
                    create_alias=models.CreateAlias(alias_name=alias, collection_name=to)
                )
                for alias, to in made
            ]
        )

    assert both.do(change) == ("refused", "refused")
    counted = both.do(lambda c, n: len(c.get_collection_aliases(n).aliases))
    assert counted == (1, 0)
