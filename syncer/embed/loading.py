"""Loads a model's folder into fastembed, and says clearly what is wrong with one that is bad."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

# onnxruntime 1.32 keeps a device id in the user's cache folder and has an address to report to;
# it looks at this when it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from fastembed import TextEmbedding
from loguru import logger
from onnxruntime.capi import onnxruntime_pybind11_state as onnx  # type: ignore[import-untyped]

from syncer.embed import canary
from syncer.embed.catalogue import TOKENIZER_FILE, Entry
from syncer.embed.folders import ModelFolder, Origin, fetch, locate
from syncer.embed.spec import EmbedSpec
from syncer.errors import EmbedderError, SettingsError

# onnxruntime's exceptions have no base class of their own.
MODEL_ERRORS: tuple[type[Exception], ...] = (
    onnx.EPFail,
    onnx.EngineError,
    onnx.Fail,
    onnx.InvalidArgument,
    onnx.InvalidGraph,
    onnx.InvalidProtobuf,
    onnx.NoModel,
    onnx.NoSuchFile,
    onnx.NotImplemented,
    onnx.RuntimeException,
)
# What else fastembed and its tokenizer raise over a batch that they cannot take.
INFERENCE_ERRORS: tuple[type[Exception], ...] = (
    *(IndexError, MemoryError, RuntimeError, ValueError),
    *MODEL_ERRORS,
)
_LOAD_ERRORS: tuple[type[Exception], ...] = (OSError, ValueError, KeyError)
# What fastembed reads beside the weights, if it is there; each is one JSON object.
_SETTINGS_FILES = ("tokenizer_config.json", "config.json", "special_tokens_map.json")

# Operators that scale a whole batch by its largest number: a text's vector then depends on the
# texts beside it (cosine down to 0.976 between two batches, as measured on all-MiniLM-L6-v2).
_SCALES_BY_BATCH = b"DynamicQuantize"


class DamagedModelError(EmbedderError):
    """The model's files are there but cannot be read."""


def load(spec: EmbedSpec, entry: Entry) -> tuple[TextEmbedding, ModelFolder]:
    """Return the loaded model, one thread per inference, and the folder it came from.

    A cached model that turns out to be damaged is fetched once more if the network may be used.
    Raises EmbedderError naming the folder otherwise.
    """
    logger.disable("fastembed")
    folder = locate(spec, entry)
    try:
        return _open(folder, entry, spec.devices), folder
    except DamagedModelError:
        if folder.origin is not Origin.CACHE or spec.stays_offline:
            raise
    folder = fetch(spec.models_dir, entry, again=True)
    return _open(folder, entry, spec.devices), folder


def check_devices(devices: Sequence[str]) -> None:
    """Raise SettingsError for an execution provider that this onnxruntime does not have."""
    known = onnx.get_available_providers()
    if unknown := [name for name in devices if name not in known]:
        raise SettingsError(
            f"embed.devices names {', '.join(unknown)}, which this onnxruntime does not have; "
            f"there is {', '.join(known)}",
            hint="Install the onnxruntime for that device, or leave embed.devices out.",
        )


def mixes_batches(weights: Path) -> bool:
    """Say whether a model's vectors depend on the batch: its activations are quantised on the fly.

    Operators stand in an ONNX file by name, so that the name is looked for.
    """
    with weights.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(_SCALES_BY_BATCH) >= 0


def _open(folder: ModelFolder, entry: Entry, devices: Sequence[str]) -> TextEmbedding:
    _check_tokenizer(folder)
    try:
        model = TextEmbedding(
            entry.model,
            cache_dir=str(folder.path),  # fastembed creates its cache even when it needs none
            threads=None if entry.is_static else 1,
            providers=list(devices) or None,
            specific_model_path=str(folder.path),
        )
        model.model.tokenizer.encode(canary.SENTENCE)  # type: ignore[attr-defined] # all have one
    except MODEL_ERRORS as error:
        raise _damaged(folder, folder.path / entry.weights[0], str(error)) from error
    except _LOAD_ERRORS as error:
        raise _damaged(folder, folder.path, str(error)) from error
    except Exception as error:
        if type(error) is not Exception:  # the tokenizer's library raises nothing more precise
            raise
        raise _damaged(folder, folder.path / TOKENIZER_FILE, str(error)) from error
    return model


def _check_tokenizer(folder: ModelFolder) -> None:
    """Raise for a file that is cut off, or is JSON but not what belongs there."""
    if not isinstance(_json_object(folder, TOKENIZER_FILE).get("model"), dict):
        raise _damaged(folder, folder.path / TOKENIZER_FILE, "it has no model")
    for name in _SETTINGS_FILES:
        if (folder.path / name).is_file():
            _json_object(folder, name)


def _json_object(folder: ModelFolder, name: str) -> dict[str, object]:
    path = folder.path / name
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, path, str(error)) from error
    if not isinstance(content, dict):
        raise _damaged(folder, path, "it is not an object of JSON")
    return content


def _damaged(folder: ModelFolder, path: Path, reason: str) -> DamagedModelError:
    if folder.origin is Origin.GIVEN:
        hint = f"Delete {folder.whole} and copy the model there again."
    else:
        hint = f"Delete {folder.whole}; it is made again by the next run that has the files."
    return DamagedModelError(f"the model cannot be loaded: {path}: {reason}", hint=hint)
