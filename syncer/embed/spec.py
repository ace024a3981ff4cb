"""What the settings say about embedding, as one value."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from syncer.embed.http_spec import HttpSpec

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
DEFAULT_TOKEN_BUDGET = 256  # tokens per inference, padding counted; see benchmarks/embed.py
DEFAULT_HASH_DIMENSION = 384  # that of the default model, so that one can stand in for the other


@dataclass(frozen=True, slots=True)
class SparseSpec:
    """How texts become sparse vectors.

    `language` decides about stemmer and stop words, "none" stands for neither. `k` says how fast
    repeating a term stops to count, `b` how much a long text is held against its terms. `avg_len`
    is the mean number of terms in the texts that have any, measured when a generation is created;
    None as long as nobody has, which is enough for queries.
    """

    language: str = "english"
    k: float = 1.2
    b: float = 0.75
    avg_len: float | None = None


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """How texts become vectors.

    `model_path` is a local folder with the model's files; `cache_dir` is where fetched and
    packaged models are kept. `threads` is the number of inferences at once (None: one per core),
    `token_budget` the most tokens in one of them, padding counted, `batch_timeout` the seconds
    after which one counts as stuck, `devices` onnxruntime's execution providers. `chunk_tokens`
    and `chunk_overlap` say how texts are cut (None: by the model's limit). `offline` forbids every
    network call. `dimension` is that of the hash provider, or what an endpoint is asked for.
    `vector` overrides the vector's name. `endpoint` belongs to the openai provider, and so does
    `tokenizer`, a local tokenizer.json to measure chunks with; without one a chunk is bounded in
    bytes, of which a token has at least one. `sparse` belongs to the vector beside the dense one.
    """

    provider: str = "fastembed"
    model: str = DEFAULT_MODEL
    model_path: Path | None = None
    cache_dir: Path | None = None
    threads: int | None = None
    token_budget: int = DEFAULT_TOKEN_BUDGET
    batch_timeout: float = 600.0
    devices: tuple[str, ...] = ()
    chunk_tokens: int | None = None
    chunk_overlap: int = 0
    passage_prefix: str | None = None
    query_prefix: str | None = None
    offline: bool = False
    dimension: int | None = None
    vector: str | None = None
    endpoint: HttpSpec | None = None
    tokenizer: Path | None = None
    sparse: SparseSpec | None = None

    @property
    def vector_name(self) -> str:
        """The vector's name in Qdrant; mcp-server-qdrant's rule for fastembed's models."""
        if self.vector:
            return self.vector
        if self.provider == "hash":
            return f"hash-{self.hash_dimension}"
        name = self.model.rsplit("/", maxsplit=1)[-1].lower()
        return f"fast-{name}" if self.provider == "fastembed" else name

    @property
    def hash_dimension(self) -> int:
        """The dimension of the hash provider's vectors."""
        return DEFAULT_HASH_DIMENSION if self.dimension is None else self.dimension

    @property
    def models_dir(self) -> Path:
        """The folder for models; never the temporary folder, which the system empties."""
        return self.cache_dir or _user_cache() / "syncer" / "models"

    @property
    def stays_offline(self) -> bool:
        """Whether network calls are forbidden, here or by ``HF_HUB_OFFLINE``."""
        value = os.environ.get("HF_HUB_OFFLINE", "")
        return self.offline or value.strip().upper() in {"1", "ON", "YES", "TRUE"}

    @property
    def workers(self) -> int:
        """The number of inferences at once: `threads`, or one per core this process may use."""
        return self.threads or _usable_cores()


def _user_cache() -> Path:
    """Return the user's cache folder by the XDG rule: a relative path counts as unset."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return configured if configured.is_absolute() else Path.home() / ".cache"


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux can tell
        return os.cpu_count() or 1
