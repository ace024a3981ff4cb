"""Packing: every text once, no batch over the budget, little padding."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from syncer.embed.packing import distinct, pack, shared_budget

LENGTHS = st.lists(st.integers(min_value=0, max_value=600), max_size=200)
BUDGETS = st.integers(min_value=1, max_value=2048)


@given(LENGTHS, BUDGETS)
def test_every_text_is_in_exactly_one_batch(lengths: list[int], budget: int) -> None:
    packed = [index for batch in pack(lengths, budget) for index in batch]
    assert sorted(packed) == list(range(len(lengths)))


@given(LENGTHS, BUDGETS)
def test_a_batch_of_several_texts_never_exceeds_the_budget(lengths: list[int], budget: int) -> None:
    for batch in pack(lengths, budget):
        longest = max(lengths[index] for index in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget


@given(LENGTHS, BUDGETS)
def test_no_text_of_a_batch_is_longer_than_one_of_an_earlier_batch(
    lengths: list[int], budget: int
) -> None:
    packed = [lengths[index] for batch in pack(lengths, budget) for index in batch]
    assert packed == sorted(packed, reverse=True)


def test_a_batch_is_filled_before_the_next_one_begins() -> None:
    assert pack([10, 40, 10, 20, 10], budget=40) == [(1,), (3, 0), (2, 4)]


def test_a_text_longer_than_the_budget_gets_a_batch_of_its_own() -> None:
    assert pack([3, 900, 3], budget=512) == [(1,), (0, 2)]


def test_the_same_lengths_are_always_packed_in_the_same_way() -> None:
    assert pack([7] * 5, budget=14) == [(0, 1), (2, 3), (4,)]


def test_nothing_is_packed_into_no_batches() -> None:
    assert pack([], budget=512) == []


def test_padding_wastes_under_a_twentieth_on_lengths_as_mixed_as_real_text() -> None:
    chance = random.Random(7)  # noqa: S311 - a test's data
    lengths = [min(256, int(chance.lognormvariate(4.2, 0.7)) + 10) for _ in range(400)]
    computed = sum(len(batch) * lengths[batch[0]] for batch in pack(lengths, budget=512))
    assert computed < 1.05 * sum(lengths)


@given(LENGTHS.filter(lambda lengths: sum(lengths) > 0), BUDGETS, st.integers(1, 16))
def test_the_shared_budget_is_never_above_the_budget(
    lengths: list[int], budget: int, workers: int
) -> None:
    assert 1 <= shared_budget(lengths, budget, workers) <= budget


def test_a_few_short_texts_are_shared_out_among_the_workers() -> None:
    lengths = [20] * 8
    budget = shared_budget(lengths, 512, workers=2)
    assert [len(batch) for batch in pack(lengths, budget)] == [4, 4]


@given(st.lists(st.text(max_size=3)))
def test_distinct_texts_and_places_give_the_texts_back(texts: list[str]) -> None:
    unique = distinct(texts)
    assert [unique.texts[place] for place in unique.places] == texts
    assert len(set(unique.texts)) == len(unique.texts)
