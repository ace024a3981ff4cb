"""What every section of the settings shares: units, kinds of values, and strictness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from syncer.settings.checks import (
    absent_if_blank,
    columns,
    path_from_text,
    payload_key,
    some_text,
    tuple_from_list,
)

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
HOUR = 3600  # seconds
DAY = 24 * HOUR

CANONICAL_TABLE = "memory_events"
CANONICAL_DEFAULTS: dict[str, object] = {
    "metadata": ("agent", "scope", "source", "importance", "created_at", "metadata"),
    "expires_at": "expires_at",
    "deleted": "superseded_by IS NOT NULL OR deleted_by IS NOT NULL",
    "updated_at": "updated_at",
}
"""What is known of the table that ``syncer init`` makes, and of no other."""

Text = Annotated[str, AfterValidator(some_text)]
OptionalText = Annotated[Text | None, BeforeValidator(absent_if_blank)]
OptionalInt = Annotated[int | None, BeforeValidator(absent_if_blank)]
FilePath = Annotated[Path, BeforeValidator(path_from_text)]
OptionalPath = Annotated[FilePath | None, BeforeValidator(absent_if_blank)]
Columns = Annotated[tuple[str, ...], BeforeValidator(tuple_from_list), AfterValidator(columns)]
PayloadKey = Annotated[str, AfterValidator(payload_key)]
Prefix = str  # a blank at its end belongs to it, and an empty one is none


class Section(BaseModel):
    """A section: frozen, strict about types, without room for unknown keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )
