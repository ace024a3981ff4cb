"""The hash provider: deterministic, of length one, and cheap to import until it is built."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.embed import EmbedSpec, build
from syncer.errors import SettingsError
from syncer.recipes import canary_agrees

SPEC = EmbedSpec(provider="hash")
DIGEST = "98403fba2b5b02bae6dece91d40eac6c71479ae1afaf967dff5d26e6df8e4c40"
EMBEDDER = build(SPEC, {"normaliser": 1})


def rows(*texts: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array(EMBEDDER.embed(texts).vectors, dtype=np.float32)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_every_text_has_a_vector_of_length_one(text: str) -> None:
    assert np.linalg.norm(rows(text)[0]) == pytest.approx(1.0, abs=1e-6)


def test_the_vectors_are_the_same_on_every_machine_and_python_version() -> None:
    # A change here makes every collection that was built with this provider look stale.
    data = rows("Boats carry salt.", "naïve café — 東京", "", "\ud800").astype("<f4").tobytes()
    assert hashlib.sha256(data).hexdigest() == DIGEST


def test_texts_that_share_words_are_nearer_than_texts_that_do_not() -> None:
    question, fitting, other = rows(
        "where do boats carry the salt",
        "boats carry salt and lemons across the bay",
        "a function that returns its argument unchanged",
    )
    assert question @ fitting > question @ other + 0.2


@pytest.mark.parametrize("other", ["man bites dog", "Dog bites man", "dog bites man "])
def test_another_order_or_spelling_gives_another_vector(other: str) -> None:
    first, second = rows("dog bites man", other)
    assert not np.array_equal(first, second)


def test_a_vector_does_not_depend_on_the_other_texts() -> None:
    assert np.array_equal(rows("one", "two", "three")[1], rows("two")[0])


def test_what_is_longer_than_a_chunk_is_cut_by_words() -> None:
    embedder = build(EmbedSpec(provider="hash", chunk_tokens=8), {})
    longer = "one two three four five six seven eight nine"
    (whole,), cut = embedder.split(["one two three", longer])
    assert whole.text == "one two three"
    assert [piece.tokens <= 8 for piece in cut] == [True, True]


def test_the_recipe_names_what_decides_the_vector() -> None:
    spec = EmbedSpec(provider="hash", dimension=64, passage_prefix="p: ")
    recipe = build(spec, {"n": 1}).recipe
    assert (recipe.vector, recipe.dimension, recipe.text["n"]) == ("hash-64", 64, 1)
    assert recipe.dense["passage_prefix"] == "p: "
    assert len(recipe.canary) == 64


def test_canaries_agree_only_between_embedders_that_make_the_same_vectors() -> None:
    other = build(EmbedSpec(provider="hash", passage_prefix="passage: "), {})
    smaller = build(EmbedSpec(provider="hash", dimension=64), {})
    assert canary_agrees(EMBEDDER.recipe, build(SPEC, {}).recipe)
    assert not canary_agrees(EMBEDDER.recipe, other.recipe)
    assert not canary_agrees(EMBEDDER.recipe, smaller.recipe)


def test_a_dimension_that_qdrant_does_not_take_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"embed\.dimension is 0"):
        build(EmbedSpec(provider="hash", dimension=0), {})


def test_an_unknown_provider_is_refused() -> None:
    known = "fastembed, openai, hash"
    with pytest.raises(SettingsError, match=f"'fastembd', which is not one of: {known}"):
        build(EmbedSpec(provider="fastembd"), {})


def test_importing_the_package_loads_no_heavy_library() -> None:
    heavy = "{'numpy', 'fastembed', 'onnxruntime', 'tokenizers', 'huggingface_hub'}"
    program = f"import sys, syncer.embed; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (EmbedSpec(), "fast-all-minilm-l6-v2"),
        (EmbedSpec(model="BAAI/bge-small-en-v1.5"), "fast-bge-small-en-v1.5"),
        (EmbedSpec(provider="hash", dimension=16), "hash-16"),
        (EmbedSpec(vector="dense"), "dense"),
    ],
)
def test_the_vector_is_named_by_its_model_unless_told_otherwise(spec: EmbedSpec, name: str) -> None:
    assert spec.vector_name == name
