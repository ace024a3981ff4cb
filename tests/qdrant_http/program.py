"""The server as a program of its own, that a test can kill and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

_TESTS = Path(__file__).resolve().parent.parent
_STARTING = 60.0  # seconds at most; importing the client takes three on two busy cores


class Program:
    """A server in a process of its own; the port stays the same when it is started again."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str] = (),
        key: str | None = None,
        *,
        grpc: bool = False,
    ) -> None:
        self._folder = folder
        self._arguments = list(arguments)
        self._key = key
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.grpc_port: int | None = 0 if grpc else None

    @property
    def url(self) -> str:
        """Where it listens, without a prefix."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        port_file = self._folder.with_name(self._folder.name + ".port")
        port_file.unlink(missing_ok=True)
        given = ["--folder", str(self._folder), "--port", str(self.port)]
        given += ["--port-file", str(port_file)]
        if self.grpc_port is not None:
            given += ["--grpc-port", str(self.grpc_port)]
        environment = {**os.environ, "PYTHONPATH": str(_TESTS)}
        environment.pop("QDRANT_HTTP_API_KEY", None)
        if self._key is not None:
            environment["QDRANT_HTTP_API_KEY"] = self._key
        self._process = subprocess.Popen(
            [sys.executable, "-m", "qdrant_http", *given, *self._arguments], env=environment
        )
        end = time.monotonic() + _STARTING
        while not port_file.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the test server did not start")
            time.sleep(0.02)
        self.port, *others = (int(port) for port in port_file.read_text().split())
        self.grpc_port = others[0] if others else None

    def kill(self) -> None:
        """Kill it as nothing can be caught or finished."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it finish."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def faults_by_chance(self, share: float, seed: int, *faults: dict[str, object]) -> None:
        """Let faults happen to this share of the requests; see ``Faults.by_chance``."""
        asked = {"chance": share, "seed": seed, "faults": list(faults)}
        httpx.post(f"{self.url}/_faults", json=asked).raise_for_status()

    def faults(self, *faults: dict[str, object]) -> dict[str, list[dict[str, object]]]:
        """Let faults wait, and return what waits and what happened."""
        answer = httpx.post(f"{self.url}/_faults", json=list(faults))
        answer.raise_for_status()
        found: dict[str, list[dict[str, object]]] = answer.json()
        return found

    def clear_faults(self) -> None:
        """Let no fault wait any more."""
        httpx.delete(f"{self.url}/_faults").raise_for_status()


@contextmanager
def started(
    folder: Path, *arguments: str, key: str | None = None, grpc: bool = False
) -> Iterator[Program]:
    """Run the program while the block runs."""
    program = Program(folder, arguments, key, grpc=grpc)
    program.start()
    try:
        yield program
    finally:
        program.kill()
