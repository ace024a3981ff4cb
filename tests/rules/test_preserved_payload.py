"""Rule QT-05 where others' payload keys and vectors are preserved, in both modes."""

from __future__ import annotations

import pytest
from preserved import LONG, Place, assert_as_new, opened, own, with_options
from qdrant_client import models

from syncer.guard import Limit
from syncer.result import Drift
from syncer.settings import Settings
from syncer.state import utc_now
from syncer.verify import mend, verify
from syncer.worker import Stop, Terms

TERMS = Terms(utc_now, Stop(), Limit(rows=10**9))

pytestmark = pytest.mark.rule("QT-05")


def test_an_edit_replaces_text_and_vectors_and_leaves_what_others_put_there(place: Place) -> None:
    place.mark(1, 2)
    before = place.points()[1]
    place.execute("UPDATE memory_events SET content = 'another' WHERE id = 1")
    assert place.sync().embedded == 1
    payload, vectors = place.points()[1]
    assert payload["document"] == "another"
    assert vectors["hash-8"] != before[1]["hash-8"]
    assert vectors["bm25"] != before[1]["bm25"]
    assert place.marked() == {"1": [True], "2": [True] * 4, "3": [False]}
    assert_as_new(place)


def test_new_metadata_leave_what_others_put_there(place: Place) -> None:
    place.mark(1, 2)
    place.execute("UPDATE memory_events SET agent = 'b'")
    assert place.sync().payload_only == 3
    assert {payload["metadata"]["agent"] for payload, _ in place.points().values()} == {"b"}
    assert place.marked() == {"1": [True], "2": [True] * 4, "3": [False]}
    assert_as_new(place)


def test_metadata_that_a_row_has_no_more_are_gone_from_its_point(place: Place) -> None:
    place.execute("""UPDATE memory_events SET metadata = '{"a": 1, "b": 2}' WHERE id = 1""")
    place.sync()
    place.execute("""UPDATE memory_events SET metadata = '{"b": 3}' WHERE id = 1""")
    place.sync()
    assert place.points()[1][0]["metadata"]["metadata"] == {"b": 3}


def test_a_row_that_is_opened_keeps_what_others_put_there_and_a_chunk_that_goes_takes_it_along(
    place: Place,
) -> None:
    place.mark(2)
    place.execute(f"UPDATE memory_events SET content = '{LONG[:-15]}' WHERE id = 2")
    place.sync()
    assert place.marked() == {"1": [False], "2": [True, True], "3": [False]}
    place.execute(f"UPDATE memory_events SET content = '{LONG}' WHERE id = 2")
    place.sync()
    assert place.marked() == {"1": [False], "2": [True, True, False, False], "3": [False]}
    assert_as_new(place)


def test_a_row_that_is_deleted_takes_what_others_put_there_along(place: Place) -> None:
    place.mark(1, 2)
    place.execute("DELETE FROM memory_events WHERE id IN (1, 2)")
    place.sync()
    assert place.marked() == {"3": [False]}
    place.execute(
        "INSERT INTO memory_events (id, agent, scope, source, content) "
        "VALUES (4, 'a', 's', 'x', 'one')"
    )
    place.sync()
    assert place.marked() == {"3": [False], "4": [False]}


def test_preserved_keys_are_no_drift_and_repairs_leave_them(place: Place) -> None:
    place.mark(1, 2, 3)
    assert verify(place.pipeline, TERMS).clean
    client = place.connection.client
    broken = {"row": "1", "content": "x", "payload": "x", "text": "x", "chunk": 0, "chunks": 1}
    client.set_payload("memory", {"_sync": broken, "document": "x"}, points=[1])
    client.delete_vectors("memory", ["hash-8"], points=[3])
    (last,) = (one for one, found in place.points().items() if found[0]["_sync"]["chunk"] == 3)
    client.delete("memory", models.PointIdsList(points=[last]))
    _, found, after = mend(place.pipeline, TERMS)
    assert found.counts[Drift.STALE] == found.counts[Drift.NO_VECTOR] == 1
    assert after.clean
    assert place.marked() == {"1": [True], "2": [True, True, True, False], "3": [True]}
    assert_as_new(place)


def test_another_mapping_takes_away_what_were_its_keys_and_nothing_else(
    preserving: Settings,
) -> None:
    with opened(preserving) as place:
        place.sync()
        place.mark(1, 2)
    renamed = with_options(preserving, **{"target.document_key": "page_content"})
    with opened(renamed) as place:
        assert place.sync().payload_only == 3
        assert_keys(place, {"page_content", "metadata"})
        place.execute("UPDATE memory_events SET content = content || '!' WHERE id = 1")
        place.sync()
        assert_keys(place, {"page_content", "metadata"})
    with opened(with_options(renamed, **{"target.metadata_key": "meta"})):
        pass  # it is renamed once more before anything is written
    again = with_options(renamed, **{"target.document_key": "text", "target.metadata_key": "m"})
    with opened(again) as place:
        place.execute("UPDATE memory_events SET content = 'another' WHERE id = 1")
        result = place.sync()
        assert (result.embedded, result.payload_only) == (1, 2)
        assert_keys(place, {"text", "m"})
    with opened(preserving) as place:
        place.sync()
        assert_keys(place, {"document", "metadata"})
        assert_as_new(place)


def assert_keys(place: Place, keys: set[str]) -> None:
    """See that all points have these keys of syncer's, and those of others where they were put."""
    found = own(place.points()).values()
    assert {frozenset(payload) for payload, _ in found} == {frozenset({*keys, "_sync"})}
    assert place.marked() == {"1": [True], "2": [True] * 4, "3": [False]}
