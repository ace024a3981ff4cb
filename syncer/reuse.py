"""Vectors that need not be computed again: a point that is there has the vector of the same text.

The hash of exactly what the embedder was given says which text that is, so no vector can come to
sit on another one. Nothing is kept beside the collections: they are the store of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from syncer.keys import Key, PointId, encode_key, point_id
from syncer.model import (
    Chunk,
    Embedded,
    Piece,
    Recipe,
    Row,
    SparseVector,
    StoredVectors,
    Vector,
)
from syncer.plan import Chunker, RowPlan
from syncer.ports import Donor, Embedder, Pipeline
from syncer.recipes import canary_agrees
from syncer.text import digest

CLOSE = 0.1  # share by which a mean length may differ and stay what it was
_ASKED_ONLY = frozenset({"query_prefix"})  # of the dense part: what no stored vector depends on


@dataclass(frozen=True, slots=True)
class Lent:
    """What need not be computed: vectors by the hash of the text, cuts by that of the content."""

    dense: Mapping[str, Vector] = field(default_factory=dict)
    sparse: Mapping[str, SparseVector] = field(default_factory=dict)
    cuts: Mapping[str, Sequence[Piece]] = field(default_factory=dict)


NOTHING = Lent()


def lends(theirs: Recipe, ours: Recipe) -> tuple[str, ...]:
    """Return the names of the vectors in a generation made by `theirs` that `ours` would make too.

    Where texts are cut does not matter, since a vector is found by the hash of its text.
    """
    found = []
    if (
        _of_passages(theirs) == _of_passages(ours)
        and (theirs.dimension, theirs.distance) == (ours.dimension, ours.distance)
        and canary_agrees(theirs, ours)
    ):
        found.append(theirs.vector)
    if theirs.sparse and theirs.sparse == ours.sparse:
        found.append(theirs.sparse_vector)
    return tuple(found)


def _of_passages(recipe: Recipe) -> dict[str, object]:
    return {name: value for name, value in recipe.dense.items() if name not in _ASKED_ONLY}


def with_length_of(theirs: Recipe, ours: Recipe, close: float = CLOSE) -> Recipe:
    """Return `ours` with the mean length of `theirs`, if that is all that keeps words from lending.

    Up to a tenth (`close`), another mean moves BM25's weights by less than the length of any one
    text does.
    """
    there, here = theirs.sparse.get("avg_len"), ours.sparse.get("avg_len")
    if not isinstance(there, (int, float)) or not isinstance(here, (int, float)):
        return ours
    same = {**ours.sparse, "avg_len": there}
    if same != theirs.sparse or abs(there - here) > close * here:
        return ours
    return replace(ours, sparse=same)


def foreseen(pipeline: Pipeline, rows: Sequence[Row]) -> Lent:
    """Return vectors and cuts of the texts that a donor holds which cuts texts alike.

    Such a text need not be measured: where it is cut is known. Measuring is most of what is left
    to do where nothing has to be embedded.
    """
    dense: dict[str, Vector] = {}
    sparse: dict[str, SparseVector] = {}
    layout = pipeline.layout
    donors = (each for each in pipeline.donors if each.cuts_alike and not each.itself)
    donor = next((each for each in donors if layout.vector in each.vectors), None)
    if donor is None:
        return NOTHING
    keys = {point_id(layout.table, row.key): row.key for row in rows if row.present}
    long: dict[Key, StoredVectors] = {}
    for found in pipeline.retry(donor.lender.stored, list(keys), donor.vectors) if keys else ():
        if found.row == encode_key(keys[found.id]) and layout.vector in found.vectors:
            _keep(found, dense, sparse)
            if found.chunks > 1:
                long[keys[found.id]] = found
    return Lent(dense, sparse, _cuts(pipeline, donor, long, dense, sparse))


def _cuts(
    pipeline: Pipeline,
    donor: Donor,
    long: Mapping[Key, StoredVectors],
    dense: dict[str, Vector],
    sparse: dict[str, SparseVector],
) -> dict[str, Sequence[Piece]]:
    """Return where a donor has cut the texts of `long` rows, by the content's hash; keep vectors.

    A piece counts only if it is what the hash beside it says, and a row only if it is whole.
    """
    table, prefix = pipeline.layout.table, pipeline.layout.prefix
    ids = {
        point_id(table, key, number): (first.content, number)
        for key, first in long.items()
        for number in range(first.chunks)
    }
    others = [one for one, (_, number) in ids.items() if number]
    if not others:
        return {}
    stored = [*pipeline.retry(donor.lender.stored, others, donor.vectors), *long.values()]
    texts = pipeline.retry(donor.lender.pieces, list(ids))
    found: dict[str, dict[int, Piece]] = {}
    for one in stored:
        text, (content, number) = texts.get(one.id), ids[one.id]
        if text is not None and digest(prefix + text) == one.text and one.content == content:
            _keep(one, dense, sparse)
            found.setdefault(content, {})[number] = Piece(text)
    whole = {first.content: first.chunks for first in long.values()}
    return {
        content: [pieces[number] for number in range(whole[content])]
        for content, pieces in found.items()
        if content and len(pieces) == whole[content]
    }


def sparing(pipeline: Pipeline, known: Lent) -> Chunker:
    """Return the pipeline's chunker, which is not asked for texts whose cuts are `known`."""
    if not known.dense:
        return pipeline.chunker

    def cut(text: str) -> Sequence[Piece] | None:
        if digest(pipeline.layout.prefix + text) in known.dense:
            return (Piece(text),)
        return known.cuts.get(digest(text)) if known.cuts else None

    def split(texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        found = [cut(text) for text in texts]
        others = [text for text, there in zip(texts, found, strict=True) if there is None]
        pieces = iter(pipeline.chunker(others) if others else ())
        return [next(pieces) if there is None else there for there in found]

    return split


def borrow(pipeline: Pipeline, rows: Sequence[RowPlan], known: Lent) -> Lent:
    """Return the vectors that the pipeline's donors hold for the chunks of `rows`.

    The first donor that has one lends it; a donor is only asked for rows that lack one, `known`
    ones apart.
    """
    dense: dict[str, Vector] = dict(known.dense)
    sparse: dict[str, SparseVector] = dict(known.sparse)
    for donor in pipeline.donors:
        lacking = [
            row
            for row in rows
            if donor.can_help(row)
            and _lacks(row, dense, sparse if pipeline.layout.sparse else None)
        ]
        if not lacking:
            continue
        wanted = {chunk.text_hash for row in lacking for chunk in row.chunks}
        for found in of_rows(pipeline, donor, lacking):
            if found.text not in wanted:
                continue
            _keep(found, dense, sparse)
    return Lent(dense, sparse)


def _keep(found: StoredVectors, dense: dict[str, Vector], sparse: dict[str, SparseVector]) -> None:
    for vector in found.vectors.values():
        if isinstance(vector, SparseVector):
            sparse.setdefault(found.text, vector)
        else:
            dense.setdefault(found.text, vector)


def _lacks(
    row: RowPlan, dense: Mapping[str, Vector], sparse: Mapping[str, SparseVector] | None
) -> bool:
    return any(
        chunk.text_hash not in dense or (sparse is not None and chunk.text_hash not in sparse)
        for chunk in row.chunks
    )


def of_rows(pipeline: Pipeline, donor: Donor, rows: Sequence[RowPlan]) -> Iterator[StoredVectors]:
    """Yield what the donor holds of these rows: their chunk 0 first, which knows of the others."""
    table = pipeline.layout.table
    first = {point_id(table, row.key): row for row in rows}
    others: list[PointId] = []
    for found in pipeline.retry(donor.lender.stored, list(first), donor.vectors):
        row = first[found.id]
        if found.row == row.row:
            others += [point_id(table, row.key, n) for n in range(1, found.chunks)]
            yield found
    if others:
        yield from pipeline.retry(donor.lender.stored, others, donor.vectors)


def embedded(pipeline: Pipeline, chunks: Sequence[Chunk], lent: Lent) -> Embedded:
    """Return the vectors of `chunks` in their order: lent ones as they are, the others computed."""
    embedder = pipeline.embedder
    missing = [place for place, chunk in enumerate(chunks) if chunk.text_hash not in lent.dense]
    texts, counts = [chunks[n].text for n in missing], [chunks[n].tokens for n in missing]
    new = pipeline.retry(embedder.embed, texts, counts) if texts else Embedded(())
    if len(missing) == len(chunks):
        return new
    vectors = [lent.dense.get(chunk.text_hash, ()) for chunk in chunks]
    for place, vector in zip(missing, new.vectors, strict=True):
        vectors[place] = vector
    return Embedded(
        vectors,
        frozenset(missing[n] for n in new.truncated),
        {missing[n]: why for n, why in new.refused.items()},
        _sparse(chunks, lent, dict(zip(missing, new.sparse, strict=False)), embedder),
        reused=len(chunks) - len(missing),
    )


def _sparse(
    chunks: Sequence[Chunk], lent: Lent, new: Mapping[int, SparseVector], embedder: Embedder
) -> Sequence[SparseVector]:
    """Return the sparse vectors of `chunks`: `new` ones by place, lent ones, the rest computed."""
    if not embedder.recipe.sparse:
        return ()
    found = {
        place: vector
        for place, chunk in enumerate(chunks)
        if (vector := new.get(place) or lent.sparse.get(chunk.text_hash))
    }
    left = [place for place in range(len(chunks)) if place not in found]
    rest = embedder.sparse([chunks[place].text for place in left]) if left else ()
    found.update(zip(left, rest, strict=True))
    return [found[place] for place in range(len(chunks))]
