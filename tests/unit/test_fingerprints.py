"""Hashes of model files: read again whenever they may have changed, and only then."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from syncer.embed import fingerprints
from syncer.embed.fingerprints import file_hashes

SECOND = 10**9


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def later() -> int:
    """Return a time at which every file of a test has been left alone for long."""
    return time.time_ns() + 60 * SECOND


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Collect the files that are hashed."""
    hashed: list[Path] = []
    true_hash = fingerprints.file_sha256

    def watched(path: Path) -> str:
        hashed.append(path)
        return true_hash(path)

    monkeypatch.setattr(fingerprints, "file_sha256", watched)
    return hashed


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"weights")
    return path


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "hashes.json"


def test_a_file_is_hashed_once(model: Path, book: Path, read: list[Path]) -> None:
    expected = {model: sha256(b"weights")}
    assert file_hashes([model], book, clock=later) == expected
    assert file_hashes([model], book, clock=later) == expected
    assert read == [model]


def test_nothing_is_written_when_nothing_was_hashed(model: Path, book: Path) -> None:
    file_hashes([model], book, clock=later)
    inode = book.stat().st_ino
    file_hashes([model], book, clock=later)
    assert book.stat().st_ino == inode


def test_a_file_of_another_size_is_hashed_again(model: Path, book: Path, read: list[Path]) -> None:
    file_hashes([model], book, clock=later)
    model.write_bytes(b"other weights")
    assert file_hashes([model], book, clock=later) == {model: sha256(b"other weights")}
    assert len(read) == 2


