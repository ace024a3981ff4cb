"""Strict mode: which requests a collection refuses by its own settings."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

from qdrant_client.http import models

from qdrant_http.answers import bad_request
from qdrant_http.filters import listed

_Type = models.PayloadSchemaType
_Indexes = Mapping[str, models.PayloadIndexInfo]
_Settings = models.StrictModeConfigOutput | None


def check_read(settings: _Settings, indexes: _Indexes, *filters: models.Filter | None) -> None:
    """Raise RefusedError if a filter of a read names a key that has no fitting index."""
    if settings and settings.enabled and settings.unindexed_filtering_retrieve is False:
        _check_indexed(indexes, filters)


def check_write(settings: _Settings, indexes: _Indexes, *filters: models.Filter | None) -> None:
    """Raise RefusedError if a filter of a write names a key that has no fitting index."""
    if settings and settings.enabled and settings.unindexed_filtering_update is False:
        _check_indexed(indexes, filters)


def check_limit(settings: _Settings, limit: int, *, name: str = "limit") -> None:
    """Raise RefusedError if more points are asked for, or sent, than the settings allow."""
    if not settings or not settings.enabled:
        return
    most = settings.max_query_limit if name == "limit" else settings.upsert_max_batchsize
    if most is not None and limit > most:
        raise bad_request(
            f'Limit exceeded {limit} > {most} for "{name}". '
            f'Help: Reduce the "{name}" parameter to or below {most}.'
        )


def _check_indexed(indexes: _Indexes, filters: tuple[models.Filter | None, ...]) -> None:
    for one in filters:
        for key, types in _keys(one, ""):
            index = indexes.get(key)
            if index is None or index.data_type not in types:
                names = ", ".join(found.value for found in types)
                raise bad_request(
                    f'Index required but not found for "{key}" of one of the following types: '
                    f"[{names}]. Help: Create an index for this key or use a different filter."
                )


def _keys(found: models.Filter | None, prefix: str) -> Iterator[tuple[str, list[_Type]]]:
    if found is None:
        return
    conditions = [*listed(found.must), *listed(found.should), *listed(found.must_not)]
    conditions += found.min_should.conditions if found.min_should else []
    for one in conditions:
        if isinstance(one, models.Filter):
            yield from _keys(one, prefix)
        elif isinstance(one, models.NestedCondition):
            yield from _keys(one.nested.filter, f"{prefix}{one.nested.key}[].")
        elif isinstance(one, models.FieldCondition):
            yield prefix + one.key, _types(one)
        elif isinstance(one, models.IsEmptyCondition):
            yield prefix + one.is_empty.key, list(_Type)
        elif isinstance(one, models.IsNullCondition):
            yield prefix + one.is_null.key, list(_Type)


def _types(found: models.FieldCondition) -> list[_Type]:
    if found.range is not None:
        numeric = isinstance(found.range, models.Range)
        return [_Type.INTEGER, _Type.FLOAT] if numeric else [_Type.DATETIME]
    match found.match:
        case models.MatchValue(value=value):
            return _value_types([value])
        case models.MatchAny(any=values) | models.MatchExcept(except_=values):
            return _value_types(values)
        case models.MatchPrefix():
            return [_Type.KEYWORD]
        case None:
            return list(_Type)
        case _:
            return [_Type.TEXT]


def _value_types(values: list[str] | list[int] | list[bool | int | str]) -> list[_Type]:
    if all(isinstance(value, bool) for value in values):
        return [_Type.BOOL]
    if all(isinstance(value, int) for value in values):
        return [_Type.INTEGER]
    return [_Type.KEYWORD, _Type.UUID] if all(map(_is_uuid, values)) else [_Type.KEYWORD]


def _is_uuid(value: object) -> bool:
    try:
        uuid.UUID(str(value))
    except ValueError:
        return False
    return True
