"""What row a foreign point becomes, and which cannot become one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from syncer.foreign import Foreign, Form, Memory, Unfit, is_foreign, memory_of

NOW = "2026-05-01T00:00:00.000Z"
FORM = Form("memory", NOW, max_content_bytes=40, max_payload_bytes=400)


def made(payload: Mapping[str, Any], form: Form = FORM) -> Memory:
    found = memory_of(Foreign(7, payload), form)
    assert isinstance(found, Memory), found
    return found


def why_not(payload: Mapping[str, Any]) -> str:
    found = memory_of(Foreign(7, payload), FORM)
    assert isinstance(found, Unfit)
    return found.why


@pytest.mark.parametrize(
    ("payload", "foreign"),
    [
        ({}, True),
        ({"_sync": "x"}, True),
        ({"_sync": {"row": 12}}, True),
        ({"_sync": {"row": "no key"}}, True),
        ({"_sync": {"row": "[1, 2]"}}, True),  # never written with a blank
        ({"_sync": {"row": "{}"}}, True),
        ({"_sync": {"row": "12"}}, False),
        ({"_sync": {"row": '"a"'}}, False),
        ({"_sync": {"row": '["a",1]'}}, False),
    ],
)
def test_a_point_is_syncers_own_only_by_a_key_that_syncer_would_write(
    payload: Mapping[str, Any], foreign: bool
) -> None:
    assert is_foreign(payload) is foreign


def test_metadata_fill_the_columns_they_fit_and_the_rest_is_kept_as_metadata() -> None:
    said = {
        "agent": "planner",
        "scope": "syncer",
        "source": 5,
        "importance": 0.75,
        "created_at": "2026-01-02T03:04:05+02:00",
        "expires_at": "2030-01-02",
        "colour": "red",
    }
    found = made({"document": "text", "metadata": said}, Form("memory", NOW))
    assert found.columns == {
        "agent": "planner",
        "scope": "syncer",
        "source": "recovered",
        "importance": 0.75,
        "created_at": "2026-01-02T01:04:05.000Z",
        "expires_at": "2030-01-02T00:00:00.000Z",
    }
    assert json.loads(found.metadata) == {
        "colour": "red",
        "source": 5,
        "recovered": {"point": 7, "collection": "memory"},
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agent", ""),
        ("scope", ["a"]),
        ("importance", 2),
        ("importance", True),
        ("created_at", "yesterday"),
        ("created_at", 1767225600),
        ("created_at", "0001-01-01T00:00:00+14:00"),
        ("expires_at", "2020-01-01"),
    ],
)
def test_what_does_not_fit_its_column_stays_in_the_metadata(name: str, value: object) -> None:
    found = made({"document": "text", "metadata": {name: value}})
    assert found.columns.get(name) in {None, "recovered"}
    assert json.loads(found.metadata)[name] == value


def test_nothing_of_a_payload_is_lost() -> None:
    payload = {
        "document": "text",
        "metadata": {"metadata": {"inner": 1}, "recovered": "theirs", "outer": 2},
        "_sync": {"row": 3},
        "other": [1, 2],
    }
    assert json.loads(made(payload).metadata) == {
        "inner": 1,
        "outer": 2,
        "recovered": {
            "point": 7,
            "collection": "memory",
            "before": "theirs",
            "payload": {"_sync": {"row": 3}, "other": [1, 2]},
        },
    }


def test_inner_metadata_that_would_hide_others_stay_where_they_are() -> None:
    found = made({"document": "text", "metadata": {"metadata": {"k": 1}, "k": 2}})
    kept = json.loads(found.metadata)
    assert (kept["metadata"], kept["k"]) == ({"k": 1}, 2)


def test_metadata_that_are_no_object_are_kept_with_the_rest_of_the_payload() -> None:
    found = made({"document": "text", "metadata": "just words"})
    assert json.loads(found.metadata)["recovered"]["payload"] == {"metadata": "just words"}


def test_the_collections_own_key_comes_before_the_one_of_mcp_server_qdrant() -> None:
    form = Form("memory", NOW, document_key="body")
    assert made({"body": "ours", "document": "theirs"}, form).content == "ours"
    assert made({"body": " ", "document": "theirs"}, form).content == "theirs"


@pytest.mark.parametrize("text", [None, "", " \n", "\0", 5, ["text"]])
def test_a_point_without_text_cannot_become_a_row(text: object) -> None:
    assert why_not({"document": text, "metadata": {"k": 1}}) == "it has no text"


def test_what_cannot_be_stored_cannot_become_a_row() -> None:
    assert "41 bytes" in why_not({"document": "x" * 41})
    assert "half of target.batch_bytes" in why_not({"document": "x", "metadata": {"k": "y" * 500}})
    for value in (float("nan"), object(), "\ud800"):
        assert "no JSON" in why_not({"document": "x", "metadata": {"k": value}})


def test_the_same_payload_in_another_order_has_the_same_hash() -> None:
    one, other = Foreign(1, {"a": 1, "b": 2}), Foreign(2, {"b": 2, "a": 1})
    assert one.hash == other.hash != Foreign(1, {"a": 1, "b": 3}).hash
