"""What is to be done for a row, given what the target holds."""

from __future__ import annotations

from dataclasses import replace

import memory
import pytest

from syncer.keys import encode_key, point_id
from syncer.model import SYNC_KEY, Chunk, Held, Quarantined, Reason, Row
from syncer.plan import (
    Action,
    Layout,
    Plan,
    RowPlan,
    plan_rows,
)
from syncer.points import chunk_ids, opening, point
from syncer.text import digest

LAYOUT = Layout("t", "v", json_columns=frozenset({"extra"}))
ROW = Row((7,), present=True, content="some words of text", metadata={"agent": "a"})


def plan(row: Row, held: Held | None = None, layout: Layout = LAYOUT) -> Plan:
    """Plan one row, cut every twelve characters."""
    return plan_rows([row], {row.key: held} if held else {}, layout, memory.by_characters)


def only(planned: Plan) -> RowPlan:
    """Return the plan's only row."""
    (row,) = planned.rows
    return row


def held_after(row: Row) -> Held:
    """Return what the target holds once `row` is written."""
    done = only(plan(row))
    return Held(done.row, done.content_hash, done.payload_hash, len(done.chunks))


def test_a_new_row_is_embedded_chunk_by_chunk() -> None:
    found = only(plan(ROW))
    assert found.action is Action.EMBED
    assert [chunk.text for chunk in found.chunks] == ["some words o", "f text"]
    assert found.spread


def test_the_hash_of_a_chunk_is_that_of_what_the_embedder_gets() -> None:
    found = only(plan(ROW, layout=replace(LAYOUT, prefix="passage: ")))
    assert found.chunks[0] == Chunk(0, "some words o", digest("passage: some words o"))


def test_a_row_that_is_in_the_target_already_is_left_alone() -> None:
    found = plan(ROW, held_after(ROW))
    assert only(found).action is Action.UNCHANGED
    assert not found.writes


def test_a_change_of_metadata_alone_embeds_nothing() -> None:
    found = only(plan(replace(ROW, metadata={"agent": "b"}), held_after(ROW)))
    assert found.action is Action.PAYLOAD
    assert len(found.chunks) == 2


def test_another_name_of_a_payload_key_reaches_the_payload() -> None:
    layout = replace(LAYOUT, document_key="text")
    assert only(plan(ROW, held_after(ROW), layout)).action is Action.PAYLOAD


def test_a_row_that_was_being_written_is_done_again() -> None:
    opened = replace(held_after(ROW), content="", payload="")
    assert only(plan(ROW, opened)).action is Action.EMBED


@pytest.mark.rule("SR-13")
@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_row_without_text_has_no_point(content: str | None) -> None:
    blank = replace(ROW, content=content)
    assert only(plan(blank)).action is Action.ABSENT
    assert only(plan(blank)).empty
    assert only(plan(blank, held_after(ROW))).action is Action.DELETE


def test_a_row_that_is_gone_is_deleted_with_all_its_chunks() -> None:
    found = only(plan(Row((7,)), held_after(ROW)))
    assert found.action is Action.DELETE
    assert found.held_chunks == 2
    assert not found.empty
    assert only(plan(Row((7,)))).action is Action.ABSENT


@pytest.mark.rule("SR-16")
@pytest.mark.parametrize("key", [(None,), (1.5,)])
def test_a_key_that_cannot_have_a_point_is_quarantined(key: tuple[float | None]) -> None:
    found = plan(replace(ROW, key=key))
    assert found.rows == ()
    assert found.quarantined[0].reason is Reason.KEY_TYPE


@pytest.mark.rule("SR-12")
def test_a_blob_is_quarantined_and_the_old_points_go() -> None:
    found = plan(replace(ROW, content=b"\xff"), held_after(ROW))
    assert found.quarantined[0].reason is Reason.BLOB_IN_TEXT
    assert only(found).action is Action.DELETE


def test_a_foreign_point_under_the_row_s_id_is_never_touched() -> None:
    for foreign in (Held(None), Held('"7"')):
        found = plan(ROW, foreign)
        assert found.rows == ()
        assert found.quarantined == (
            Quarantined("7", Reason.FOREIGN_POINT, found.quarantined[0].detail),
        )
        assert only(plan(Row((7,)), foreign)).action is Action.ABSENT


@pytest.mark.rule("SE-06")
def test_no_text_of_a_row_is_in_its_quarantine() -> None:
    found = plan(replace(ROW, content=b"secret \xff"), Held(None))
    assert "secret" not in repr(found.quarantined)


def test_a_point_has_what_readers_want_and_book_keeping_apart() -> None:
    row = replace(ROW, metadata={"agent": "a", "extra": '{"tags": ["x"]}'})
    found = only(plan(row))
    made = point(LAYOUT, found, found.chunks[1], [1.0])
    assert made.id == point_id("t", (7,), 1)
    assert made.vectors == {"v": [1.0]}
    assert made.payload == {
        "document": "f text",
        "metadata": {"agent": "a", "extra": {"tags": ["x"]}, "sqlite_id": 7},
        SYNC_KEY: {
            "row": "7",
            "content": digest("some words of text"),
            "payload": found.payload_hash,
            "text": digest("f text"),
            "chunk": 1,
            "chunks": 2,
        },
    }


def test_a_composite_key_is_named_by_its_json() -> None:
    found = only(plan(replace(ROW, key=("a", 1))))
    assert found.metadata["sqlite_id"] == encode_key(("a", 1))


def test_an_opening_remembers_the_larger_number_of_chunks() -> None:
    shrunk = only(plan(replace(ROW, content="short"), held_after(ROW)))
    grown = only(plan(ROW, Held("7", "x", "y", 1)))
    for row in (shrunk, grown):
        record = opening(LAYOUT, row).payload[SYNC_KEY]
        assert isinstance(record, dict)
        assert record["chunks"] == 2
        assert record["content"] == ""
    assert not opening(LAYOUT, grown).vectors


def test_chunk_ids_are_those_of_the_points() -> None:
    found = only(plan(ROW))
    made = [point(LAYOUT, found, chunk).id for chunk in found.chunks]
    assert chunk_ids(LAYOUT, found, 0, 2) == made
