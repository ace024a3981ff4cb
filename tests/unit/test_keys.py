"""Keys as text and as point ids; what is asserted here can never change again."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.keys import (
    MAX_INTEGER_ID,
    Key,
    RawText,
    canonical_json,
    decode_key,
    encode_key,
    is_indexable,
    point_id,
)

parts = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.text(),
    st.binary(),
    st.floats(allow_nan=False),
    st.binary().map(RawText),
    st.none(),
)
keys = st.lists(parts, min_size=1, max_size=3).map(tuple)


@given(keys)
def test_a_key_comes_back_from_its_text_with_its_types(key: Key) -> None:
    found = decode_key(encode_key(key))
    assert found == key
    assert [type(part) for part in found] == [type(part) for part in key]


@given(keys, keys)
def test_two_keys_never_share_a_text(left: Key, right: Key) -> None:
    same = left == right and [type(p) for p in left] == [type(p) for p in right]
    signs = [str(p) for p in left] == [str(p) for p in right]  # 0.0 == -0.0
    assert (encode_key(left) == encode_key(right)) == (same and signs)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ((42,), "42"),
        (("42",), '"42"'),
        (("é",), '"é"'),
        ((b"\x00\xff",), '{"blob":"AP8="}'),
        ((RawText(b"\xff"),), '{"text":"/w=="}'),
        ((1.5,), "1.5"),
        ((None,), "null"),
        (("a", 1), '["a",1]'),
    ],
)
def test_the_text_of_a_key_is_final(key: Key, text: str) -> None:
    assert encode_key(key) == text


@pytest.mark.parametrize(
    ("key", "chunk", "identifier"),
    [
        ((0,), 0, 0),
        ((42,), 0, 42),
        ((MAX_INTEGER_ID,), 0, MAX_INTEGER_ID),
        ((42,), 1, "1261cf91-cbbd-5fd4-8a4f-5665b791007e"),
        ((-1,), 0, "6a7f75b2-5afe-51b8-b4b4-da7ae14a678d"),
        (("42",), 0, "f5c4d6dd-8391-540f-8a8e-b61cd2f01bb5"),
        (("a", 1), 0, "39469046-5269-5d86-b28f-8d932087398f"),
    ],
)
def test_the_ids_of_a_row_are_final(key: Key, chunk: int, identifier: int | str) -> None:
    assert point_id("memory_events", key, chunk) == identifier


@given(keys, st.integers(0, 50))
def test_an_id_is_what_the_server_accepts(key: Key, chunk: int) -> None:
    identifier = point_id("t", key, chunk)
    if isinstance(identifier, int):
        assert 0 <= identifier < 2**64
    else:
        assert str(UUID(identifier)) == identifier


def test_tables_types_and_chunks_have_ids_of_their_own() -> None:
    ids = [
        point_id("t", (42,), 1),
        point_id("u", (42,), 1),
        point_id("t", (42,), 2),
        point_id("t", ("42",), 0),
        point_id("t", (b"42",), 0),
        point_id("t", (RawText(b"42"),), 0),
        point_id("t", ("4", "2"), 0),
    ]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("key", [(None,), (1.5,), (1, None), ("a", 2.0)])
def test_null_and_real_keys_cannot_have_points(key: Key) -> None:
    assert not is_indexable(key)


@pytest.mark.parametrize("key", [(1,), ("a",), (b"",), (1, "a"), (RawText(b"\xff"),)])
def test_other_keys_can(key: Key) -> None:
    assert is_indexable(key)


def test_json_is_the_same_whatever_the_order_of_its_keys() -> None:
    assert canonical_json({"b": 1, "a": [1, {"d": None, "c": "é"}]}) == (
        '{"a":[1,{"c":"é","d":null}],"b":1}'
    )
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))
