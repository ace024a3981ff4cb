"""Connecting to Qdrant, and what the client's errors mean."""

from __future__ import annotations

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
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from syncer import lock
from syncer.errors import LockedError, SyncerError, TargetError, TargetUnavailableError

_RETRIED_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_BODY = 300  # characters of a server's answer that go into a message
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """Where Qdrant is, and how large a request may be.

    Either `url` or `path` is set. `timeout` in seconds, `batch_bytes` in serialised bytes.
    """

    path: Path | None = None
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    grpc: bool = False
    timeout: float = 30.0
    batch_points: int = 256
    batch_bytes: int = 8 * 2**20
    lock_wait: float = 30.0

    @property
    def name(self) -> str:
        """The place as it may stand in a message: no user, password or query."""
        if self.url is None:
            return str(self.path)
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}:{_port(self.url)}{parts.path.rstrip('/')}"


class Connection:
    """An open client, to be used by one thread; a context manager that closes it."""

    def __init__(self, client: QdrantClient, spec: TargetSpec, stack: ExitStack) -> None:
        self.client = client
        self.spec = spec
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
        except _CLIENT_ERRORS as error:
            raise translate(error, f"{what} at {self.spec.name}") from error


def connect(spec: TargetSpec, *, to_write: bool = True) -> Connection:
    """Return a connection to the server or local folder that `spec` names.

    Not `to_write`, opening a folder leaves every file in it as it is, and one that is not there
    counts as empty and is not made.
    Raises LockedError if another process holds the local folder, TargetError if it cannot be
    opened, TargetUnavailableError if the server does not answer.
    """
    return _connect_server(spec) if spec.url is not None else _open_folder(spec, to_write)


def translate(error: Exception, what: str) -> TargetError:
    """Return what an error of the client means; whether it may be tried again is in its class."""
    if isinstance(error, UnexpectedResponse):
        body = error.content.decode("utf-8", "replace")[:_BODY]
        message = f"{what} failed: HTTP {error.status_code} {error.reason_phrase}: {body}"
        if error.status_code in _RETRIED_STATUS:
            return TargetUnavailableError(message)
        return TargetError(message, hint=_STATUS_HINTS.get(error.status_code or 0))
    if isinstance(error, ResourceExhaustedResponse):
        return TargetUnavailableError(f"{what} failed: the server asks to wait: {error}")
    if isinstance(error, (ResponseHandlingException, httpx.HTTPError, ConnectionError)):
        source = getattr(error, "source", error)
        return TargetUnavailableError(
            f"{what} failed: {type(source).__name__}: {source}",
            hint="Is Qdrant running, and is target.url right? Nothing is lost; run again.",
        )
    return TargetError(f"{what} failed: {error}")


_STATUS_HINTS = {
    401: "The server wants an API key: set target.api_key_file or SYNCER_TARGET__API_KEY.",
    403: "The API key has no right to do this: syncer needs to read, write and manage its "
    "collection.",
    404: "The collection or the server's path is not there; see `syncer doctor`.",
}
_CLIENT_ERRORS = (
    UnexpectedResponse,
    ResponseHandlingException,
    ResourceExhaustedResponse,
    httpx.HTTPError,
    OSError,
    ValueError,  # local mode's word for everything that the server answers with 4xx
    RuntimeError,
)


def _connect_server(spec: TargetSpec) -> Connection:
    if spec.url is None:
        raise TargetError("no URL of a Qdrant server is given")
    parts = urlsplit(spec.url)
    client = QdrantClient(
        url=f"{parts.scheme}://{parts.hostname}",
        port=_port(spec.url),
        prefix=parts.path.strip("/") or None,
        api_key=spec.api_key,
        prefer_grpc=spec.grpc,
        timeout=int(max(1, spec.timeout)),
        check_compatibility=False,
    )
    return Connection(client, spec, ExitStack())


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or _DEFAULT_PORTS.get(parts.scheme, 6333)


def _open_folder(spec: TargetSpec, to_write: bool) -> Connection:
    """Open the local folder under a lock of syncer's own.

    The client reads the folder before it takes its own lock; two syncers starting at once could
    otherwise undo each other's collections.
    """
    if spec.path is None:
        raise TargetError("neither a folder nor a URL of Qdrant is given")
    stack = ExitStack()
    if not to_write and not spec.path.exists():
        return Connection(QdrantClient(":memory:"), spec, stack)
    try:
        spec.path.mkdir(parents=True, exist_ok=True)
        what = f"the local Qdrant folder {spec.path}"
        path = spec.path / ".syncer.lock"
        stack.enter_context(lock.held(path, what, spec.lock_wait, named=to_write))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            client = QdrantClient(path=str(spec.path))
    except SyncerError:
        stack.close()
        raise
    except RuntimeError as error:
        stack.close()
        raise LockedError(
            f"the local Qdrant folder {spec.path} is open in another program",
            hint="Local mode belongs to one process at a time. Stop the other one, or run a "
            "Qdrant server and set target.url.",
        ) from error
    except (OSError, ValueError, KeyError) as error:
        stack.close()
        raise TargetError(
            f"the local Qdrant folder {spec.path} cannot be opened: {error}",
            hint="Give syncer write access to it. If it is damaged, move it away and run syncer "
            "once: the collection is built again from SQLite.",
        ) from error
    return Connection(client, spec, stack)
