"""Vectors that are there are used again, and none comes to sit on another text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import memory
import pytest

from syncer import reuse
from syncer.keys import point_id
from syncer.model import Embedded, Piece, Recipe, SparseVector, Vector
from syncer.plan import Chunker
from syncer.ports import Donor, Embedder, Pipeline
from syncer.reuse import lends
from syncer.state import utc_now
from syncer.target import Connection, StoredPoints

RECIPE = Recipe(
    "v",
    2,
    {"model": "m", "passage_prefix": "", "query_prefix": ""},
    {"chunk_size": 9},
    {"model": "bm25", "avg_len": 3.0},
    canary=(0.6, 0.8),
)


A, B, C = "abcdefghijkl", "mnopqrstuvwx", "yz01"
LONG = A + B + C


class Counting:
    """An embedder that notes what it is given."""

    def __init__(self, inner: Embedder) -> None:
        self._inner, self.recipe = inner, inner.recipe
        self.dense: list[str] = []
        self.words: list[str] = []

    def split(self, texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        """Pass on."""
        return self._inner.split(texts)

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Note and pass on."""
        self.dense += texts
        return self._inner.embed(texts, counts)

    def sparse(self, texts: Sequence[str]) -> Sequence[SparseVector]:
        """Note and pass on."""
        self.words += texts
        return self._inner.sparse(texts)

    def query(self, text: str) -> Vector:
        """Pass on."""
        return self._inner.query(text)

    def close(self) -> None:
        """Leave that to whoever opened it."""


Opened = tuple[Pipeline, Connection, Counting]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Opened]:
    """Give a memory of one row of three chunks and one of a single chunk, synced."""
    memory.make_memory(tmp_path, [LONG, "xy"])
    chunker = memory.by_characters
    with memory.pipeline_for(memory.settings_for(tmp_path), chunker=chunker) as (
        pipeline,
        connection,
    ):
        counting = Counting(pipeline.embedder)
        memory.sync(replace(pipeline, embedder=counting))
        counting.dense.clear()
        yield replace(pipeline, embedder=counting), connection, counting


def edit(folder: Path, text: str) -> None:
    """Give the long row another text."""
    memory.execute(
        folder / "memory.db", "UPDATE memory_events SET content = ? WHERE id = 1", [text]
    )


def stored(opened: Opened) -> dict[str, list[float]]:
    """Return the dense vectors of all points by their documents."""
    pipeline, connection, _ = opened
    generation, name = pipeline.state.position().generation, pipeline.layout.vector
    found = {}
    for payload, vectors in memory.all_points(connection, generation).values():
        assert isinstance(payload, dict)
        found[str(payload["document"])] = vectors[name]
    return found


def test_of_an_edited_row_only_the_chunks_that_are_new_are_embedded(
    made: Opened, tmp_path: Path
) -> None:
    pipeline, _, counting = made
    before = stored(made)
    assert set(before) == {A, B, C, "xy"}
    edit(tmp_path, A + "Z" * memory.CHUNK + C)
    result = memory.sync(pipeline)
    assert counting.dense == ["Z" * memory.CHUNK]
    assert (result.chunks, result.reused) == (3, 2)
    after = stored(made)
    embedded = pipeline.embedder.embed(list(after)).vectors
    for document, vector in zip(after, embedded, strict=True):
        assert after[document] == pytest.approx(list(vector), abs=1e-6)


def test_chunks_that_change_places_take_their_vectors_along(made: Opened, tmp_path: Path) -> None:
    pipeline, _, counting = made
    before = stored(made)
    edit(tmp_path, B + A + C)
    memory.sync(pipeline)
    assert counting.dense == []
    assert stored(made) == {document: pytest.approx(v, abs=1e-6) for document, v in before.items()}


def test_a_row_of_one_chunk_is_embedded_without_asking_for_its_old_vector(
    made: Opened, tmp_path: Path
) -> None:
    pipeline, _, counting = made
    memory.execute(tmp_path / "memory.db", "UPDATE memory_events SET content = 'z' WHERE id = 2")
    assert memory.sync(pipeline).reused == 0
    assert counting.dense == ["z"]


def test_the_same_recipe_lends_all_of_its_vectors() -> None:
    assert lends(RECIPE, RECIPE) == ("v", "bm25")


@pytest.mark.parametrize(
    ("theirs", "lent"),
    [
        (replace(RECIPE, text={"chunk_size": 3}), ("v", "bm25")),
        (replace(RECIPE, dense={**RECIPE.dense, "query_prefix": "q: "}), ("v", "bm25")),
        (replace(RECIPE, dense={**RECIPE.dense, "passage_prefix": "p: "}), ("bm25",)),
        (replace(RECIPE, dense={**RECIPE.dense, "model": "n"}), ("bm25",)),
        (replace(RECIPE, canary=(0.8, 0.6)), ("bm25",)),
        (replace(RECIPE, distance="Dot"), ("bm25",)),
        (replace(RECIPE, dimension=3, canary=(0.6, 0.8, 0.0)), ("bm25",)),
        (replace(RECIPE, sparse={}), ("v",)),
        (replace(RECIPE, sparse={**RECIPE.sparse, "avg_len": 4.0}), ("v",)),
    ],
)
def test_what_decides_a_vector_decides_whether_it_is_lent(
    theirs: Recipe, lent: tuple[str, ...]
) -> None:
    assert lends(theirs, RECIPE) == lent


def lent(opened: Opened, *, asked: list[str]) -> tuple[reuse.Lent, Chunker]:
    """Return what the collection lends to another one, and a chunker that notes its texts."""
    pipeline, connection, _ = opened
    generation, names = pipeline.state.position().generation, pipeline.donors[0].vectors
    lender = StoredPoints(connection, generation, 64, "document")

    def chunker(texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        asked.extend(texts)
        return memory.by_characters(texts)

    borrowing = replace(pipeline, chunker=chunker, donors=(Donor(lender, names, cuts_alike=True),))
    found = reuse.foreseen(borrowing, pipeline.source.rows([(1,), (2,)], utc_now()))
    return found, reuse.sparing(borrowing, found)


def texts_of(pieces: Sequence[Sequence[Piece]]) -> list[list[str]]:
    """Return the pieces' texts."""
    return [[piece.text for piece in each] for each in pieces]


def test_where_a_donor_has_cut_a_text_need_not_be_found_again(made: Opened) -> None:
    asked: list[str] = []
    found, split = lent(made, asked=asked)
    assert texts_of(split([LONG, "xy", "another text"])) == [
        [A, B, C],
        ["xy"],
        ["another text"],
    ]
    assert asked == ["another text"]
    assert len(found.dense) == len(found.sparse) == 4


@pytest.mark.parametrize("number", [0, 2])
def test_a_text_that_was_tampered_with_in_the_donor_is_cut_anew(made: Opened, number: int) -> None:
    _, connection, _ = made
    identifier = point_id("memory_events", (1,), number)
    connection.client.set_payload("memory", {"document": "tampered"}, points=[identifier])
    asked: list[str] = []
    _, split = lent(made, asked=asked)
    assert texts_of(split([LONG])) == [[A, B, C]]
    assert asked == [LONG]


def test_a_row_that_lost_a_chunk_in_the_donor_is_cut_anew(made: Opened) -> None:
    _, connection, _ = made
    connection.client.delete("memory", points_selector=[point_id("memory_events", (1,), 1)])
    asked: list[str] = []
    _, split = lent(made, asked=asked)
    assert texts_of(split([LONG])) == [[A, B, C]]
    assert asked == [LONG]
