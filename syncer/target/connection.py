"""Connecting to Qdrant: a server by URL, or the client's local mode by path."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx
from qdrant_client import QdrantClient

from syncer import lock
from syncer.errors import (
    LockedError,
    SchemaError,
    SyncerError,
    TargetError,
)
from syncer.target import channel, transport
from syncer.target.creation import Creation
from syncer.target.faults import CLIENT_ERRORS, FOLDER_ERRORS, reason, translate

OLDEST_SERVER = (1, 16)  # the first whose collections carry metadata
_DEFAULT_PORTS = {"http": 80, "https": 443}
# The client opens a new connection for each request to a server on this machine, unless told not
# to. One that the server has closed meanwhile is what ``transport.Careful`` is for.
_LIMITS = httpx.Limits(max_keepalive_connections=1, max_connections=None)


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """Where Qdrant is, how large a request may be, and how collections are made.

    Either `url` or `path` is set. `timeout` in seconds, `batch_bytes` in serialised bytes. `ca`,
    `client_cert` and `client_key` are PEM files for HTTPS.
    """

    path: Path | None = None
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    grpc: bool = False
    timeout: float = 30.0
    batch_points: int = 256
    batch_bytes: int = 8 * 2**20
    lock_wait: float = 30.0
    grpc_port: int = 6334
    ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    allow_old_server: bool = False
    preserve_foreign_payload: bool = False
    creation: Creation = field(default_factory=Creation)

    @property
    def rest(self) -> bool:
        """Whether points go to a server over REST."""
        return self.url is not None and not self.grpc

    @property
    def rpc(self) -> bool:
        """Whether points go to a server over gRPC."""
        return self.url is not None and self.grpc

    @property
    def seconds(self) -> int:
        """The time for a request, as the client has it: in whole seconds."""
        return math.ceil(self.timeout)

    @property
    def name(self) -> str:
        """The place as it may stand in a message: no user, password or query."""
        if self.url is None:
            return str(self.path)
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{_host(self.url)}:{_port(self.url)}{parts.path.rstrip('/')}"


class Connection:
    """An open client, to be used by one thread; a context manager that closes it."""

    def __init__(self, client: QdrantClient, spec: TargetSpec, stack: ExitStack) -> None:
        self.client = client
        self.spec = spec
        self.version: str | None = None
        """Of the server, once it was checked."""
        self._stack = stack

    @property
    def local(self) -> bool:
        """Whether this is the client's embedded local mode."""
        return self.spec.url is None

    def close(self) -> None:
        """Close the client and let go of the local folder."""
        with self._stack:
            self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def translated(self, what: str) -> Iterator[None]:
        """Raise the client's errors as TargetError or TargetUnavailableError that say `what`."""
        try:
            with warnings.catch_warnings():
                if self.local:  # the client warns of features that local mode has no need of
                    warnings.simplefilter("ignore", UserWarning)
                yield
        except SyncerError:
            raise
        except CLIENT_ERRORS as error:
            raise translate(error, f"{what} at {self.spec.name}", self.spec.api_key) from None

    def check_version(self) -> str | None:
        """Return the server's version, None in local mode.

        Raises SchemaError if the server is too old to hold what a generation says of itself, and
        TargetError if what answers is no Qdrant.
        """
        if self.local:
            return None
        with self.translated("asking for the version"):
            try:
                info = self.client.info()
            except ValueError:
                raise TargetError(
                    f"what answers at {self.spec.name} is no Qdrant: it does not say its version",
                    hint="Check host, port and path of target.url.",
                ) from None
        self.version = version = str(info.version)
        if _numbers(version) < OLDEST_SERVER and not self.spec.allow_old_server:
            oldest = ".".join(str(number) for number in OLDEST_SERVER)
            raise SchemaError(
                f"{self.spec.name} is Qdrant {version}; syncer needs {oldest} or newer",
                hint="Older servers forget what a collection says of itself. Upgrade the server; "
                "if it only tells a wrong number, set target.allow_old_server = true.",
            )
        return version

    def check_rest(self) -> None:
        """See that REST answers, beside gRPC where that is used; raise TargetError if not."""
        if self.local:
            return
        with self.translated("asking over REST"):
            self.client.http.service_api.root()


def connect(spec: TargetSpec, *, to_write: bool = True) -> Connection:
    """Return a connection to the server or local folder that `spec` names.

    Not `to_write`, opening a folder leaves every file in it as it is, and one that is not there
    counts as empty and is not made.
    Raises LockedError if another process holds the local folder, TargetError if it cannot be
    opened, TargetUnavailableError if the server does not answer.
    """
    return _connect_server(spec) if spec.url is not None else _open_folder(spec, to_write)


def _connect_server(spec: TargetSpec) -> Connection:
    if spec.url is None:
        raise TargetError("no URL of a Qdrant server is given")
    parts = urlsplit(spec.url)
    certificates = (spec.ca, spec.client_cert, spec.client_key)
    verify = transport.trust(*certificates)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a key over http: the settings decide
        client = QdrantClient(
            url=f"{parts.scheme}://{_host(spec.url)}",
            port=_port(spec.url),
            prefix=parts.path.strip("/") or None,
            api_key=spec.api_key,
            prefer_grpc=spec.grpc,
            grpc_port=spec.grpc_port,
            grpc_options=channel.options(certificates, spec.batch_bytes) if spec.grpc else None,
            timeout=spec.seconds,
            limits=_LIMITS,
            check_compatibility=False,
            verify=verify,
        )
    client.http.client.add_middleware(transport.Careful(spec.batch_bytes))
    return Connection(client, spec, ExitStack())


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or _DEFAULT_PORTS.get(parts.scheme, 6333)


def _host(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return f"[{host}]" if ":" in host else host


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _open_folder(spec: TargetSpec, to_write: bool) -> Connection:
    """Open the local folder under a lock of syncer's own.

    The client reads the folder before it takes its own lock; two syncers starting at once could
    otherwise undo each other's collections.
    """
    if spec.path is None:
        raise TargetError("neither a folder nor a URL of Qdrant is given")
    if not to_write and not spec.path.exists():
        return Connection(QdrantClient(":memory:"), spec, ExitStack())
    with ExitStack() as stack:
        try:
            spec.path.mkdir(parents=True, exist_ok=True)
            what = f"the local Qdrant folder {spec.path}"
            path = spec.path / ".syncer.lock"
            stack.enter_context(lock.held(path, what, spec.lock_wait, named=to_write))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                client = QdrantClient(path=str(spec.path))
        except RuntimeError:  # the client's word for a folder that is taken
            raise LockedError(
                f"the local Qdrant folder {spec.path} is open in another program",
                hint="Local mode belongs to one process at a time. Stop the other one, or run a "
                "Qdrant server and set target.url.",
            ) from None
        except FOLDER_ERRORS as error:
            raise TargetError(
                f"the local Qdrant folder {spec.path} cannot be opened: {reason(error)}",
                hint="Give syncer write access to it. If it is damaged, move it away and run "
                "`syncer rebuild`: the collection is built again from SQLite.",
            ) from None
        return Connection(client, spec, stack.pop_all())
