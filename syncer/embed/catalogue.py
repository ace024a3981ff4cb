"""The dense models that fastembed knows, and the files each of them needs."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from fastembed import TextEmbedding

from syncer.errors import SettingsError

TOKENIZER_FILE = "tokenizer.json"
STATIC_MODEL_FILE = "model.safetensors"  # models without a network: a vector per token, averaged


@dataclass(frozen=True, slots=True)
class Entry:
    """A model: its name, its repository on the hub and its files' paths inside a folder."""

    model: str
    repository: str
    weights: tuple[str, ...]

    @property
    def is_static(self) -> bool:
        """Whether there is no network to run; such models take no number of threads."""
        return STATIC_MODEL_FILE in self.weights

    @property
    def needed(self) -> tuple[str, ...]:
        """The files without which the model cannot be loaded."""
        tokenizer_config = () if self.is_static else ("tokenizer_config.json",)
        return (*self.weights, TOKENIZER_FILE, *tokenizer_config)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The files to fetch: the needed ones, and those that are read where they exist."""
        return (*self.needed, "config.json", "special_tokens_map.json")

    def missing(self, folder: Path) -> list[str]:
        """Return which of the needed files are not in `folder`."""
        return [name for name in self.needed if not (folder / name).is_file()]


def find_entry(model: str) -> Entry:
    """Return the entry of `model`, upper and lower case being the same.

    Raises SettingsError with the closest name if fastembed has no dense model of that name.
    """
    known = {str(entry["model"]).lower(): entry for entry in TextEmbedding.list_supported_models()}
    found = known.get(model.lower())
    if found is None:
        names = [str(entry["model"]) for entry in known.values()]
        raise SettingsError(
            f"embed.model is {model!r}, which is not a dense model of fastembed",
            hint=_suggestion(model, names),
        )
    return Entry(
        model=str(found["model"]),
        repository=str(found["sources"]["hf"]),
        weights=(str(found["model_file"]), *map(str, found["additional_files"])),
    )


def _suggestion(model: str, names: list[str]) -> str:
    """Return the closest of `names`, compared as a whole and by the part after the slash."""
    wanted = model.lower()
    spellings = {name.lower(): name for name in names}
    spellings |= {name.rsplit("/", maxsplit=1)[-1].lower(): name for name in names}
    for candidate in (wanted, wanted.rsplit("/", maxsplit=1)[-1]):
        if close := difflib.get_close_matches(candidate, spellings, n=1):
            return f"Did you mean {spellings[close[0]]!r}?"
    return f"There are: {', '.join(sorted(names))}"
