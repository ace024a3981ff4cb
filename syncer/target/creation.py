"""How a collection is stored: passed through when it is made, compared when it is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from qdrant_client import models

Quantization = Literal["scalar", "binary"]


@dataclass(frozen=True, slots=True)
class Creation:
    """What Qdrant is asked for when a collection is made; None leaves it to Qdrant.

    Nothing of it decides what the vectors mean, so an operator may change it later on the server.
    """

    shard_number: int | None = None
    replication_factor: int | None = None
    write_consistency_factor: int | None = None
    vectors_on_disk: bool | None = None
    payload_on_disk: bool | None = None
    hnsw_m: int | None = None
    hnsw_ef_construct: int | None = None
    quantization: Quantization | None = None

    def hnsw(self) -> models.HnswConfigDiff | None:
        """Return how the index is built."""
        if self.hnsw_m is None and self.hnsw_ef_construct is None:
            return None
        return models.HnswConfigDiff(m=self.hnsw_m, ef_construct=self.hnsw_ef_construct)

    def quantized(self) -> models.QuantizationConfig | None:
        """Return how vectors are made smaller; the originals stay beside them."""
        if self.quantization == "scalar":
            scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8)
            return models.ScalarQuantization(scalar=scalar)
        if self.quantization == "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig())
        return None

    def collection(self) -> dict[str, Any]:
        """Return the arguments of ``create_collection`` that this decides."""
        return {
            "shard_number": self.shard_number,
            "replication_factor": self.replication_factor,
            "write_consistency_factor": self.write_consistency_factor,
            "on_disk_payload": self.payload_on_disk,
            "hnsw_config": self.hnsw(),
            "quantization_config": self.quantized(),
        }

    def differences(self, config: models.CollectionConfig, vector: str) -> Iterator[str]:
        """Yield, for each setting that a collection does not have, the setting and both sides."""
        for name, found in _found(config, vector).items():
            wanted = getattr(self, name)
            if wanted is not None and wanted != found:
                yield f"target.{name} = {_word(wanted)}, the collection has {_word(found)}"


def _found(config: models.CollectionConfig, vector: str) -> Mapping[str, object]:
    params, hnsw = config.params, config.hnsw_config
    vectors = params.vectors if isinstance(params.vectors, dict) else {}
    of_vector = vectors.get(vector)
    return {
        "shard_number": params.shard_number,
        "replication_factor": params.replication_factor,
        "write_consistency_factor": params.write_consistency_factor,
        "vectors_on_disk": bool(of_vector is not None and of_vector.on_disk),
        "payload_on_disk": params.on_disk_payload,
        "hnsw_m": hnsw.m,
        "hnsw_ef_construct": hnsw.ef_construct,
        "quantization": _quantization(config.quantization_config),
    }


def _quantization(found: models.QuantizationConfig | None) -> str | None:
    if isinstance(found, models.ScalarQuantization):
        return "scalar"
    if isinstance(found, models.BinaryQuantization):
        return "binary"
    return None if found is None else "another"


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)
