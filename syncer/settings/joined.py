"""[[source.joined]]: lists out of other tables that go along as metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from syncer.settings.base import OptionalText, Section, Text
from syncer.settings.checks import (
    EntriesError,
    columns,
    joined_name,
    some_columns,
    tuple_from_list,
    tuple_from_text,
    value_or_columns,
)

Value = Annotated[
    str | tuple[str, ...], BeforeValidator(tuple_from_list), AfterValidator(value_or_columns)
]


class JoinedSettings(Section):
    """[[source.joined]]: a list of values that another table has for each row."""

    name: Annotated[str, AfterValidator(joined_name)] = Field(
        description="Key in the metadata that gets the list."
    )
    table: Text = Field(description="Table, or in the read-only modes a view, with the values.")
    key: Annotated[
        tuple[str, ...],
        BeforeValidator(tuple_from_text),
        BeforeValidator(tuple_from_list),
        AfterValidator(columns),
        AfterValidator(some_columns),
    ] = Field(description="Its column that holds a row's `source.key`, or a list of them.")
    value: Value = Field(
        description="Column or SQL expression, or a list of columns for a list of objects."
    )
    order: OptionalText = Field(
        default=None, description="SQL to order the list by; by default it goes by the values."
    )


def check_entries(
    entries: Sequence[JoinedSettings], key: Sequence[str] | None, metadata: Sequence[str]
) -> None:
    """Raise EntriesError for what does not fit the other settings of the section.

    `key` is None if it is wrong itself.
    """
    found = []
    taken = {name.lower(): "a column in source.metadata" for name in metadata}
    for number, entry in enumerate(entries):
        if key is not None and len(entry.key) != len(key):
            what = f"must name as many columns as source.key, which has {len(key)}"
            found.append((number, "key", what))
        if owner := taken.get(entry.name.lower()):
            found.append((number, "name", f"must not be the name of {owner}"))
        taken[entry.name.lower()] = f"source.joined[{number}]"
    if found:
        raise EntriesError(found)
