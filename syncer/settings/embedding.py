"""[embed] and [sparse]: how a new collection's vectors are made."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from syncer.settings.base import (
    HOUR,
    Columns,
    OptionalInt,
    OptionalPath,
    OptionalText,
    Prefix,
    Section,
    Text,
)
from syncer.settings.checks import safe_for_keys, secret_from_text, web_address


class EmbedSettings(Section):
    """[embed]: the model that a new collection is made with."""

    provider: Literal["fastembed", "openai", "hash"] = Field(
        default="fastembed",
        validate_default=True,
        description="Who computes vectors: a local model, an HTTP endpoint like OpenAI's, or, for "
        "tests and dry runs, nobody.",
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
    devices: Columns = Field(
        default=(), description="Execution providers of onnxruntime; by default the CPU."
    )
    token_budget: int = Field(
        default=256, ge=64, le=65_536, description="Tokens per inference, padding included."
    )
    batch_timeout: float = Field(
        default=600.0, ge=1, le=HOUR, description="Seconds after which an inference is given up."
    )
    chunk_tokens: OptionalInt = Field(
        default=None,
        ge=8,
        le=8192,
        description="Tokens of a chunk, prefix and special ones counted; by default the model's "
        "limit.",
    )
    chunk_overlap: int = Field(
        default=0, ge=0, le=4096, description="Tokens that a chunk shares with the one before it."
    )
    passage_prefix: Prefix = Field(default="", description="Put before every text of a row.")
    query_prefix: Prefix = Field(default="", description="Put before every question.")
    dimension: OptionalInt = Field(
        default=None,
        ge=2,
        le=4096,
        description="Length of the vectors: of the `hash` provider, 384 by default, or what the "
        "endpoint is asked for.",
    )
    api_key: SecretStr | None = Field(
        default=None, description="The endpoint's key; better by variable or `api_key_file`."
    )
    api_key_file: OptionalPath = Field(
        default=None, description="File that holds the endpoint's key; excludes `api_key`."
    )
    allow_insecure_key: bool = Field(
        default=False, description="Send the endpoint's key over plain HTTP to another machine."
    )
    url: OptionalText = Field(
        default=None,
        validate_default=True,
        description="Base address of the endpoint, for `openai`: `https://host/v1`.",
    )
    concurrency: int = Field(default=4, ge=1, le=256, description="Requests at a time.")
    batch_items: int = Field(default=64, ge=1, le=2048, description="Texts per request.")
    timeout: float = Field(
        default=60.0, ge=0.1, le=HOUR, description="Seconds until a request is given up."
    )
    retry_budget: float = Field(
        default=60.0, ge=0, le=HOUR, description="Seconds to go on trying for, in all."
    )
    tokenizer: OptionalPath = Field(
        default=None,
        description="A local `tokenizer.json` to measure chunks for the endpoint with; without "
        "one they are bounded in bytes.",
    )

    @field_validator("chunk_overlap")
    @classmethod
    def _chunks_advance(cls, value: int, info: ValidationInfo) -> int:
        size = info.data.get("chunk_tokens")
        if size is not None and value >= size:
            raise ValueError("must be smaller than embed.chunk_tokens")
        return value

    @field_validator("api_key", mode="before")
    @classmethod
    def _key_is_one_line(cls, value: object) -> object:
        return secret_from_text(value) if isinstance(value, str) else value

    @field_validator("api_key_file")
    @classmethod
    def _one_key(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and info.data.get("api_key"):
            raise ValueError("excludes embed.api_key; leave one of them out, or set it to nothing")
        return value

    @field_validator("url")
    @classmethod
    def _endpoint_is_an_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            if info.data.get("provider") == "openai":
                raise ValueError('must be set, since embed.provider = "openai"')
            return None
        return safe_for_keys(web_address(value, "embed.api_key_file"), "embed", info.data)


class SparseSettings(Section):
    """[sparse]: the vector beside the dense one, which finds words as they stand there."""

    enabled: bool = Field(default=True, description="Make sparse vectors (BM25) as well.")
    language: Text = Field(
        default="english",
        description="Language of stemmer and stop words; `none` for neither.",
    )
    k: float = Field(
        default=1.2, ge=0, le=100, description="How soon more of the same term counts no more."
    )
    b: float = Field(
        default=0.75, ge=0, le=1, description="How much a chunk's length counts, from not at all."
    )
