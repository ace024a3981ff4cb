"""Turns texts into vectors: providers, packing and the recipe.

Importing this package is cheap: numpy, fastembed and onnxruntime are loaded by `build`, and only
if the provider needs them.
"""

# ruff: noqa: PLC0415 - what takes a second to import is imported by who needs it

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from syncer.embed.http_spec import HttpSpec
from syncer.embed.spec import EmbedSpec, SparseSpec
from syncer.errors import RecipeError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from syncer.embed.chunking import ChunkSpec
    from syncer.embed.encoder import Chunker, Dense, Encoder
    from syncer.embed.sparse import SparseEncoder
    from syncer.embed.tokens import TokenCounter
    from syncer.model import Recipe

__all__ = ["EmbedSpec", "HttpSpec", "SparseSpec", "build", "by_recipe", "sparse_by_recipe"]

_PROVIDERS = ("fastembed", "openai", "hash")


def build(spec: EmbedSpec, text: Mapping[str, object]) -> Encoder:
    """Return the encoder that `spec` describes, its model loaded and its recipe complete.

    `text` says what happens to a text before it gets here and becomes a part of the recipe.
    Raises SettingsError for a provider, model or bound that cannot be, and EmbedderError for a
    model that is not there or does not load.
    """
    from syncer.embed.encoder import Encoder
    from syncer.embed.sparse import SparseEncoder

    sparse = SparseEncoder(spec.sparse) if spec.sparse else None  # the light part first
    dense, chunker = _dense(spec)
    return Encoder(dense, chunker, sparse, text)


def by_recipe(recipe: Recipe, spec: EmbedSpec) -> Encoder:
    """Return the encoder that makes the vectors of `recipe`.

    What decides a vector comes from the recipe, from `spec` only where files lie and what they are
    run with. Raises RecipeError if the recipe is not one of this syncer's; whether the files give
    the same vectors is for the caller to compare.
    """
    dense, text, sparse = recipe.dense, recipe.text, recipe.sparse
    try:
        wanted = replace(
            spec,
            provider=str(dense["provider"]),
            model=str(dense.get("model", spec.model)),
            model_path=_folder(dense, spec),
            passage_prefix=str(dense["passage_prefix"]),
            query_prefix=str(dense["query_prefix"]),
            chunk_tokens=_number(text["chunk_size"]),
            chunk_overlap=_number(text["chunk_overlap"]) or 0,
            dimension=_dimension(recipe),
            vector=recipe.vector,
            sparse=None,
        )
        rest = {"normaliser": text["normaliser"]}
    except (KeyError, TypeError) as error:
        raise RecipeError(
            f"the collection's recipe says nothing that this syncer understands of {error}",
            hint="It was made by another version. Install that, or build the collection anew.",
        ) from error
    from syncer.embed.encoder import Encoder

    provider, chunker = _dense(wanted)
    return Encoder(provider, chunker, sparse_by_recipe(recipe) if sparse else None, rest)


def _folder(dense: Mapping[str, object], spec: EmbedSpec) -> Path | None:
    """Return the settings' folder of a model, None if it is not that of the recipe's model."""
    model = str(dense.get("model", spec.model))
    if spec.model_path is None or dense["provider"] != "fastembed" or model == spec.model:
        return spec.model_path
    from syncer.embed.catalogue import find_entry
    from syncer.embed.folders import holds

    ours = holds(spec.model_path, find_entry(model), dense["files"], spec.models_dir)
    return spec.model_path if ours else None


def sparse_by_recipe(recipe: Recipe) -> SparseEncoder | None:
    """Return what makes the sparse vectors of `recipe`, None if it has none; loads no model."""
    from syncer.embed.sparse import SparseEncoder

    return SparseEncoder.from_recipe(recipe.sparse) if recipe.sparse else None


def _dense(spec: EmbedSpec) -> tuple[Dense, Chunker]:
    """Return the provider and what cuts texts for it."""
    from syncer.embed.chunking import ChunkSpec, TokenChunker, WordChunker

    cut = ChunkSpec(spec.chunk_tokens, spec.chunk_overlap)
    prefix = spec.passage_prefix or ""
    if spec.provider == "fastembed":
        from syncer.embed.dense import FastEmbedEmbedder

        local = FastEmbedEmbedder.load(spec)
        return local, TokenChunker(local.counter, cut, prefix)
    if spec.provider == "openai":
        return _remote(spec, cut, prefix)
    if spec.provider == "hash":
        from syncer.embed.hashing import HashEmbedder

        return HashEmbedder(spec), WordChunker(cut, prefix=prefix)
    raise SettingsError(
        f"embed.provider is {spec.provider!r}, which is not one of: {', '.join(_PROVIDERS)}"
    )


def _remote(spec: EmbedSpec, cut: ChunkSpec, prefix: str) -> tuple[Dense, Chunker]:
    """Return the provider behind an HTTP endpoint."""
    from syncer.embed.chunking import TokenChunker, Unit, WordChunker
    from syncer.embed.openai import HttpEmbedder

    if spec.endpoint is None:
        raise SettingsError('embed.url must be set, since embed.provider = "openai"')
    if spec.tokenizer is None and cut.size is None:
        raise SettingsError(
            "embed.chunk_tokens must be set: how many tokens the endpoint's model takes is not "
            "known here, and what is longer would be cut off in silence",
            hint="Set it to the model's limit, or embed.tokenizer to its tokenizer.json.",
        )
    http = replace(
        spec.endpoint,
        model=spec.model,
        dimension=spec.dimension,
        passage_prefix=prefix,
        query_prefix=spec.query_prefix or "",
        vector=spec.vector or "",
    )
    if spec.tokenizer is None:
        chunker: Chunker = WordChunker(cut, prefix=prefix, unit=Unit.BYTES)
    else:
        chunker = TokenChunker(_counter(spec.tokenizer), cut, prefix)
    return HttpEmbedder.load(http), chunker


def _counter(path: Path) -> TokenCounter:
    """Return the counter of a tokenizer.json; raise SettingsError if it is none."""
    from tokenizers import Tokenizer

    from syncer.embed.tokens import TokenCounter

    try:
        return TokenCounter(Tokenizer.from_file(str(path)))
    except Exception as error:  # the library raises nothing more precise
        raise SettingsError(
            f"embed.tokenizer {path} cannot be read as a tokenizer: {error}",
            hint="Give the tokenizer.json of the endpoint's model.",
        ) from error


def _dimension(recipe: Recipe) -> int | None:
    """Return the dimension to ask for: an endpoint's may have been left to its model."""
    asked = recipe.dense.get("dimension", recipe.dimension)
    return None if asked is None else _number(asked)


def _number(value: object) -> int | None:
    return None if value is None else int(str(value))
