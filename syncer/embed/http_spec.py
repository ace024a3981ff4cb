"""What the settings say about an OpenAI-compatible endpoint, as one value."""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass, field

from syncer.errors import SettingsError

MAX_DIMENSION = 65_536  # what Qdrant takes
MAX_PORT = 65_535
MAX_CONCURRENCY = 256

_ROUTE = "/embeddings"
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>\d{1,5}))?"
    r"(?P<path>/[^\s?#@\\]*)?(?P<query>\?[^\s#]*)?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class HttpSpec:
    """Where an endpoint is, and how it may be asked.

    `url` is a base like ``https://api.example/v1``; ``/embeddings`` is added unless it is there.
    `dimension` is asked for only if set. `batch_items` texts and `batch_bytes` of UTF-8 bound one
    request; no tokenizer makes more tokens than bytes, so the default stays below the 300,000
    tokens that OpenAI takes. `timeout` is the seconds of one request, `budget` those of trying one
    again, waits counted (0: it is not). `vector` overrides the vector's name.
    """

    url: str = field(repr=False)  # its query may hold a key
    model: str
    api_key: str = field(default="", repr=False)
    allow_insecure_key: bool = False
    dimension: int | None = None
    passage_prefix: str = ""
    query_prefix: str = ""
    vector: str = ""
    concurrency: int = 4
    batch_items: int = 64
    batch_bytes: int = 256 * 2**10
    timeout: float = 60.0
    budget: float = 60.0

    @property
    def vector_name(self) -> str:
        """The vector's name in Qdrant: the model's, after the last slash, in lower case."""
        return self.vector or self.model.rsplit("/", maxsplit=1)[-1].lower()

    @property
    def name(self) -> str:
        """The address as it may stand in a message: without its query."""
        return self._parts()["scheme"] + "://" + self._authority() + self._path()

    @property
    def address(self) -> str:
        """The address that requests go to."""
        return self.name + (self._parts()["query"] or "")

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine, by its spelling alone."""
        host = self._parts()["host"].strip("[]").lower()
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not reach a message: the key, and the values in the address's query."""
        pairs = (self._parts()["query"] or "?")[1:].split("&")
        values = (pair.partition("=")[2] or pair for pair in pairs)
        return tuple(secret for secret in (self.api_key, *values) if secret)

    def check(self) -> None:
        """Raise SettingsError for an address, key or bound that cannot be."""
        self._parts()
        if not self.model.strip():
            raise SettingsError("embed.model must name the endpoint's model")
        if not all("!" <= character <= "~" for character in self.api_key):
            raise SettingsError("embed.api_key must be visible ASCII characters without blanks")
        plain = self.name.lower().startswith("http:") and not self.is_loopback
        if self.api_key and plain and not self.allow_insecure_key:
            raise SettingsError(
                f"embed.api_key would go over plain http to {self._parts()['host']}",
                hint="Use https, or a server on this machine.",
            )
        self._check_bounds()

    def _check_bounds(self) -> None:
        for key, value, most in (
            ("dimension", 1 if self.dimension is None else self.dimension, MAX_DIMENSION),
            ("concurrency", self.concurrency, MAX_CONCURRENCY),
            ("batch_items", self.batch_items, math.inf),
            ("batch_bytes", self.batch_bytes, math.inf),
        ):
            if not 1 <= value <= most:
                to = f"from 1 to {most}" if most < math.inf else "at least 1"
                raise SettingsError(f"embed.{key} is {value}, but must be {to}")
        if not 0 < self.timeout < math.inf:
            raise SettingsError(f"embed.timeout is {self.timeout}, but must be more than 0 seconds")
        if not 0 <= self.budget < math.inf:
            raise SettingsError(
                f"embed.retry_budget is {self.budget}, but must be at least 0 seconds"
            )

    def _parts(self) -> re.Match[str]:
        match = _ADDRESS.fullmatch(self.url)
        if not match or int(match["port"] or 1) not in range(1, MAX_PORT + 1):
            raise SettingsError(
                "embed.url must be like https://host/v1, without a user or a fragment",
                hint="A key belongs into embed.api_key_file or SYNCER_EMBED__API_KEY.",
            )
        return match

    def _authority(self) -> str:
        port = self._parts()["port"]
        return self._parts()["host"] + (f":{port}" if port else "")

    def _path(self) -> str:
        path = (self._parts()["path"] or "").rstrip("/")
        return path if path.endswith(_ROUTE) else path + _ROUTE