def test_a_file_changed_in_place_with_its_time_put_back_is_hashed_again(
    model: Path, book: Path
) -> None:
    seen = model.stat()
    file_hashes([model], book, clock=later)
    time.sleep(0.02)  # the file system's clock ticks 100 to 1000 times a second
    model.write_bytes(b"WEIGHTS")
    os.utime(model, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert file_hashes([model], book, clock=later) == {model: sha256(b"WEIGHTS")}


def test_a_file_put_in_the_place_of_another_is_hashed_again(model: Path, book: Path) -> None:
    seen = model.stat()
    file_hashes([model], book, clock=later)
    other = model.with_name("other")
    other.write_bytes(b"WEIGHTS")
    os.utime(other, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    other.replace(model)
    assert file_hashes([model], book, clock=later) == {model: sha256(b"WEIGHTS")}


@pytest.mark.parametrize("name", ["size", "mtime_ns", "ctime_ns", "inode", "device"])
def test_each_part_of_the_stamp_counts(
    model: Path, book: Path, read: list[Path], name: str
) -> None:
    file_hashes([model], book, clock=later)
    content = json.loads(book.read_text())
    content["files"][str(model)][name] += 1
    book.write_text(json.dumps(content))
    file_hashes([model], book, clock=later)
    assert len(read) == 2


def test_a_file_touched_a_moment_ago_is_not_remembered(
    model: Path, book: Path, read: list[Path]
) -> None:
    file_hashes([model], book)
    os.utime(model, (1, 1))  # its content may be new although it says to be old
    file_hashes([model], book)
    assert len(read) == 2
    assert not book.exists()


def test_a_file_changed_while_it_is_hashed_is_not_remembered(
    model: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_hash = fingerprints.file_sha256

    def interrupted(path: Path) -> str:
        found = true_hash(path)
        path.write_bytes(b"changed meanwhile")
        return found

    monkeypatch.setattr(fingerprints, "file_sha256", interrupted)
    file_hashes([model], book, clock=later)
    assert not book.exists()


def test_a_link_is_known_by_what_it_leads_to(
    model: Path, book: Path, tmp_path: Path, read: list[Path]
) -> None:
    other = tmp_path / "blob"
    other.write_bytes(b"other")
    link = tmp_path / "link"
    link.symlink_to(model)
    both = {link: sha256(b"weights"), model: sha256(b"weights")}
    assert file_hashes([link, model], book, clock=later) == both
    assert len(read) == 1
    link.unlink()
    link.symlink_to(other)
    assert file_hashes([link], book, clock=later) == {link: sha256(b"other")}


DAMAGE = {
    "empty": b"",
    "cut off": b'{"format": 1, "files": {"',
    "not UTF-8": b"\xff\xfe{}",
    "a list": b"[]",
    "with files as a list": b'{"format": 1, "files": [1]}',
    "nested without end": b"[" * 200_000,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_book_is_written_anew(
    model: Path, book: Path, read: list[Path], damage: str
) -> None:
    book.write_bytes(DAMAGE[damage])
    for _ in range(2):
        assert file_hashes([model], book, clock=later) == {model: sha256(b"weights")}
    assert len(read) == 1


CHANGES = {
    "of another format": lambda text: text.replace('"format": 1', '"format": 2'),
    "too large": lambda text: " " * 2**20 + text,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_book_that_may_mean_something_else_is_not_used(
    model: Path, book: Path, change: str
) -> None:
    file_hashes([model], book, clock=later)
    text = book.read_text().replace(sha256(b"weights"), sha256(b"forged"))
    book.write_text(text)
    assert file_hashes([model], book, clock=later) == {model: sha256(b"forged")}
    book.write_text(CHANGES[change](text))
    assert file_hashes([model], book, clock=later) == {model: sha256(b"weights")}


def test_the_book_is_replaced_whole_so_that_a_process_reading_it_is_not_disturbed(
    model: Path, book: Path
) -> None:
    book.write_text("as it was")
    with book.open() as reader:
        file_hashes([model], book, clock=later)
        assert reader.read() == "as it was"


ENTRIES = [
    None,
    {},
    {"sha256": "0" * 64},
    {"size": 7, "mtime_ns": 1, "ctime_ns": 1, "inode": 1, "device": "1", "sha256": "0" * 64},
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_damaged_entry_is_not_used(model: Path, book: Path, entry: object) -> None:
    book.write_text(json.dumps({"format": 1, "files": {str(model): entry}}))
    assert file_hashes([model], book, clock=later) == {model: sha256(b"weights")}


@pytest.mark.parametrize("sha", ["", "abc", "0" * 63 + "G", 5, None])
def test_what_is_no_hash_is_not_returned(model: Path, book: Path, sha: object) -> None:
    file_hashes([model], book, clock=later)
    content = json.loads(book.read_text())
    content["files"][str(model)]["sha256"] = sha
    book.write_text(json.dumps(content))
    assert file_hashes([model], book, clock=later) == {model: sha256(b"weights")}


def test_a_book_that_cannot_be_written_costs_nothing_but_time(model: Path, tmp_path: Path) -> None:
    expected = {model: sha256(b"weights")}
    assert file_hashes([model], tmp_path / "nowhere" / "book", clock=later) == expected
    folder = tmp_path / "folder"
    folder.mkdir()
    assert file_hashes([model], folder, clock=later) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "model.onnx"]


def test_files_that_are_gone_or_changed_leave_the_book(
    model: Path, book: Path, tmp_path: Path
) -> None:
    gone, changed, kept = (tmp_path / name for name in ("gone", "changed", "kept"))
    for path in (gone, changed, kept):
        path.write_bytes(b"1")
    file_hashes([gone, changed, kept], book, clock=later)
    gone.unlink()
    changed.write_bytes(b"22")
    file_hashes([model], book, clock=later)
    assert set(json.loads(book.read_text())["files"]) == {str(model), str(kept)}


def test_the_book_is_bounded(tmp_path: Path, book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "_MOST_ENTRIES", 3)
    files = [tmp_path / f"{number}" for number in range(5)]
    for path in files:
        path.write_bytes(b"1")
    file_hashes(files, book, clock=later)
    assert len(json.loads(book.read_text())["files"]) == 3


def test_a_file_that_is_missing_is_an_error(tmp_path: Path, book: Path) -> None:
    with pytest.raises(FileNotFoundError):
        file_hashes([tmp_path / "missing"], book)


def test_several_processes_may_share_a_book(tmp_path: Path, book: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from syncer.embed.fingerprints import file_hashes\n"
        "for number in range(40):\n"
        "    path = Path(sys.argv[2], f'{sys.argv[3]}-{number}'); path.write_bytes(b'1')\n"
        "    later = lambda: time.time_ns() + 60 * 10**9\n"
        "    file_hashes([path], Path(sys.argv[1]), clock=later)\n"
    )
    files = tmp_path / "files"
    files.mkdir()
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(book), str(files), name])
        for name in ("one", "two")
    ]
    assert [process.wait(60) for process in processes] == [0, 0]
    entries = json.loads(book.read_text())["files"]
    assert {entry["sha256"] for entry in entries.values()} == {sha256(b"1")}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
