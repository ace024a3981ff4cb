"""Whether what readers see equals the table: every row, its text, its metadata, its vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import memory
import pytest
from qdrant_client import QdrantClient, models

from syncer import embed
from syncer.cli import specs
from syncer.embed.encoder import Encoder
from syncer.model import Phase, Recipe
from syncer.settings import Settings
from syncer.state import Generation, StateStore
from syncer.target import Catalog, Connection, connect


@dataclass(frozen=True, slots=True)
class Seen:
    """A row as readers see it: the chunks' texts without blanks, and what goes along."""

    text: str
    metadata: Mapping[str, object]


def generations(settings: Settings) -> list[Generation]:
    """Return what the state knows."""
    with closing(StateStore(settings.source.database)) as store:
        return store.generations(settings.target.collection)


def serving(settings: Settings) -> str:
    """Return the one generation that serves, by the state's word and the alias's."""
    (one,) = [each.generation for each in generations(settings) if each.serving]
    with connect(specs.target_spec(settings)) as connection:
        assert Catalog(connection).resolve(settings.target.collection) == one
    return one


def collections(settings: Settings) -> set[str]:
    """Return the names of all collections that are there."""
    with connect(specs.target_spec(settings)) as connection:
        return {each.name for each in connection.client.get_collections().collections}


def in_table(database: Path, where: str = "1") -> dict[str, Seen]:
    """Return what readers should see of the table."""
    with closing(memory.write(database)) as connection:
        rows = connection.execute(
            f"SELECT id, content, agent, scope FROM memory_events WHERE {where}"
        ).fetchall()
    return {
        str(key): Seen("".join(content.split()), {"agent": agent, "scope": scope})
        for key, content, agent, scope in rows
        if content.strip()
    }


def in_collection(client: QdrantClient, name: str) -> dict[str, Seen]:
    """Return the rows of a collection whose chunks are all there and whole."""
    chunks: dict[str, dict[int, models.Record]] = defaultdict(dict)
    for record in points(client, name):
        said = (record.payload or {})["_sync"]
        chunks[said["row"]][said["chunk"]] = record
    return {row: _joined(row, found) for row, found in chunks.items()}


def points(client: QdrantClient, name: str, *, vectors: bool = False) -> Iterator[models.Record]:
    """Yield all points of a collection."""
    offset = None
    while True:
        found, offset = client.scroll(name, limit=1000, offset=offset, with_vectors=vectors)
        yield from found
        if offset is None:
            return


def _joined(row: str, chunks: Mapping[int, models.Record]) -> Seen:
    payloads = [chunks[number].payload or {} for number in sorted(chunks)]
    assert sorted(chunks) == list(range(len(chunks))), f"row {row} lacks chunks"
    assert payloads[0]["_sync"]["chunks"] == len(chunks), f"row {row} is not whole"
    assert payloads[0]["_sync"]["content"], f"row {row} was opened and not written"
    text = "".join("".join(payload["document"].split()) for payload in payloads)
    metadata = payloads[0]["metadata"]
    assert all(payload["metadata"] == metadata for payload in payloads)
    return Seen(text, {name: metadata[name] for name in ("agent", "scope")})


def assert_equal(settings: Settings, where: str = "1", *, sample: int = 10**6) -> None:
    """See that exactly one generation serves and equals the table, vectors included.

    Of `sample` points the text is embedded again, by the generation's own recipe.
    """
    name = serving(settings)
    with connect(specs.target_spec(settings)) as connection:
        found = in_collection(connection.client, settings.target.collection)
        assert found == in_table(settings.source.database, where)
        assert_vectors(settings, connection, name, sample)
    ours = generations(settings)
    assert all(each.phase is Phase.SERVING for each in ours if each.serving)


def assert_vectors(settings: Settings, connection: Connection, name: str, sample: int) -> None:
    """See that each vector is the one that the generation's recipe gives its text."""
    recipe = Catalog(connection).describe(name).recipe
    records = list(points(connection.client, name, vectors=True))
    records = records[:: max(1, len(records) // sample)]
    texts = [(record.payload or {})["document"] for record in records]
    with encoder(settings, recipe) as embedder:
        again = embedder.embed(texts)
    for place, record in enumerate(records):
        vectors = record.vector
        assert isinstance(vectors, dict)
        dense = cast("list[float]", vectors[recipe.vector])
        cosine = sum(a * b for a, b in zip(dense, again.vectors[place], strict=True))
        assert cosine == pytest.approx(1.0, abs=1e-3), f"row {record.id} has another's vector"
        if recipe.sparse:
            words = vectors[recipe.sparse_vector]
            assert isinstance(words, models.SparseVector)
            assert sorted(words.indices) == sorted(again.sparse[place].indices)


@contextmanager
def encoder(settings: Settings, recipe: Recipe) -> Iterator[Encoder]:
    """Load what a generation was made with, by its `recipe`."""
    with closing(embed.by_recipe(recipe, specs.embed_spec(settings))) as found:
        yield found
