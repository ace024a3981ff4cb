"""Turns texts into vectors: providers, packing and the recipe.

Importing this package is cheap: numpy, fastembed and onnxruntime are loaded by `build`, and only
if the provider needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from syncer.embed.spec import EmbedSpec
from syncer.errors import SettingsError

if TYPE_CHECKING:
    from syncer.embed.dense import FastEmbedEmbedder
    from syncer.embed.hashing import HashEmbedder

__all__ = ["EmbedSpec", "build"]


def build(spec: EmbedSpec, text: Mapping[str, object]) -> FastEmbedEmbedder | HashEmbedder:
    """Return the embedder that `spec` describes, its model loaded and its recipe complete.

    `text` says what happens to a text before it gets here and becomes the recipe's text part.
    Raises SettingsError for a provider, model or bound that cannot be, and EmbedderError for a
    model that is not there or does not load.
    """
    if spec.provider == "fastembed":
        from syncer.embed.dense import FastEmbedEmbedder  # noqa: PLC0415 - takes a second to import

        return FastEmbedEmbedder.load(spec, text)
    if spec.provider == "hash":
        from syncer.embed.hashing import HashEmbedder  # noqa: PLC0415 - imports numpy

        return HashEmbedder(spec, text)
    raise SettingsError(
        f"embed.provider is {spec.provider!r}, which is not one of: fastembed, hash"
    )
