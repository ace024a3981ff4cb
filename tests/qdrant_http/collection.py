"""One collection: the engine's shard, and beside it what the engine does not keep."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

import qdrant_edge as edge
from pydantic import BaseModel
from qdrant_client.http import models

from qdrant_http import engine
from qdrant_http.answers import RefusedError, wrong_input

T = TypeVar("T")
FILE = "collection.json"  # written last, so that a folder with it is a whole collection
_FLUSHED_EVERY = 200  # operations; the engine's log is cut when it has been flushed
_HNSW = models.HnswConfig(m=16, ef_construct=100, full_scan_threshold=10000)
_OPTIMIZERS = models.OptimizersConfig(default_segment_number=0, flush_interval_sec=5)
_WAL = models.WalConfig(wal_capacity_mb=32, wal_segments_ahead=0)


class Kept(BaseModel):
    """What is kept of a collection outside the engine."""

    name: str
    created_at: datetime
    config: models.CollectionConfig
    indexes: dict[str, models.PayloadIndexInfo] = {}


class Collection:
    """A shard in a folder, and a file that says what the server knows of it.

    Nothing may be asked of it but under its lock; ``use`` and ``apply`` take it themselves.
    """

    def __init__(self, folder: Path, kept: Kept, shard: edge.EdgeShard) -> None:
        self.folder = folder
        self.kept = kept
        self.lock = threading.RLock()
        self._shard = shard
        self._operations = 0

    @classmethod
    def create(cls, folder: Path, kept: Kept) -> Self:
        """Make a new collection in a folder that is not there yet."""
        params = kept.config.params
        shard = folder / "shard"
        shard.mkdir(parents=True)
        with engine.translated():
            made = edge.EdgeShard.create(
                str(shard), engine.shard_config(params.vectors, params.sparse_vectors)
            )
        found = cls(folder, kept, made)
        found.save()
        return found

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a collection as it was left, also by a kill."""
        kept = Kept.model_validate_json((folder / FILE).read_bytes())
        return cls(folder, kept, edge.EdgeShard.load(str(folder / "shard")))

    @property
    def name(self) -> str:
        """Its name."""
        return self.kept.name

    @property
    def strict(self) -> models.StrictModeConfigOutput | None:
        """Its strict mode."""
        return self.kept.config.strict_mode_config

    def close(self) -> None:
        """Let go of the folder."""
        with self.lock:
            self._shard.close()

    def use(self, ask: Callable[[edge.EdgeShard], T]) -> T:
        """Return what the engine answers."""
        with self.lock, engine.translated():
            return ask(self._shard)

    def apply(self, operations: Sequence[edge.UpdateOperation], *, wait: bool) -> int:
        """Apply operations in their order, and return the number of the last one.

        What does not wait is told of no failure, as on the server.
        """
        with self.lock:
            for one in operations:
                self._operations += 1
                try:
                    with engine.translated():
                        self._shard.update(one)
                except RefusedError:
                    if wait:
                        raise
                if self._operations % _FLUSHED_EVERY == 0:
                    self._shard.flush()
            return self._operations

    def save(self) -> None:
        """Write the file, so that a kill leaves either the old or the new one."""
        write(self.folder / FILE, self.kept.model_dump_json().encode())

    def info(self) -> models.CollectionInfo:
        """Return what the collection says of itself."""
        with self.lock:
            found = self.use(lambda shard: shard.info())
            count = self.use(lambda shard: shard.count(edge.CountRequest(exact=True)))
            points = {name: index.points for name, index in found.payload_schema.items()}
            indexes = {
                name: index.model_copy(update={"points": points.get(name, 0)})
                for name, index in self.kept.indexes.items()
            }
            return models.CollectionInfo.model_construct(
                status=models.CollectionStatus.GREEN,
                optimizer_status=models.OptimizersStatusOneOf.OK,
                indexed_vectors_count=found.indexed_vectors_count,
                points_count=count,
                segments_count=found.segments_count,
                config=self.kept.config,
                payload_schema=indexes,
            )


def new(name: str, asked: models.CreateCollection) -> Kept:
    """Return what is kept of a collection that is made as asked."""
    _check_sizes(asked.vectors)
    shared = set(asked.sparse_vectors or {}) & set(_named(asked.vectors))
    if shared:
        raise wrong_input(f"Dense and sparse vector names must be unique - duplicate: {shared}")
    params = models.CollectionParams(
        vectors=asked.vectors if asked.vectors is not None else {},
        sparse_vectors=asked.sparse_vectors,
        shard_number=asked.shard_number or 1,
        sharding_method=asked.sharding_method,
        replication_factor=asked.replication_factor or 1,
        write_consistency_factor=asked.write_consistency_factor or 1,
        on_disk_payload=True if asked.on_disk_payload is None else asked.on_disk_payload,
        payload=asked.payload,
        id_tracker=asked.id_tracker,
    )
    config = models.CollectionConfig(
        params=params,
        hnsw_config=updated(_HNSW, asked.hnsw_config),
        optimizer_config=updated(_OPTIMIZERS, asked.optimizers_config),
        wal_config=updated(_WAL, asked.wal_config),
        quantization_config=asked.quantization_config,
        strict_mode_config=strict(None, asked.strict_mode_config),
        metadata=asked.metadata,
    )
    return Kept(name=name, created_at=datetime.now(UTC), config=config)


def _named(
    vectors: models.VectorParams | Mapping[str, models.VectorParams] | None,
) -> Mapping[str, models.VectorParams]:
    return {"": vectors} if isinstance(vectors, models.VectorParams) else vectors or {}


def _check_sizes(
    vectors: models.VectorParams | Mapping[str, models.VectorParams] | None,
) -> None:
    for name, params in _named(vectors).items():
        if not 1 <= params.size <= 65536:
            place = f"vectors.{name}.size" if name else "vectors.size"
            raise RefusedError(
                422,
                f"Validation error in JSON body: [{place}: value {params.size} invalid, "
                "must be from 1 to 65536]",
            )


M = TypeVar("M", bound=BaseModel)


def updated(found: M, change: BaseModel | None) -> M:
    """Return settings with those changed that the change names."""
    named = change.model_dump(exclude_none=True) if change is not None else {}
    known = {name: value for name, value in named.items() if name in type(found).model_fields}
    return type(found).model_validate({**found.model_dump(), **known})


def strict(
    found: models.StrictModeConfigOutput | None, change: models.StrictModeConfig | None
) -> models.StrictModeConfigOutput | None:
    """Return the strict mode with those settings changed that the change names."""
    if change is None:
        return found
    return updated(found or models.StrictModeConfigOutput(), change)


def merged(found: Mapping[str, object] | None, change: Mapping[str, object]) -> dict[str, object]:
    """Return metadata with the change's keys, without those that it gives as null."""
    both = {**(found or {}), **change}
    return {key: value for key, value in both.items() if change.get(key, key) is not None}


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, as far as a kill of this process goes."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    os.replace(beside, path)  # noqa: PTH105 - Path.replace does the same and hides the overwriting
