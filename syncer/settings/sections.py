"""The sections of ``syncer.toml`` as frozen models.

The models decide types, bounds and defaults; a field's description is its meaning in the docs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from syncer.settings.base import (
    CANONICAL_DEFAULTS,
    CANONICAL_TABLE,
    DAY,
    GIB,
    HOUR,
    KIB,
    MIB,
    Columns,
    FilePath,
    OptionalPath,
    OptionalText,
    Section,
    Text,
)
from syncer.settings.checks import no_uri, some_columns, tuple_from_list, tuple_from_text
from syncer.settings.daemon import DaemonSettings
from syncer.settings.embedding import EmbedSettings, SparseSettings
from syncer.settings.joined import JoinedSettings, check_entries
from syncer.settings.metrics import MetricsSettings
from syncer.settings.target import TargetSettings


class SourceSettings(Section):
    """[source]: the table, and what of it goes into the index."""

    database: FilePath = Field(description="The SQLite file; relative to the settings file.")
    table: Text = Field(default=CANONICAL_TABLE, description="Table or view to read.")
    key: Columns = Field(default=("id",), description="Key column, or a list of them.")
    content: Text = Field(
        default="content", description="Column or SQL expression whose text is embedded."
    )
    metadata: Columns = Field(
        default=(), description="Columns that go along as metadata; JSON columns become objects."
    )
    json_columns: Columns = Field(
        default=(), description="Metadata columns that hold JSON but are not declared so."
    )
    joined: Annotated[tuple[JoinedSettings, ...], BeforeValidator(tuple_from_list)] = Field(
        default=(), description="Lists out of other tables that go along as metadata, see below."
    )
    where: OptionalText = Field(
        default=None, description="SQL expression; rows for which it does not hold stay out."
    )
    expires_at: OptionalText = Field(
        default=None, description="Column with the time at which a row leaves the index."
    )
    deleted: OptionalText = Field(
        default=None, description="SQL expression; rows for which it holds count as deleted."
    )
    changes: Literal["log", "updated_at", "append_only"] = Field(
        default="log", description="How changes are learned of."
    )
    updated_at: OptionalText = Field(
        default=None,
        validate_default=True,
        description='Column with the time of a row\'s last change, for `changes = "updated_at"`.',
    )
    look_back: float = Field(
        default=120.0,
        ge=0,
        le=7 * DAY,
        description="Seconds for which a changed row is read again.",
    )
    state: OptionalPath = Field(
        default=None, description="File of syncer's own state, where changes are not logged."
    )
    repair_triggers: bool = Field(
        default=True, description="Put triggers back that somebody took away, and compare all rows."
    )
    invalid_utf8: Literal["replace", "quarantine"] = Field(
        default="replace", description="What to do with a text that is not UTF-8."
    )
    max_content_bytes: int = Field(
        default=MIB, ge=KIB, le=GIB, description="Bytes of a row's text; larger rows stay out."
    )
    busy_timeout: float = Field(
        default=60.0, ge=0, le=HOUR, description="Seconds to wait for a locked database, in all."
    )

    @model_validator(mode="before")
    @classmethod
    def _know_the_canonical_table(cls, values: object) -> object:
        if isinstance(values, dict) and values.get("table", CANONICAL_TABLE) == CANONICAL_TABLE:
            return {**CANONICAL_DEFAULTS, **values}
        return values

    @field_validator("database", mode="before")
    @classmethod
    def _database_is_a_file(cls, value: object) -> object:
        return no_uri(value)

    @field_validator("key", mode="before")
    @classmethod
    def _one_column_is_a_key(cls, value: object) -> object:
        return tuple_from_text(value)

    @field_validator("key")
    @classmethod
    def _key_has_columns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return some_columns(value)

    @field_validator("joined")
    @classmethod
    def _joined_lists_fit_the_table(
        cls, value: tuple[JoinedSettings, ...], info: ValidationInfo
    ) -> tuple[JoinedSettings, ...]:
        check_entries(value, info.data.get("key"), info.data.get("metadata", ()))
        return value

    @field_validator("updated_at")
    @classmethod
    def _stamps_need_a_column(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("changes") == "updated_at":
            raise ValueError('must name the change column, since source.changes = "updated_at"')
        return value

    @field_validator("state")
    @classmethod
    def _state_is_not_the_database(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        database = info.data.get("database")
        if value is not None and database and value.resolve() == database.resolve():
            raise ValueError("must not be source.database, which is only read")
        return value


class SyncSettings(Section):
    """[sync]: how much is done at a time."""

    window_rows: int = Field(default=500, ge=1, le=100_000, description="Rows per window.")
    window_bytes: int = Field(
        default=4 * MIB, ge=64 * KIB, le=GIB, description="Bytes of text per window."
    )
    max_deletes: int = Field(
        default=20, ge=0, le=10**9, description="Rows that may go at once, whatever their share."
    )
    max_delete_share: float = Field(
        default=0.2, ge=0, le=1, description="Share of the indexed rows that may go at once."
    )


class LogSettings(Section):
    """[log]: what is said, and in which form."""

    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="`auto` is `console` on a terminal, else `json`."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least important events that are still shown."
    )


class Settings(Section):
    """All that can be set; made by ``load``."""

    source: SourceSettings
    target: TargetSettings = TargetSettings()
    embed: EmbedSettings = EmbedSettings()
    sparse: SparseSettings = SparseSettings()
    sync: SyncSettings = SyncSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    daemon: DaemonSettings = DaemonSettings()

    def redacted(self) -> dict[str, dict[str, object]]:
        """Return everything for printing: sections of JSON values, secrets as ``**********``."""
        dumped: dict[str, dict[str, object]] = self.model_dump(mode="json")
        return dumped


SECTIONS: dict[str, type[Section]] = {
    "source": SourceSettings,
    "target": TargetSettings,
    "embed": EmbedSettings,
    "sparse": SparseSettings,
    "sync": SyncSettings,
    "log": LogSettings,
    "metrics": MetricsSettings,
    "daemon": DaemonSettings,
}

ENTRIES: dict[str, type[Section]] = {"source.joined": JoinedSettings}
"""What an entry is like, of those settings that are lists of tables."""

FIELDS = {
    f"{section}.{name}": info
    for section, model in SECTIONS.items()
    for name, info in model.model_fields.items()
}
"""Every setting by its dotted name."""
