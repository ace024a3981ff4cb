"""The engine and the client's local mode do the same over schedules of operations.

Where they differ stands in test_qdrant_http_local.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence

import pytest
from qdrant_client import models
from qdrant_http.both import ALL, Both, Do, equal, same

IDS: list[int | str] = [*range(1, 13), *(str(uuid.UUID(int=7919 * one)) for one in range(1, 6))]
KEYS = ["a", "b", "t.x", "l", "n"]
Choice = random.Random


def payload(choice: Choice) -> dict[str, object]:
    given: dict[str, Sequence[object]] = {
        "a": ["x", "y", "z"],
        "b": [1, 2, 3, 2.5, True, None],
        "t": [{"x": 1}, {"x": 2, "y": "q"}, {}, "plain"],
        "l": [[], ["x", "y"], [1, 2], [{"k": 1}, {"k": 2, "v": "w"}]],
        "n": [None],
    }
    return {key: choice.choice(values) for key, values in given.items() if choice.random() < 0.6}


def dense(choice: Choice) -> list[float]:
    return [choice.uniform(-1, 1) for _ in range(3)]


def sparse(choice: Choice) -> models.SparseVector:
    indices = choice.sample(range(8), choice.randint(1, 4))
    return models.SparseVector(indices=indices, values=[choice.uniform(0.1, 1) for _ in indices])


def vectors(choice: Choice) -> dict[str, models.Vector]:
    every: dict[str, models.Vector] = {"d": dense(choice), "s": sparse(choice)}
    return {name: vector for name, vector in every.items() if choice.random() < 0.85}


VALUES: list[str | int | bool] = ["x", 1, True, "q", 2]
SETS: list[list[str] | list[int]] = [["x", "y"], [1, 2], [1]]


def condition(choice: Choice) -> models.Condition:
    key, value, values = choice.choice(KEYS), choice.choice(VALUES), choice.choice(SETS)
    found: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value)),
        models.FieldCondition(key=key, match=models.MatchAny(any=values)),
        models.FieldCondition(key=key, match=models.MatchExcept(**{"except": values})),
        models.FieldCondition(key=key, range=models.Range(gte=1, lt=choice.choice([3, None]))),
        models.FieldCondition(key=key, values_count=models.ValuesCount(gte=1)),
        models.IsEmptyCondition(is_empty=models.PayloadField(key=key)),
        models.IsNullCondition(is_null=models.PayloadField(key=key)),
        models.HasIdCondition(has_id=list(choice.sample(IDS, 3))),
        models.HasVectorCondition(has_vector=choice.choice(["d", "s"])),
        models.NestedCondition(nested=models.Nested(key="l", filter=equal("k", 2))),
    ]
    return choice.choice(found)


def some_filter(choice: Choice) -> models.Filter:
    def several(*numbers: int) -> list[models.Condition] | None:
        return [condition(choice) for _ in range(choice.choice(numbers))] or None

    return models.Filter(must=several(0, 1, 2), should=several(0, 0, 1, 2), must_not=several(0, 1))


def a_write(choice: Choice, present: Sequence[int | str]) -> Do:
    """Return a write; payloads and vectors are set only of points that are there."""
    ids = choice.sample(IDS, choice.randint(1, 4))
    points = [
        models.PointStruct(id=one, vector=vectors(choice), payload=payload(choice)) for one in ids
    ]
    chosen, keys, given = some_filter(choice), choice.sample(KEYS, 2), payload(choice)
    # Nulls have a test of their own.
    given = {key: value for key, value in given.items() if value is not None}
    writes: list[Do] = [
        *[lambda c, n: c.upsert(n, points)] * 4,
        lambda c, n: c.upsert(n, points, update_filter=chosen),
        lambda c, n: c.delete(n, list(ids)),
        lambda c, n: c.set_payload(n, given, chosen),
        lambda c, n: c.overwrite_payload(n, given, chosen),
        lambda c, n: c.delete_payload(n, keys, chosen),
    ]
    if choice.random() < 0.3:
        writes.append(lambda c, n: c.delete(n, models.FilterSelector(filter=chosen)))
    if present:
        there: list[models.ExtendedPointId] = [*choice.sample(list(present), min(len(present), 3))]
        moved = [models.PointVectors(id=one, vector={"d": dense(choice)}) for one in there]
        writes += [
            lambda c, n: c.set_payload(n, given, there),
            lambda c, n: c.set_payload(n, {"z": 1}, there, key="t"),
            lambda c, n: c.overwrite_payload(n, given, there),
            lambda c, n: c.delete_payload(n, keys, there),
            lambda c, n: c.clear_payload(n, there),
            lambda c, n: c.update_vectors(n, moved),
            lambda c, n: c.delete_vectors(n, ["d"], there),
        ]
    return choice.choice(writes)


def reads(choice: Choice) -> list[Do]:
    wanted, near, thin = some_filter(choice), dense(choice), sparse(choice)
    ids, start = choice.sample(IDS, 3), choice.choice(IDS)
    prefetch = [
        models.Prefetch(query=near, using="d", limit=ALL, filter=wanted),
        models.Prefetch(query=thin, using="s", limit=ALL),
    ]
    rrf = models.FusionQuery(fusion=models.Fusion.RRF)
    return [
        lambda c, n: c.count(n, wanted),
        lambda c, n: c.scroll(n, scroll_filter=wanted, limit=ALL),
        lambda c, n: c.scroll(n, limit=3, offset=start),
        lambda c, n: sorted(
            c.retrieve(n, ids, with_payload=["a", "t.x"]), key=lambda one: str(one.id)
        ),
        lambda c, n: c.query_points(n, near, using="d", query_filter=wanted, limit=ALL),
        lambda c, n: c.query_points(n, near, using="d", score_threshold=0.2, limit=ALL),
        lambda c, n: c.query_points(n, thin, using="s", query_filter=wanted, limit=ALL),
        lambda c, n: c.query_points(n, rrf, prefetch=prefetch, limit=ALL),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_both_do_the_same_over_a_schedule_of_operations(both: Both, seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - no secret
    for step in range(50):
        present = [one.id for one in both.local.scroll(both.name, limit=ALL)[0]]
        write = a_write(choice, [one for one in present if isinstance(one, int | str)])
        for do in (write, lambda c, n: c.scroll(n, limit=ALL, with_vectors=True)):
            server, local = both.do(do)
            assert same(server, local), (step, server, local)
        for place_of, do in enumerate(reads(choice)):
            server, local = both.do(do)
            assert same(server, local), (step, place_of, server, local)
