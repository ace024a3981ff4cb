"""Normalising, hashing and JSON: the same characters for hash, vector and payload."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.keys import RawText, canonical_json
from syncer.text import as_json, as_text, digest, is_blank, normalise, parse_json

any_text = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@given(any_text)
def test_normalised_text_can_be_sent_and_stays_as_it_is(text: str) -> None:
    once = normalise(text)
    once.encode()
    assert "\0" not in once
    assert normalise(once) == once


def test_composed_and_decomposed_forms_are_one_text() -> None:
    assert normalise("e\N{COMBINING ACUTE ACCENT}") == "é"


@pytest.mark.rule("SR-10")
def test_a_pair_of_surrogates_is_the_character_it_means_and_a_lone_one_is_replaced() -> None:
    assert normalise("\ud83d\ude00") == "\N{GRINNING FACE}"
    assert normalise("a\ud83db") == "a\ufffdb"


@pytest.mark.rule("SR-11")
def test_text_after_a_nul_is_kept() -> None:
    assert normalise("before\0after") == "before after"


@pytest.mark.rule("SR-12")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("a", "a"),
        (7, "7"),
        (1.5, "1.5"),
        (b"caf\xc3\xa9", "café"),
        (RawText(b"caf\xe9"), "caf\ufffd"),
    ],
)
def test_whatever_sqlite_holds_becomes_text(value: object, text: str | None) -> None:
    assert as_text(value) == text


def test_a_blob_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        as_text(b"\xff\xfe")


@pytest.mark.parametrize("text", [None, "", " ", "\n\t\u3000"])
def test_blank_text_is_nothing_to_embed(text: str | None) -> None:
    assert is_blank(text)


def test_a_digest_is_16_hex_digits_of_sha256() -> None:
    assert digest("") == "e3b0c44298fc1c14"
    assert digest("é") != digest("e")


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), any_text, st.binary(),
        st.binary().map(RawText),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(any_text, inner)),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_every_value_becomes_json_that_survives_the_wire(value: object) -> None:
    converted = as_json(value)
    assert json.loads(canonical_json(converted).encode()) == converted
    assert as_json(converted) == converted


def test_numbers_that_json_readers_disagree_about_become_text_or_null() -> None:
    values = [2**63 - 1, 2**63, float("nan"), float("inf"), 1.5]
    assert as_json(values) == [2**63 - 1, str(2**63), None, None, 1.5]


def test_a_json_column_becomes_an_object_and_broken_json_stays_text() -> None:
    assert parse_json('{"a": [1]}') == {"a": [1]}
    assert parse_json(b"[1]") == [1]
    assert parse_json('{"a": ') == '{"a": '
    assert parse_json("[" * 100_000) == "[" * 100_000
    assert parse_json(5) == 5
