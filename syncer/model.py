"""The values that flow from source to target. All are frozen; nothing here does any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from syncer.keys import Key, PointId

SYNC_KEY = "_sync"
"""Where a point keeps its book-keeping, apart from what readers see."""

SPARSE_VECTOR = "bm25"
"""Name of the sparse vector."""

Payload = Mapping[str, object]
Vector = Sequence[float]
"""A dense vector; numpy's float32 arrays pass for one."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """A sparse vector: the numbers of its terms, each once and ascending, and their weights."""

    indices: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that fits the model.

    `tokens` is how many the model will see, prefix and special tokens counted; 0 if unknown.
    """

    text: str
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """How far a generation has got; meaningless for any other generation.

    `last_id` is the walk's last key as canonical JSON, or None before the walk; `walked` says
    that the walk has reached the table's end. `change_seq` is the last sequence number of the
    change log that was served. `expired_to` is the moment (UTC, ISO 8601, milliseconds) up to
    which expired rows were taken out.

    Where changes are found by a stamp: `settled` is the moment up to which no row has to be read
    again, `cursor` how far the pass under way has got, as canonical JSON of moment and key.
    """

    generation: str
    last_id: str | None = None
    change_seq: int = 0
    walked: bool = False
    expired_to: str | None = None
    settled: str | None = None
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One record as it is now; not `present` if it is gone or out of scope.

    `expired` says that it went by its own expiry. `content` and the values of `metadata`, by
    column, are as SQLite holds them.
    """

    key: Key
    present: bool = False
    expired: bool = False
    content: object = None
    metadata: Payload = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """The rows read in one short read transaction, one per key, and where that leads.

    `more` says that another window follows before the head that was asked for.
    """

    rows: tuple[Row, ...]
    next: Position
    more: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a row's text, with the hash of what the embedder is given for it.

    `tokens` is how many the model will see, 0 if unknown.
    """

    number: int
    text: str
    text_hash: str
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """What the target holds under the id of a row's chunk 0: its commit record.

    `row` is None for a foreign point. `content` is empty while the row is being written. `text` is
    the hash of the text whose vectors chunk 0 has.
    """

    row: str | None
    content: str = ""
    payload: str = ""
    chunks: int = 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """What Qdrant stores for one chunk; `vectors` by name, empty for a bare commit record."""

    id: PointId
    payload: Payload
    vectors: Mapping[str, Vector | SparseVector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """What a point holds: vectors by name, and of which text they are.

    `row` is None for a foreign point, `text` the hash of what the embedder was given, `content`
    that of the row's whole text.
    """

    id: PointId
    row: str | None
    text: str
    chunks: int
    content: str = ""
    vectors: Mapping[str, Vector | SparseVector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of the texts, and what was noticed about single texts, by index.

    An empty vector stands for one that is not usable. `truncated` texts were cut at the model's
    limit, `refused` ones would not be taken, each with a reason that holds no text. `sparse` has a
    vector for each text, or none at all where the recipe has no sparse part. `reused` dense
    vectors were not computed, but there already.
    """

    vectors: Sequence[Vector]
    truncated: frozenset[int] = frozenset()
    refused: Mapping[int, str] = field(default_factory=dict)
    sparse: Sequence[SparseVector] = ()
    reused: int = 0


class Reason(StrEnum):
    """Why a row cannot be indexed now."""

    KEY_TYPE = "key_type"
    FOREIGN_POINT = "foreign_point"
    BLOB_IN_TEXT = "blob_in_text"
    INVALID_TEXT = "invalid_text"
    BAD_VECTOR = "bad_vector"
    REFUSED = "refused"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that cannot be indexed now: key as canonical JSON and reason, never its text."""

    row: str
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a window came to, as the state keeps it; rows by their key as canonical JSON.

    `settled` rows are in the target as they are, or gone from it. `withheld` ones are still there
    although they should go. `indexed` is by how many rows the target grew, `removed` how many
    were taken out that nobody had announced.
    """

    settled: tuple[str, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    withheld: tuple[str, ...] = ()
    indexed: int = 0
    removed: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it to be recorded, settled rows apart."""
        return not (self.quarantined or self.withheld or self.indexed or self.removed)


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides a vector, as it is kept in the generation's metadata.

    `dense` describes the dense vector (provider, model, files by SHA-256, pooling, prefixes,
    token limit), `text` what happens to a text before (normaliser, chunker), `sparse` the sparse
    vector, empty if there is none. `canary` is the dense vector of a fixed sentence.
    """

    vector: str
    dimension: int
    dense: Mapping[str, object]
    text: Mapping[str, object]
    sparse: Mapping[str, object] = field(default_factory=dict)
    canary: tuple[float, ...] = ()
    distance: str = "Cosine"

    @property
    def sparse_vector(self) -> str:
        """The sparse vector's name, empty if there is none."""
        return SPARSE_VECTOR if self.sparse else ""


@dataclass(frozen=True, slots=True)
class Description:
    """What a generation says of itself, so that it can be checked and queried without the state.

    `source_id` is the random id of the state beside the source, `mapping` a digest of what
    decides which rows and texts there are; the keys are the payload's.
    """

    recipe: Recipe
    source_id: str
    table: str
    mapping: str
    document_key: str = "document"
    metadata_key: str = "metadata"


class Phase(StrEnum):
    """What a generation is there for; stored, so that every step survives a kill."""

    NEW = "new"  # the first one, or one that replaces a lost one: serves as soon as it is there
    BUILDING = "building"  # the green one of a rebuild
    VERIFIED = "verified"  # found equal to the source; the alias may be on its way to it
    SERVING = "serving"
    KEPT = "kept"  # served before; there for `rollback`
    RETURNING = "returning"  # a kept one to which the alias may be on its way back

    @property
    def is_green(self) -> bool:
        """Whether it belongs to a rebuild that has not ended."""
        return self in {Phase.BUILDING, Phase.VERIFIED}


class Mode(StrEnum):
    """By what to search: by meaning, by the words themselves, or by both, fused by rank."""

    DENSE = "dense"
    SPARSE = "sparse"
    HYBRID = "hybrid"


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for: by the dense vector, by the sparse one, or by both, fused by rank."""

    dense: Vector | None = None
    sparse: SparseVector | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer to a search: a row by its best chunk.

    `row` is the key as canonical JSON, empty for a foreign point.
    """

    row: str
    score: float
    document: str
    metadata: Payload = field(default_factory=dict)
