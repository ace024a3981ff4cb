"""[target]: the Qdrant collection, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from syncer.settings.base import (
    DAY,
    HOUR,
    KIB,
    MIB,
    Columns,
    OptionalInt,
    OptionalPath,
    OptionalText,
    PayloadKey,
    Section,
)
from syncer.settings.checks import (
    collection_name,
    safe_for_keys,
    secret_from_text,
    web_address,
)


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
    grpc_port: int = Field(default=6334, ge=1, le=65_535, description="The server's gRPC port.")
    ca_file: OptionalPath = Field(
        default=None, description="Certificates (PEM) to trust instead of the machine's own."
    )
    client_cert_file: OptionalPath = Field(
        default=None, description="Certificate (PEM) to show to the server."
    )
    client_key_file: OptionalPath = Field(
        default=None, description="Its private key (PEM), if that is a file of its own."
    )
    allow_old_server: bool = Field(
        default=False, description="Work with a server that says it is older than 1.16."
    )
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
    preserve_foreign_payload: bool = Field(
        default=False,
        description="Leave payload keys alone that somebody else puts into syncer's points.",
    )
    vector: OptionalText = Field(
        default=None, description="Name of the dense vector; by default made from the model's."
    )
    payload_indexes: Columns = Field(
        default=("metadata.agent", "metadata.scope"),
        description="Payload fields to index, besides `_sync.row`.",
    )
    shard_number: OptionalInt = Field(
        default=None, ge=1, le=1024, description="Shards of a new collection."
    )
    replication_factor: OptionalInt = Field(
        default=None, ge=1, le=64, description="Replicas of each shard of a new collection."
    )
    write_consistency_factor: OptionalInt = Field(
        default=None, ge=1, le=64, description="Replicas that must confirm a write."
    )
    vectors_on_disk: bool | None = Field(
        default=None, description="Keep a new collection's dense vectors on disk."
    )
    payload_on_disk: bool | None = Field(
        default=None, description="Keep a new collection's payloads on disk."
    )
    hnsw_m: OptionalInt = Field(
        default=None, ge=0, le=512, description="Links of a point in a new collection's index."
    )
    hnsw_ef_construct: OptionalInt = Field(
        default=None, ge=4, le=8192, description="Neighbours looked at while the index is built."
    )
    quantization: Literal["scalar", "binary"] | None = Field(
        default=None, description="Search a new collection by smaller copies of its vectors."
    )
    keep_generations: int = Field(
        default=1, ge=0, le=100, description="Generations that `gc` leaves for `rollback`."
    )
    keep_old: float = Field(
        default=7 * DAY,
        ge=0,
        le=365 * DAY,
        description="Seconds for which changes are logged for a generation that served before.",
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

    @field_validator("vector")
    @classmethod
    def _vectors_have_names_of_their_own(cls, value: str | None) -> str | None:
        if value == "bm25":
            raise ValueError('must not be "bm25", which is the sparse vector')
        return value

    @field_validator("api_key_file")
    @classmethod
    def _one_api_key(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and info.data.get("api_key"):
            raise ValueError("excludes target.api_key; leave one of them out, or set it to nothing")
        return value

    @field_validator("client_key_file")
    @classmethod
    def _key_belongs_to_a_certificate(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and not info.data.get("client_cert_file"):
            raise ValueError("needs target.client_cert_file")
        return value

    @field_validator("url")
    @classmethod
    def _url_fits_the_rest(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        web_address(value, "target.api_key_file")
        if info.data.get("path"):
            raise ValueError("excludes target.path; leave one of them out, or set it to nothing")
        return safe_for_keys(value, "target", info.data)
