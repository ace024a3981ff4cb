"""Telling systemd how it goes (``Type=notify``), with the watchdog; nothing where there is none."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping

_MICRO = 1e-6
_BEATS = 3  # in the time that the watchdog waits


class Notifier:
    """Sends what ``sd_notify`` would; `environ` says where to, and how often.

    While the work makes progress a thread tells the watchdog so: `stuck` seconds without any, and
    it tells it no more.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        stuck: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._every = _watchdog(environ)
        self._stuck, self._clock = stuck, clock
        self._seen = clock()
        self._ended = threading.Event()

    def start(self) -> None:
        """Say that the service is ready, and begin to look after the watchdog."""
        self._send("READY=1")
        if self._address and self._every:
            threading.Thread(target=self._watch, name="syncer-watchdog", daemon=True).start()

    def progress(self, status: str = "") -> None:
        """Note that the work goes on; `status` is what ``systemctl status`` shows."""
        self._seen = self._clock()
        if status:
            self._send(f"STATUS={status}")

    def stop(self) -> None:
        """Say that the service ends."""
        self._ended.set()
        self._send("STOPPING=1")

    def _watch(self) -> None:
        while not self._ended.wait(self._every / _BEATS):
            if self._clock() - self._seen < self._stuck:
                self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        """Send one message; that nobody listens any more is no reason to fail."""
        if not self._address:
            return
        address = self._address
        if address.startswith("@"):  # how systemd writes Linux's abstract names
            address = "\0" + address[1:]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            try:
                out.connect(address)
                out.sendall(message.encode())
            except OSError:
                return


def _watchdog(environ: Mapping[str, str]) -> float:
    """Return the seconds that the watchdog waits, 0 if it does not watch this process."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    try:
        return int(environ.get("WATCHDOG_USEC", "0")) * _MICRO
    except ValueError:
        return 0.0
