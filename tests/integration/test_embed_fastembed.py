"""The fastembed provider on the packaged model: order, limits, prefixes, agreement."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastembed import TextEmbedding

from syncer.embed import EmbedSpec, build, offline
from syncer.embed.dense import FastEmbedEmbedder
from syncer.embed.tokens import TokenCounter
from syncer.errors import EmbedderError, EmbedderStuckError, SettingsError
from syncer.model import Embedded
from syncer.recipes import canary_agrees

TEXT = "boats carry salt lemons letters across the bay before every storm and come home"

Rows = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def sentences(count: int) -> list[str]:
    chance = random.Random(11)  # noqa: S311 - a test's data
    words = TEXT.split()
    return [" ".join(chance.choices(words, k=chance.choice([3, 8, 20, 90]))) for _ in range(count)]


def rows(embedded: Embedded) -> Rows:
    return np.array(embedded.vectors, dtype=np.float32)


def load(spec: EmbedSpec) -> FastEmbedEmbedder:
    return FastEmbedEmbedder.load(spec)


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


@pytest.mark.rule("EM-04")
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


def test_counts_that_are_known_are_not_counted_again(embedder: FastEmbedEmbedder) -> None:
    texts = sentences(30)
    counts = embedder.counter.count(texts)
    counted: list[str] = []
    counter, embedder.counter = embedder.counter, _Counting(embedder.counter, counted)
    try:
        known = rows(embedder.embed(texts, counts))
        partly = rows(embedder.embed(texts, [0, *counts[1:]]))
    finally:
        embedder.counter = counter
    assert counted == texts[:1]
    assert np.array_equal(known, rows(embedder.embed(texts)))
    assert np.array_equal(known, partly)


class _Counting(TokenCounter):
    """Counts, and notes what."""

    def __init__(self, inner: TokenCounter, counted: list[str]) -> None:
        self.limit = inner.limit
        self._inner, self._counted = inner, counted

    def count(self, texts: Sequence[str]) -> list[int]:
        self._counted += texts
        return self._inner.count(texts)


def failing_for(embedder: FastEmbedEmbedder, refuses: Callable[[Sequence[str]], bool]) -> list[int]:
    """Let inferences fail in the real runtime; return a list that fills with their sizes."""
    model = embedder._model.model  # noqa: SLF001
    run = model.onnx_embed  # type: ignore[attr-defined]
    sizes: list[int] = []

    def spoilt(documents: Sequence[str], **options: object) -> object:
        sizes.append(len(documents))
        if refuses(documents):
            model.model.run(None, {})  # type: ignore[attr-defined]
        return run(documents, **options)

    model.onnx_embed = spoilt  # type: ignore[attr-defined]
    return sizes


@pytest.mark.rule("EM-05")
def test_a_text_that_fails_is_found_by_halving_and_takes_no_other_with_it(spec: EmbedSpec) -> None:
    embedder = load(replace(spec, token_budget=4096, threads=1))
    texts = [f"boat number {number}" for number in range(64)]
    failing_for(embedder, lambda documents: any("number 37" in each for each in documents))
    embedded = embedder.embed([*texts, texts[37]])
    embedder.close()
    assert sorted(embedded.refused) == [37, 64]
    assert "number" not in embedded.refused[37]
    assert [index for index, each in enumerate(embedded.vectors) if not len(each)] == [37, 64]


@pytest.mark.rule("EM-03")
def test_a_batch_that_is_too_much_together_is_computed_in_halves(spec: EmbedSpec) -> None:
    embedder = load(replace(spec, token_budget=4096, threads=1))
    texts = [f"boat number {number}" for number in range(64)]
    sizes = failing_for(embedder, lambda documents: len(documents) > 10)
    embedded = embedder.embed(texts)
    embedder.close()
    assert embedded.refused == {}
    assert all(len(each) for each in embedded.vectors)
    assert max(sizes) > 10


def test_a_model_that_fails_at_everything_is_no_fault_of_the_rows(spec: EmbedSpec) -> None:
    embedder = load(replace(spec, threads=1))
    failing_for(embedder, lambda _: True)
    with pytest.raises(EmbedderError, match="failed"):
        embedder.embed(["one", "two"])
    embedder.close()


@pytest.mark.rule("EM-15")
def test_an_inference_that_never_ends_is_given_up(spec: EmbedSpec) -> None:
    embedder = load(replace(spec, threads=1, batch_timeout=0.2))
    release = threading.Event()
    failing_for(embedder, lambda _: not release.wait(30))
    with pytest.raises(EmbedderStuckError, match="has not answered") as stuck:
        embedder.embed(["one"])
    assert stuck.value.exit_code == 7
    embedder.close()
    release.set()


@pytest.mark.parametrize("key", ["token_budget", "threads"])
def test_a_bound_below_one_is_refused(spec: EmbedSpec, key: str) -> None:
    changed = {"token_budget": replace(spec, token_budget=0), "threads": replace(spec, threads=-1)}
    with pytest.raises(SettingsError, match=rf"embed\.{key} is -?\d, but must be at least 1"):
        build(changed[key], {})


def test_the_recipe_names_the_files_by_their_sha256(embedder: FastEmbedEmbedder) -> None:
    recipe = embedder.recipe
    assert recipe.dense["files"] == {file.name: file.sha256 for file in offline.FILES}
    assert recipe.dense["pooling"] == "PooledNormalizedEmbedding"
    assert recipe.vector == "fast-all-minilm-l6-v2"
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


def test_equal_texts_are_computed_once(spec: EmbedSpec) -> None:
    embedder = load(spec)
    shapes = watch_batches(embedder)
    embedded = embedder.embed(["a boat", "a bay", "a boat", "a boat"])
    embedder.close()
    assert sum(count for count, _ in shapes) == 2
    assert len(embedded.vectors) == 4


def test_the_devices_in_the_settings_are_those_that_are_asked_for(spec: EmbedSpec) -> None:
    embedder = load(replace(spec, devices=("CPUExecutionProvider",), threads=3))
    assert len(embedder.embed(["a boat"]).vectors[0]) == 384
    embedder.close()
    with pytest.raises(SettingsError, match="names NoSuchExecutionProvider, which this") as refused:
        load(replace(spec, devices=("NoSuchExecutionProvider",)))
    assert "CPUExecutionProvider" in refused.value.message


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
