"""Filters as the engine takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import qdrant_edge as edge
from qdrant_client.http import models

from qdrant_http.answers import not_offered
from qdrant_http.bodies import check_ids

Conditions = models.Condition | Sequence[models.Condition] | None


def listed(conditions: Conditions) -> list[models.Condition]:
    """Return one condition, several or none as a list."""
    if conditions is None:
        return []
    return list(conditions) if isinstance(conditions, Sequence) else [conditions]


def to_edge(found: models.Filter | None) -> edge.Filter | None:
    """Return a filter as the engine takes it."""
    return None if found is None else _filter(found)


def _filter(found: models.Filter) -> edge.Filter:
    return edge.Filter(
        must=_conditions(found.must),
        should=_conditions(found.should),
        must_not=_conditions(found.must_not),
        min_should=None if found.min_should is None else _min_should(found.min_should),
    )


def _conditions(conditions: Conditions) -> list[edge.ConditionType] | None:
    if conditions is None:
        return None
    return [_CONDITIONS[type(one)](one) for one in listed(conditions)]


def _min_should(found: models.MinShould) -> edge.MinShould:
    return edge.MinShould(_conditions(found.conditions) or [], found.min_count)


def _field(found: models.FieldCondition) -> edge.FieldCondition:
    if found.geo_bounding_box or found.geo_radius or found.geo_polygon:
        raise not_offered("geo filters")
    count = found.values_count
    return edge.FieldCondition(
        found.key,
        match=None if found.match is None else _MATCHES[type(found.match)](found.match),
        range=_range(found.range),
        values_count=None
        if count is None
        else edge.ValuesCount(lt=count.lt, gt=count.gt, lte=count.lte, gte=count.gte),
        is_empty=found.is_empty,
        is_null=found.is_null,
    )


def _value(found: str | int | bool) -> Any:
    """Return a value so that the engine tells truths from numbers.

    Its binding takes Python's True for the number 1, which matches 1 and not true.
    """
    return np.bool_(found) if isinstance(found, bool) else found


def _has_id(found: models.HasIdCondition) -> edge.HasIdCondition:
    check_ids(found.has_id)
    return edge.HasIdCondition(set(found.has_id))


def _range(found: models.RangeInterface | None) -> edge.RangeType | None:
    if found is None:
        return None
    if isinstance(found, models.Range):
        return edge.RangeFloat(gte=found.gte, gt=found.gt, lte=found.lte, lt=found.lt)
    bounds = {
        name: bound.isoformat()
        for name in ("gte", "gt", "lte", "lt")
        if (bound := getattr(found, name)) is not None
    }
    return edge.RangeDateTime(**bounds)


def _refuse_slice(_: models.SliceCondition) -> edge.ConditionType:
    raise not_offered("slices")


_CONDITIONS: dict[type, Callable[[Any], edge.ConditionType]] = {
    models.FieldCondition: _field,
    models.IsEmptyCondition: lambda one: edge.IsEmptyCondition(one.is_empty.key),
    models.IsNullCondition: lambda one: edge.IsNullCondition(one.is_null.key),
    models.HasIdCondition: _has_id,
    models.HasVectorCondition: lambda one: edge.HasVectorCondition(one.has_vector),
    models.NestedCondition: lambda one: edge.NestedCondition(
        one.nested.key, _filter(one.nested.filter)
    ),
    models.SliceCondition: _refuse_slice,
    models.Filter: _filter,
}
_MATCHES: dict[type, Callable[[Any], edge.MatchType]] = {
    models.MatchValue: lambda one: edge.MatchValue(_value(one.value)),
    models.MatchText: lambda one: edge.MatchText(one.text),
    models.MatchTextAny: lambda one: edge.MatchTextAny(one.text_any),
    models.MatchPhrase: lambda one: edge.MatchPhrase(one.phrase),
    models.MatchPrefix: lambda one: edge.MatchPrefix(one.prefix),
    models.MatchSubstring: lambda one: edge.MatchSubstring(one.substring),
    models.MatchAny: lambda one: edge.MatchAny(one.any),
    models.MatchExcept: lambda one: edge.MatchExcept(one.except_),
}
