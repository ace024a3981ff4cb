"""Some rows embedded again: whether the vectors that are stored are those of their texts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import mul

from syncer.keys import Key, PointId, point_id
from syncer.model import Held, Vector
from syncer.plan import RowPlan, plan_rows
from syncer.ports import Pipeline
from syncer.result import Drift
from syncer.verify.scratch import Finding
from syncer.worker import Terms

LEAST = 0.999  # cosine of two vectors of one text; other hardware and batches round otherwise
_PAGE = 64  # rows that are embedded at a time


@dataclass(slots=True)
class Reservoir:
    """Keeps some of the keys that it is offered, each with the same chance, in bounded memory."""

    size: int
    seed: int | None = None
    keys: list[Key] = field(default_factory=list)
    _offered: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - no secret hangs on it

    def offer(self, key: Key) -> None:
        """Keep the key, perhaps."""
        if not self.size:
            return
        self._offered += 1
        if len(self.keys) < self.size:
            self.keys.append(key)
        elif (place := self._random.randrange(self._offered)) < self.size:
            self.keys[place] = key


def wrong_vectors(pipeline: Pipeline, terms: Terms, keys: Sequence[Key]) -> Iterator[Finding]:
    """Yield those rows whose stored vectors are not those of their texts.

    Rows that have changed meanwhile, or are not in the target as they are, are passed over.
    """
    for start in range(0, len(keys), _PAGE):
        some = keys[start : start + _PAGE]
        held = _held(pipeline, some)
        plans = _plans(pipeline, terms, some, held)
        wrong = [plan for plan in plans if plan.key in _differing(pipeline, plans, held)]
        again = _held(pipeline, [plan.key for plan in wrong])
        for plan in wrong:
            if again.get(plan.key) == held[plan.key]:
                yield Finding(Drift.WRONG_VECTOR, plan.row)


def _held(pipeline: Pipeline, keys: Sequence[Key]) -> dict[Key, Held]:
    ids = {point_id(pipeline.layout.table, key): key for key in keys}
    return pipeline.retry(pipeline.target.look_up, ids) if ids else {}


def _plans(
    pipeline: Pipeline, terms: Terms, keys: Sequence[Key], held: dict[Key, Held]
) -> list[RowPlan]:
    """Return the rows with their chunks, those whose text is the one that the target holds."""
    found = pipeline.retry(pipeline.source.rows, keys, terms.now())
    plans = plan_rows(found, {}, pipeline.layout, pipeline.chunker).rows
    return [
        plan
        for plan in plans
        if plan.chunks and plan.key in held and held[plan.key].content == plan.content_hash
    ]


def _differing(pipeline: Pipeline, plans: Sequence[RowPlan], held: dict[Key, Held]) -> set[Key]:
    ids = {
        (plan.key, chunk.number): point_id(pipeline.layout.table, plan.key, chunk.number)
        for plan in plans
        for chunk in plan.chunks
    }
    if not ids:
        return set()
    chunks = [chunk for plan in plans for chunk in plan.chunks]
    texts, counts = [chunk.text for chunk in chunks], [chunk.tokens for chunk in chunks]
    embedded = pipeline.retry(pipeline.embedder.embed, texts, counts).vectors
    stored: dict[PointId, Vector] = pipeline.retry(
        pipeline.target.vectors, pipeline.layout.vector, list(ids.values())
    )
    wrong = {plan.key for plan in plans if held[plan.key].chunks != len(plan.chunks)}
    for ((key, _), identifier), vector in zip(ids.items(), embedded, strict=True):
        if not len(vector):  # the embedder does not take the text, so nothing can be said
            continue
        if identifier not in stored or cosine(vector, stored[identifier]) < LEAST:
            wrong.add(key)
    return wrong


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of the angle between two vectors; 0 if one has no length."""
    if len(one) != len(other):
        return 0.0
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
