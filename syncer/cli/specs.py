"""What the settings say, as the adapters take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncer.settings import Settings
from syncer.settings.base import CANONICAL_TABLE
from syncer.table import Joined, TableSpec

if TYPE_CHECKING:
    from syncer.embed import EmbedSpec, HttpSpec, SparseSpec
    from syncer.target import TargetSpec


def table_spec(settings: Settings) -> TableSpec:
    """Return what the settings say about the table."""
    source = settings.source
    return TableSpec(
        table=source.table,
        key=source.key,
        content=source.content,
        metadata=source.metadata,
        json=source.json_columns,
        where=source.where,
        deleted=source.deleted,
        expires_at=source.expires_at,
        expiry_is_uniform=source.table == CANONICAL_TABLE,
        joined=tuple(
            Joined(one.name, one.table, one.key, one.value, one.order) for one in source.joined
        ),
    )


def target_spec(settings: Settings) -> TargetSpec:
    """Return what the settings say about Qdrant."""
    from syncer.target import Creation, TargetSpec

    target = settings.target
    return TargetSpec(
        path=target.path,
        url=target.url,
        api_key=target.api_key.get_secret_value() if target.api_key else None,
        grpc=target.grpc,
        timeout=target.timeout,
        batch_points=target.batch_points,
        batch_bytes=target.batch_bytes,
        lock_wait=target.lock_wait,
        grpc_port=target.grpc_port,
        ca=target.ca_file,
        client_cert=target.client_cert_file,
        client_key=target.client_key_file,
        allow_old_server=target.allow_old_server,
        preserve_foreign_payload=target.preserve_foreign_payload,
        creation=Creation(
            shard_number=target.shard_number,
            replication_factor=target.replication_factor,
            write_consistency_factor=target.write_consistency_factor,
            vectors_on_disk=target.vectors_on_disk,
            payload_on_disk=target.payload_on_disk,
            hnsw_m=target.hnsw_m,
            hnsw_ef_construct=target.hnsw_ef_construct,
            quantization=target.quantization,
        ),
    )


def embed_spec(settings: Settings) -> EmbedSpec:
    """Return what the settings say about the model."""
    from syncer.embed import EmbedSpec

    embed = settings.embed
    return EmbedSpec(
        provider=embed.provider,
        model=embed.model,
        model_path=embed.model_path,
        cache_dir=embed.cache_dir,
        threads=embed.threads,
        devices=embed.devices,
        token_budget=embed.token_budget,
        batch_timeout=embed.batch_timeout,
        chunk_tokens=embed.chunk_tokens,
        chunk_overlap=embed.chunk_overlap,
        passage_prefix=embed.passage_prefix or None,
        query_prefix=embed.query_prefix or None,
        dimension=embed.dimension,
        vector=settings.target.vector,
        endpoint=_endpoint(settings),
        tokenizer=embed.tokenizer,
        sparse=_sparse(settings),
    )


def _endpoint(settings: Settings) -> HttpSpec | None:
    from syncer.embed import HttpSpec

    embed = settings.embed
    if embed.url is None:
        return None
    return HttpSpec(
        url=embed.url,
        model=embed.model,
        api_key=embed.api_key.get_secret_value() if embed.api_key else "",
        allow_insecure_key=embed.allow_insecure_key,
        concurrency=embed.concurrency,
        batch_items=embed.batch_items,
        timeout=embed.timeout,
        budget=embed.retry_budget,
    )


def _sparse(settings: Settings) -> SparseSpec | None:
    from syncer.embed import SparseSpec

    sparse = settings.sparse
    return SparseSpec(sparse.language, sparse.k, sparse.b) if sparse.enabled else None
