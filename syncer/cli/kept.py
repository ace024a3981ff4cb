"""Target and embedder of a process that runs for long: opened once, and anew after a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from syncer.cli import compose, specs
from syncer.cli.opening import Sides
from syncer.cli.ready import Ready
from syncer.errors import EmbedderError, TargetError
from syncer.settings import Settings

if TYPE_CHECKING:
    from syncer.cli.report import Report
    from syncer.embed.encoder import Encoder
    from syncer.target import Connection
    from syncer.worker import Stop


class Kept:
    """What a daemon keeps open between two runs, by one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: Connection | None = None
        self._embedder: Encoder | None = None
        self._others: dict[str, Encoder] = {}

    @contextmanager
    def ready(self, sides: Sides, report: Report, stop: Stop) -> Iterator[Ready]:
        """Give everything that a run needs; what fails is opened anew by the next one."""
        retry = compose.retry_policy(self._settings, stop.sleep, report.retrying)
        try:
            if self._connection is None:
                self._connection = connection = self._connect()
                retry(connection.check_version)
                if version := connection.version:
                    report.connected(connection.spec.name, version)
            yield Ready(sides, self._connection, self._loaded(), retry, stop, others=self._others)
        except TargetError:
            self._disconnect()
            raise
        except EmbedderError:
            self._unload()
            raise

    def connection(self) -> Connection:
        """Return the connection to the target, opened if it is not."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def close(self) -> None:
        """Close everything."""
        with ExitStack() as stack:
            stack.callback(self._disconnect)
            stack.callback(self._unload)

    def _connect(self) -> Connection:
        from syncer.target import connect

        return connect(specs.target_spec(self._settings))

    def _loaded(self) -> Encoder:
        if self._embedder is None:
            self._embedder = compose.build_embedder(self._settings)
        return self._embedder

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _unload(self) -> None:
        encoders = [*self._others.values(), *([self._embedder] if self._embedder else [])]
        self._others.clear()
        self._embedder = None
        for encoder in encoders:
            encoder.close()
