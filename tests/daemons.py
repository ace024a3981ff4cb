"""A ``syncer run`` in a process of its own, what it logs, and what it answers over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

PATIENCE = 60.0  # seconds; only a test that fails needs them
LISTENS = "metrics, health and the status page are at "
SETTINGS = """
[source]
database = "memory.db"
busy_timeout = 0.2
[target]
url = "{url}"
collection = "{alias}"
timeout = 5
retry_budget = 0.2
lock_wait = 20
check_interval = 3600
[embed]
provider = "hash"
dimension = 8
[sparse]
enabled = false
[log]
format = "json"
[metrics]
listen = "127.0.0.1:0"
unhealthy_failures = 2
[daemon]
interval = 1
verify_interval = 0
shutdown_timeout = 20
"""


def write_settings(folder: Path, url: str, alias: str = "memory", more: str = "") -> Path:
    """Write a settings file for a memory in `folder` and the server at `url`.

    `more` are lines of TOML whose keys replace those above; sections may be named again.
    """
    path = folder / "syncer.toml"
    path.write_text(merged(SETTINGS.format(url=url, alias=alias), more))
    return path


def merged(text: str, more: str) -> str:
    """Return settings in which the keys of `more` replace those of `text`."""
    sections: dict[str, dict[str, str]] = {}
    name = ""
    for line in f"{text}\n{more}".splitlines():
        if line.startswith("["):
            name = line
        elif "=" in line:
            key, _, value = line.partition(" = ")
            sections.setdefault(name, {})[key] = value
    return "\n".join(
        "\n".join([name, *(f"{key} = {value}" for key, value in keys.items() if value)])
        for name, keys in sections.items()
    )


@dataclass(slots=True)
class Daemon:
    """A ``syncer run`` that is under way, with everything it has logged so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    @property
    def log(self) -> list[dict[str, object]]:
        """The events that were logged."""
        return [json.loads(line) for line in list(self.lines) if line.startswith("{")]

    def says(self, text: str, since: int = 0) -> bool:
        """Say whether `text` was logged, after so many lines."""
        return any(text in line for line in self.lines[since:])

    def wait_for(self, text: str, since: int = 0) -> None:
        """Wait until `text` is logged."""
        self.until(lambda: self.says(text, since), f"it logs {text!r}")

    def until(self, holds: Callable[[], bool], what: str = "it holds") -> None:
        """Wait until something holds while the daemon lives."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            alive = self.process.poll() is None
            told = "\n".join(self.lines[-30:])
            assert alive, f"the daemon ended with {self.process.returncode}\n{told}"
            assert time.monotonic() < deadline, f"waited in vain until {what}\n{told}"
            time.sleep(0.02)

    @property
    def url(self) -> str:
        """Where it answers."""
        line = next(line for line in self.lines if LISTENS in line)
        return "http://" + str(json.loads(line)["message"]).removeprefix(LISTENS)

    def get(self, path: str) -> httpx.Response:
        """Ask it over HTTP."""
        return httpx.get(f"{self.url}{path}", timeout=30)

    def is_ready(self) -> bool:
        """Say whether everything was in the target once."""
        return self.says(LISTENS) and self.get("/readyz").status_code == 200

    def is_well(self) -> bool:
        """Say whether it calls itself healthy."""
        return self.get("/healthz").status_code == 200

    def metric(self, name: str) -> float:
        """Return a metric's value, labels and all in its name; 0 if it is not there."""
        for line in self.get("/metrics").text.splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def pause(self, is_free: Callable[[], bool]) -> None:
        """Stop it (SIGSTOP) at a moment at which it keeps nobody else from writing."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.process.send_signal(signal.SIGSTOP)
            self.until(self._is_paused, "it is stopped")
            if is_free():
                return
            self.resume()
            assert time.monotonic() < deadline, "it keeps others from writing all the time"
            time.sleep(0.01)

    def resume(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def _is_paused(self) -> bool:
        said = Path(f"/proc/{self.process.pid}/stat").read_text()
        return said.rpartition(")")[2].split()[0] == "T"

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end and return the exit code."""
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("\n".join(["it does not end", *self.lines[-30:]])) from None


@contextmanager
def running(
    folder: Path,
    *arguments: str,
    command: Sequence[str] = ("-m", "syncer", "run"),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Daemon]:
    """Run ``syncer run`` in `folder` while the block runs."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SYNCER_")}
    with subprocess.Popen(
        [sys.executable, *command, *arguments],
        cwd=folder,
        env={**inherited, "HF_HUB_OFFLINE": "1", **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        daemon = Daemon(process)
        reader = threading.Thread(target=_read, args=(daemon,), daemon=True)
        reader.start()
        try:
            yield daemon
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
            reader.join()


def _read(daemon: Daemon) -> None:
    assert daemon.process.stderr is not None
    with suppress(ValueError):  # closed meanwhile
        for line in daemon.process.stderr:
            daemon.lines.append(line.rstrip("\n"))
