"""Locks that the kernel releases when their holder dies, on files that name the holder."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from syncer.errors import LockedError, SourceError

_POLL = 0.1  # seconds between two looks at a lock that somebody else holds


@contextmanager
def held(path: Path, what: str, wait: float = 0.0, *, named: bool = True) -> Iterator[int]:
    """Hold the lock on `path` while the block runs; the block gets how many holders died last.

    That counts holders in a row that were killed while they held it: they left their name.

    Waits up to `wait` seconds, then raises LockedError that names `what` is locked and who holds
    it. The file stays behind, empty: its last modification says when it was last held. A holder
    that is not `named` leaves no trace in the file, for those who may not write anything.
    """
    descriptor = _open(path)
    try:
        _acquire(descriptor, path, what, wait)
        deaths = _deaths(descriptor)
        if named:
            _name_holder(descriptor, deaths)
        try:
            yield deaths
        finally:
            if named:
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def deaths(path: Path) -> int:
    """Return how many holders of the lock on `path` died last, in a row; 0 while it is held."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return _deaths(descriptor)
    except BlockingIOError:
        return 0
    finally:
        os.close(descriptor)


def touched(path: Path) -> float:
    """Return when the lock was last held or touched, in seconds since the epoch; 0.0 if never."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def touch(path: Path) -> None:
    """Set the time that ``touched`` returns to now; the file's content stays as it is."""
    if path.exists():
        os.utime(path)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SourceError(
            f"the lock file {path} cannot be opened: {error.strerror}",
            hint="syncer keeps its locks beside the state; give it write access to that folder.",
        ) from error


def _acquire(descriptor: int, path: Path, what: str, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"{what} is held by another syncer: {_holder(descriptor)}",
                    hint=f"Wait for it to end, or stop it. The lock file is {path}.",
                ) from None
            time.sleep(_POLL)
        else:
            return


def _deaths(descriptor: int) -> int:
    """Return how many holders in a row have died; whoever ends in order leaves nothing behind."""
    left = os.pread(descriptor, 4096, 0)
    if not left:
        return 0
    try:
        return int(json.loads(left)["deaths"]) + 1
    except (ValueError, KeyError, TypeError):
        return 1


def _name_holder(descriptor: int, deaths: int) -> None:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    host = platform.node()
    holder = {"pid": os.getpid(), "host": host, "since": started, "deaths": deaths}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has not named itself yet"
