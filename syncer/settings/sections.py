"""The sections of ``syncer.toml`` as frozen models.

The models decide types, bounds and defaults; a field's description is its meaning in the docs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from syncer.settings.checks import (
    absent_if_blank,
    collection_name,
    columns,
    no_uri,
    path_from_text,
    payload_key,
    reaches_loopback,
    secret_from_text,
    some_text,
    tuple_from_list,
    web_address,
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
    where: OptionalText = Field(
        default=None, description="SQL expression; rows for which it does not hold stay out."
    )
    expires_at: OptionalText = Field(
        default=None, description="Column with the time at which a row leaves the index."
    )
    deleted: OptionalText = Field(
        default=None, description="SQL expression; rows for which it holds count as deleted."
    )
    changes: Literal["log"] = Field(default="log", description="How changes are learned of.")
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
        return (value,) if isinstance(value, str) else value

    @field_validator("key")
    @classmethod
    def _key_has_columns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("must name at least one column")
        return value

    @field_validator("changes", mode="before")
    @classmethod
    def _other_modes_come_later(cls, value: object) -> object:
        if value in ("updated_at", "append_only"):
            raise ValueError('comes in a later version; must be "log"')
        return value


class TargetSettings(Section):
    """[target]: the Qdrant collection, and how it is written."""

    collection: Annotated[str, AfterValidator(collection_name)] = Field(
        default="memory", description="Name under which readers find the collection (an alias)."
    )
    path: OptionalPath = Field(
        default=None, description="Folder of the embedded Qdrant; excludes `url`."
    )
    api_key: SecretStr | None = Field(
        default=None, description="Qdrant's API key; better given by variable or `api_key_file`."
    )
    api_key_file: OptionalPath = Field(
        default=None, description="File that holds the API key; excludes `api_key`."
    )
    allow_insecure_key: bool = Field(
        default=False, description="Send the API key over plain HTTP to another machine."
    )
    url: OptionalText = Field(
        default=None, description="Address of a Qdrant server, `http(s)://host:port`."
    )
    grpc: bool = Field(default=False, description="Use gRPC instead of REST.")
    timeout: float = Field(
        default=30.0, ge=0.1, le=HOUR, description="Seconds until a request is given up."
    )
    batch_points: int = Field(default=256, ge=1, le=10_000, description="Points per write.")
    batch_bytes: int = Field(
        default=8 * MIB, ge=64 * KIB, le=31 * MIB, description="Serialised bytes per write."
    )
    document_key: PayloadKey = Field(
        default="document", description="Payload key of a chunk's text."
    )
    metadata_key: PayloadKey = Field(default="metadata", description="Payload key of the metadata.")
    vector: OptionalText = Field(
        default=None, description="Name of the dense vector; by default made from the model's."
    )
    payload_indexes: Columns = Field(
        default=("metadata.agent", "metadata.scope"),
        description="Payload fields to index, besides `_sync.row`.",
    )
    lock_wait: float = Field(
        default=30.0, ge=0, le=HOUR, description="Seconds to wait for another instance's lock."
    )
    check_interval: float = Field(
        default=300.0, ge=0, le=DAY, description="Seconds until an idle run looks at Qdrant again."
    )
    retry_budget: float = Field(
        default=60.0, ge=0, le=HOUR, description="Seconds for which a failed request is repeated."
    )

    @field_validator("api_key", mode="before")
    @classmethod
    def _api_key_fits_a_header(cls, value: object) -> object:
        return secret_from_text(value) if isinstance(value, str) else value

    @field_validator("metadata_key")
    @classmethod
    def _payload_keys_differ(cls, value: str, info: ValidationInfo) -> str:
        if value == info.data.get("document_key", "document"):
            raise ValueError("must not be target.document_key")
        return value

    @field_validator("api_key_file")
    @classmethod
    def _one_api_key(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and info.data.get("api_key"):
            raise ValueError("excludes target.api_key; leave one of them out, or set it to nothing")
        return value

    @field_validator("url")
    @classmethod
    def _url_fits_the_rest(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        web_address(value)
        if info.data.get("path"):
            raise ValueError("excludes target.path; leave one of them out, or set it to nothing")
        has_key = info.data.get("api_key") or info.data.get("api_key_file")
        plain = value.lower().startswith("http:") and not reaches_loopback(value)
        if has_key and plain and not info.data.get("allow_insecure_key", True):
            raise ValueError(
                "would send the API key unencrypted; must be https, or a loopback address,"
                " or target.allow_insecure_key must be true"
            )
        return value


class EmbedSettings(Section):
    """[embed]: the model that the next rebuild uses."""

    provider: Literal["fastembed", "hash"] = Field(
        default="fastembed", description="Who computes vectors; `hash` is for tests and dry runs."
    )
    model: Text = Field(
        default="sentence-transformers/all-MiniLM-L6-v2", description="Name of the model."
    )
    model_path: OptionalPath = Field(
        default=None, description="Folder with the model's files, where no hub is reachable."
    )
    cache_dir: OptionalPath = Field(default=None, description="Folder for downloaded models.")
    threads: OptionalInt = Field(
        default=None, ge=1, le=256, description="Worker threads; by default one per core."
    )
    token_budget: int = Field(
        default=512, ge=64, le=65_536, description="Tokens per inference, padding included."
    )
    max_tokens: OptionalInt = Field(
        default=None, ge=8, le=8192, description="Tokens of a text; by default the model's limit."
    )
    passage_prefix: Prefix = Field(default="", description="Put before every text of a row.")
    query_prefix: Prefix = Field(default="", description="Put before every question.")
    dimension: int = Field(
        default=384, ge=2, le=4096, description="Length of the vectors of the `hash` provider."
    )


class SyncSettings(Section):
    """[sync]: how much is done at a time."""

    window_rows: int = Field(default=500, ge=1, le=100_000, description="Rows per window.")
    window_bytes: int = Field(
        default=4 * MIB, ge=64 * KIB, le=GIB, description="Bytes of text per window."
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
    sync: SyncSettings = SyncSettings()
    log: LogSettings = LogSettings()

    def redacted(self) -> dict[str, dict[str, object]]:
        """Return everything for printing: sections of JSON values, secrets as ``**********``."""
        dumped: dict[str, dict[str, object]] = self.model_dump(mode="json")
        return dumped


SECTIONS: dict[str, type[Section]] = {
    "source": SourceSettings,
    "target": TargetSettings,
    "embed": EmbedSettings,
    "sync": SyncSettings,
    "log": LogSettings,
}

FIELDS = {
    f"{section}.{name}": info
    for section, model in SECTIONS.items()
    for name, info in model.model_fields.items()
}
"""Every setting by its dotted name."""
