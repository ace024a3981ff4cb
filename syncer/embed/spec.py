"""What the settings say about embedding, as one value."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
DEFAULT_TOKEN_BUDGET = 512  # tokens per inference, padding counted; see benchmarks/embed.py
DEFAULT_HASH_DIMENSION = 384  # that of the default model, so that one can stand in for the other


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """How texts become vectors.

    `model_path` is a local folder with the model's files; `cache_dir` is where fetched and
    packaged models are kept. `threads` is the number of inferences at once (None: one per core),
    `token_budget` the most tokens in one of them, padding counted. `max_tokens` cuts texts
    earlier than the model would. `offline` forbids every network call. `dimension` belongs to the
    hash provider. `vector` overrides the vector's name.
    """

    provider: str = "fastembed"
    model: str = DEFAULT_MODEL
    model_path: Path | None = None
    cache_dir: Path | None = None
    threads: int | None = None
    token_budget: int = DEFAULT_TOKEN_BUDGET
    max_tokens: int | None = None
    passage_prefix: str | None = None
    query_prefix: str | None = None
    offline: bool = False
    dimension: int = DEFAULT_HASH_DIMENSION
    vector: str | None = None

    @property
    def vector_name(self) -> str:
        """The vector's name in Qdrant; mcp-server-qdrant's rule for fastembed's models."""
        if self.vector:
            return self.vector
        if self.provider == "hash":
            return f"hash-{self.dimension}"
        return f"fast-{self.model.rsplit('/', maxsplit=1)[-1].lower()}"

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
