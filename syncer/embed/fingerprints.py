"""SHA-256 of model files, remembered as long as nothing says that a file has changed.

Hashing a model takes about as long as loading it. What is remembered stands in a small JSON file,
the book; losing it costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from syncer.embed.whole_files import put

HASH_BOOK = "hashes.json"  # in the models' folder

_FORMAT = 1  # of the book; another one is not read
_SHA256 = re.compile("[0-9a-f]{64}")

# A file that was touched so shortly before it was looked at may change again within the same tick
# of the file system's clock, and look the same: 2 s on FAT, less elsewhere.
_SETTLED = 2 * 10**9  # nanoseconds
_LARGEST_BOOK = 2**20  # bytes; a model has a handful of files of 300 bytes each
_MOST_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What differs when a file has been written, replaced or moved."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, path: Path) -> _Stamp:
        seen = path.stat()
        return cls(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev)

    def is_settled(self, now_ns: int) -> bool:
        """Say whether a later change is sure to give another stamp."""
        return max(self.mtime_ns, self.ctime_ns) < now_ns - _SETTLED


@dataclass(frozen=True, slots=True)
class _Entry:
    stamp: _Stamp
    sha256: str


_Book = Mapping[str, _Entry]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_hashes(
    files: Sequence[Path], book: Path, *, clock: Callable[[], int] = time.time_ns
) -> dict[Path, str]:
    """Return the SHA-256 of each of `files` in hexadecimal, reading only those that have changed.

    `book` remembers them by resolved path; if it cannot be read or written, files are hashed
    again. Several processes may share it: the last to write wins, and nothing wrong is kept.
    `clock` gives nanoseconds; a file that was touched just before is not remembered.
    Raises OSError for a file that cannot be read.
    """
    known = _read(book)
    hashes: dict[Path, str] = {}
    new: dict[str, _Entry] = {}
    for file in files:
        path = file.resolve(strict=True)
        stamp = _Stamp.of(path)
        entry = known.get(str(path)) or new.get(str(path))
        if entry is None or entry.stamp != stamp:
            looked = clock()
            entry = _Entry(stamp, file_sha256(path))
            if stamp.is_settled(looked) and _Stamp.of(path) == stamp:
                new[str(path)] = entry
        hashes[file] = entry.sha256
    if new:
        _write(book, {**_still_there(_read(book)), **new})
    return hashes


def _still_there(known: _Book) -> dict[str, _Entry]:
    """Return the entries of files that have not gone or changed."""
    kept: dict[str, _Entry] = {}
    for name, entry in known.items():
        with suppress(OSError):
            if _Stamp.of(Path(name)) == entry.stamp:
                kept[name] = entry
    return kept


def _read(book: Path) -> dict[str, _Entry]:
    """Return what `book` remembers; nothing if it is missing, damaged or of another format."""
    try:
        with book.open("rb") as file:
            content = json.loads(file.read(_LARGEST_BOOK))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return {}
    files = content.get("files")
    found = (
        {name: _entry(value) for name, value in files.items()} if isinstance(files, dict) else {}
    )
    return {name: entry for name, entry in found.items() if entry is not None}


def _entry(value: object) -> _Entry | None:
    if not isinstance(value, dict):
        return None
    numbers = [value.get(name) for name in _Stamp.__slots__]
    sha256 = value.get("sha256")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        return None
    whole = [number for number in numbers if type(number) is int]
    return _Entry(_Stamp(*whole), sha256) if len(whole) == len(numbers) else None


def _write(book: Path, entries: _Book) -> None:
    """Replace `book` as a whole; if that is not possible, leave it as it is."""
    newest = sorted(entries.items(), key=lambda item: item[1].stamp.ctime_ns)[-_MOST_ENTRIES:]
    files = {name: {**asdict(entry.stamp), "sha256": entry.sha256} for name, entry in newest}
    content = json.dumps({"format": _FORMAT, "files": files}, indent=1).encode()
    with suppress(OSError):
        put(book, content)
