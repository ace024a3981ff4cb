"""The fastembed provider on the packaged model: order, limits, prefixes, agreement."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastembed import TextEmbedding

from syncer.embed import EmbedSpec, build, offline
from syncer.embed.dense import FastEmbedEmbedder
from syncer.errors import SettingsError
from syncer.generations import canary_agrees
from syncer.model import Embedded

TEXT = "boats carry salt lemons letters across the bay before every storm and come home"

Rows = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def sentences(count: int) -> list[str]:
    chance = random.Random(11)  # noqa: S311 - a test's data
    words = TEXT.split()
    return [" ".join(chance.choices(words, k=chance.choice([3, 8, 20, 90]))) for _ in range(count)]


def rows(embedded: Embedded) -> Rows:
    return np.array(embedded.vectors, dtype=np.float32)


def load(spec: EmbedSpec) -> FastEmbedEmbedder:
    embedder = build(spec, {"normaliser": 1})
    assert isinstance(embedder, FastEmbedEmbedder)
    return embedder


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> EmbedSpec:
    return EmbedSpec(cache_dir=tmp_path_factory.mktemp("models"), threads=2, offline=True)


@pytest.fixture(scope="module")
def embedder(spec: EmbedSpec) -> Iterator[FastEmbedEmbedder]:
    embedder = load(spec)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def folder(spec: EmbedSpec, embedder: FastEmbedEmbedder) -> Path:
    assert embedder.recipe.dimension == 384
    return spec.models_dir / offline.FOLDER


def test_vectors_agree_with_plain_fastembed_in_the_order_of_the_texts(
    embedder: FastEmbedEmbedder, folder: Path
) -> None:
    texts = sentences(60)
    plain = TextEmbedding(offline.MODEL, specific_model_path=str(folder))
    expected = np.array(list(plain.embed(texts)))
    cosines = np.sum(rows(embedder.embed(texts)) * expected, axis=1)
    assert cosines.min() > 0.9999


def test_a_vector_does_not_depend_on_the_texts_it_is_computed_with(
    embedder: FastEmbedEmbedder,
) -> None:
    texts = sentences(40)
    alone = np.vstack([rows(embedder.embed([text])) for text in texts])
    assert np.abs(rows(embedder.embed(texts)) - alone).max() < 1e-5


def test_repeated_texts_get_the_same_vector(embedder: FastEmbedEmbedder) -> None:
    first, second, third = rows(embedder.embed(["a boat", "a bay", "a boat"]))
    assert np.array_equal(first, third)
    assert first @ second < 0.99


def test_texts_longer_than_the_limit_are_cut_and_reported(embedder: FastEmbedEmbedder) -> None:
    fits, longer = "boat " * 254, "boat " * 255  # and two special tokens make 256 and 257
    embedded = embedder.embed(["short", longer, fits, longer])
    assert embedded.truncated == {1, 3}
    assert rows(embedded)[1] @ rows(embedded)[2] == pytest.approx(1.0, abs=1e-5)


def test_no_texts_give_no_vectors(embedder: FastEmbedEmbedder) -> None:
    assert embedder.embed([]) == Embedded(())


def test_an_empty_text_has_a_vector_too(embedder: FastEmbedEmbedder) -> None:
    assert np.linalg.norm(embedder.embed([""]).vectors[0]) == pytest.approx(1.0, abs=1e-5)


def test_a_question_finds_the_text_that_answers_it(embedder: FastEmbedEmbedder) -> None:
    texts = ["Paris is the capital of France.", "Bread is made of flour and water.", "It rained."]
    scores = rows(embedder.embed(texts)) @ np.asarray(embedder.query("What do bakers mix?"))
    assert scores.argmax() == 1


def test_prefixes_are_put_before_passages_and_questions_and_stand_in_the_recipe(
    spec: EmbedSpec, embedder: FastEmbedEmbedder
) -> None:
    prefixed = load(replace(spec, passage_prefix="passage: ", query_prefix="query: "))
    passage, question = prefixed.embed(["a boat"]).vectors[0], prefixed.query("a boat")
    prefixed.close()
    expected = rows(embedder.embed(["passage: a boat", "query: a boat"]))
    assert np.allclose([passage, question], expected, atol=1e-5)
    assert prefixed.recipe.dense["passage_prefix"] == "passage: "
    assert prefixed.recipe.dense["query_prefix"] == "query: "


def test_a_lower_token_limit_cuts_earlier_and_stands_in_the_recipe(
    spec: EmbedSpec, embedder: FastEmbedEmbedder
) -> None:
    short = load(replace(spec, max_tokens=5))
    embedded = short.embed(["one two three", "one two three four"])
    short.close()
    assert embedded.truncated == {1}
    cut = embedder.embed(["one two three"]).vectors[0]
    assert np.allclose(rows(embedded), [cut, cut], atol=1e-5)
    assert (short.recipe.dense["max_tokens"], embedder.recipe.dense["max_tokens"]) == (5, 256)


@pytest.mark.parametrize("max_tokens", [0, 2, 257])
def test_a_token_limit_the_model_cannot_keep_is_refused(spec: EmbedSpec, max_tokens: int) -> None:
    with pytest.raises(SettingsError, match="must be from 3 to 256 for this model"):
        build(replace(spec, max_tokens=max_tokens), {})


@pytest.mark.parametrize("key", ["token_budget", "threads"])
def test_a_bound_below_one_is_refused(spec: EmbedSpec, key: str) -> None:
    changed = {"token_budget": replace(spec, token_budget=0), "threads": replace(spec, threads=-1)}
    with pytest.raises(SettingsError, match=rf"embed\.{key} is -?\d, but must be at least 1"):
        build(changed[key], {})


def test_the_recipe_names_the_files_by_their_sha256(embedder: FastEmbedEmbedder) -> None:
    recipe = embedder.recipe
    assert recipe.dense["files"] == {file.name: file.sha256 for file in offline.FILES}
    assert recipe.dense["pooling"] == "PooledNormalizedEmbedding"
    assert (recipe.vector, dict(recipe.text)) == ("fast-all-minilm-l6-v2", {"normaliser": 1})
    assert len(recipe.canary) == 384


def test_the_canary_agrees_with_itself_and_not_with_another_prefix(
    spec: EmbedSpec, embedder: FastEmbedEmbedder
) -> None:
    canaries = []
    for prefix in (None, "unrelated words about a garden: "):
        other = load(replace(spec, passage_prefix=prefix))
        canaries.append(canary_agrees(embedder.recipe, other.recipe))
        other.close()
    assert canaries == [True, False]


@pytest.mark.parametrize(
    ("model", "suggestion"),
    [
        ("sentence-transformers/all-MiniLM-L6-v3", "sentence-transformers/all-MiniLM-L6-v2"),
        ("all-minilm-l6-v2", "sentence-transformers/all-MiniLM-L6-v2"),
        ("BAAI/bge-smal-en-v1.5", "BAAI/bge-small-en-v1.5"),
    ],
)
def test_an_unknown_model_is_refused_with_the_closest_name(
    spec: EmbedSpec, model: str, suggestion: str
) -> None:
    with pytest.raises(SettingsError, match=f"Did you mean '{suggestion}'") as refused:
        build(replace(spec, model=model), {})
    assert repr(model) in refused.value.message


def watch_batches(embedder: FastEmbedEmbedder) -> list[tuple[int, int]]:
    """Return a list that fills with the texts and the longest text of each batch."""
    shapes: list[tuple[int, int]] = []
    model = embedder._model.model  # noqa: SLF001
    run = model.onnx_embed  # type: ignore[attr-defined]

    def watched(documents: Sequence[str], **options: object) -> object:
        output = run(documents, **options)
        shapes.append(output.input_ids.shape)
        return output

    model.onnx_embed = watched  # type: ignore[attr-defined]
    return shapes


def test_a_batch_holds_no_more_tokens_than_the_budget(spec: EmbedSpec) -> None:
    embedder = load(replace(spec, token_budget=64))
    shapes = watch_batches(embedder)
    embedder.embed(sentences(50))
    embedder.close()
    assert len(shapes) > 10
    assert max(count for count, _ in shapes) > 1
    assert all(count == 1 or count * longest <= 64 for count, longest in shapes)


def test_a_model_whose_vectors_depend_on_the_batch_gets_each_text_alone(
    spec: EmbedSpec, folder: Path, tmp_path: Path
) -> None:
    marked = Path(shutil.copytree(folder, tmp_path / "marked"))
    with (marked / "model.onnx").open("ab") as file:
        file.write(b"\x32\x15DynamicQuantizeLinear")  # a doc_string, as ONNX encodes it
    embedder = load(replace(spec, model_path=marked))
    shapes = watch_batches(embedder)
    embedder.embed(sentences(20))
    embedder.close()
    assert {count for count, _ in shapes} == {1}
