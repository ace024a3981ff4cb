"""A memory of every kind of row, its drift, and comparisons of it, for the tests of verify."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import memory
from qdrant_client import QdrantClient, models

from syncer.guard import Limit
from syncer.keys import point_id
from syncer.ports import Pipeline
from syncer.result import Drift, SyncResult, VerifyResult
from syncer.settings import Settings
from syncer.state import utc_now
from syncer.target import Connection
from syncer.verify import Sampling, mend, verify
from syncer.worker import Stop, Terms

LONG = "first part, a second part, and a third"  # four chunks
TEXTS = ["one", LONG, "three", LONG + "!", "five", "six", "seven", "eight", "nine", "ten"]
TABLE = "memory_events"
CLEAN: dict[str, set[str]] = {}


@dataclass
class Compared:
    """A memory in sync, its collection, and a look at both."""

    settings: Settings
    pipeline: Pipeline
    connection: Connection
    limit: Limit = field(default_factory=Limit)

    @property
    def client(self) -> QdrantClient:
        """The client that syncer uses."""
        return self.connection.client

    @property
    def terms(self) -> Terms:
        """On what terms it is compared and mended."""
        return Terms(utc_now, Stop(), self.limit, page=3)

    def execute(self, sql: str, *values: object) -> None:
        """Run one statement as the application does."""
        memory.execute(self.settings.source.database, sql, values)

    def sync(self) -> SyncResult:
        """Catch up."""
        return memory.sync(self.pipeline)

    def verify(self, sampling: Sampling | None = None) -> VerifyResult:
        """Compare both stores."""
        return verify(self.pipeline, self.terms, sampling=sampling)

    def found(self, sampling: Sampling | None = None) -> dict[str, set[str]]:
        """Compare both stores and return what differs by kind."""
        return named(self.verify(sampling))

    def mend(
        self, sampling: Sampling | None = None
    ) -> tuple[SyncResult, VerifyResult, VerifyResult]:
        """Compare, mend, compare again."""
        return mend(self.pipeline, self.terms, sampling=sampling)

    def points(self) -> memory.Points:
        """Return payload and vectors by id."""
        return memory.all_points(self.connection)

    def poison(self, **position: object) -> None:
        """Let the state say another position, as from an earlier process."""
        columns = ", ".join(f"{name} = ?" for name in position)
        sql = f"UPDATE syncer_generations SET writer = NULL, {columns}"
        self.execute(sql, *position.values())

    def quietly(self, sql: str, *values: object) -> None:
        """Change the table so that no log says so."""
        log = "DELETE FROM syncer_changes_memory_events WHERE seq > ?"
        head = memory.head_of(self.pipeline)
        self.execute(sql, *values)
        self.execute(log, head)


def named(result: VerifyResult) -> dict[str, set[str]]:
    """Return what differs, by kind."""
    return {kind.value: set(found) for kind, found in result.drift.items() if found}


@contextmanager
def compared(
    folder: Path, url: str | None, options: Mapping[str, object] | None = None
) -> Iterator[Compared]:
    """Make a memory of these texts in `folder` that is in sync, chunks of a few characters."""
    memory.make_memory(folder, TEXTS)
    given: dict[str, Any] = {"sync.window_rows": 3, "target.lock_wait": 5, **(options or {})}
    if url is not None:
        given |= {"target.path": "", "target.url": url, "target.timeout": 10}
    with opened(memory.settings_for(folder, **given)) as found:
        found.sync()
        yield found


@contextmanager
def opened(settings: Settings) -> Iterator[Compared]:
    """Open a memory as it is."""
    with memory.pipeline_for(settings, chunker=memory.by_characters) as (pipeline, connection):
        yield Compared(settings, pipeline, connection)


def same(points: memory.Points, others: memory.Points) -> bool:
    """Say whether these are the same points, their numbers nearly so."""
    return points.keys() == others.keys() and all(
        payload == others[one][0] and plain(vectors) == plain(others[one][1])
        for one, (payload, vectors) in points.items()
    )


def plain(vectors: Mapping[str, Any]) -> dict[str, object]:
    """Return vectors so that they can be compared."""
    return {
        name: [*vector.indices, *vector.values]
        if isinstance(vector, models.SparseVector)
        else [round(number, 4) for number in vector]
        for name, vector in vectors.items()
    }


def chunk(row: int, number: int) -> int | str:
    """Return the id of a row's chunk."""
    return point_id(TABLE, (row,), number)


Change = Callable[[Compared], None]


def lose_rows(here: Compared) -> None:
    """Take whole rows out of the collection."""
    here.client.delete("memory", [1, *(chunk(2, number) for number in range(4))])


def change_content(here: Compared) -> None:
    """Change what points say of their content, of metadata, and leave a row open."""
    for one, what in ((3, "content"), (5, "payload")):
        here.client.set_payload("memory", {what: "0" * 16}, [one], key="_sync")
    here.client.set_payload("memory", {"content": ""}, [4], key="_sync")


def copy_rows(here: Compared) -> None:
    """Leave points of rows that are not there: whole ones, several chunks, and a chunk alone."""
    for row, chunks, missing in ((901, 1, -1), (902, 3, -1), (903, 3, 0)):
        for number in range(chunks):
            if number != missing:
                put(here, chunk(row, number), str(row), number, chunks)


def put(here: Compared, identifier: int | str, row: str, number: int, chunks: int) -> None:
    """Write a point that speaks of a row."""
    said = {"row": row, "content": "c", "payload": "p", "text": "t"}
    said_of_chunks = {"chunk": number, "chunks": chunks}
    payload = {"document": "x", "metadata": {}, "_sync": {**said, **said_of_chunks}}
    name = here.pipeline.layout.vector
    struct = models.PointStruct(id=identifier, payload=payload, vector={name: [1.0] + [0.0] * 7})
    here.client.upsert("memory", [struct], wait=True)


def put_foreign(here: Compared) -> None:
    """Write points as other tools do: no book-keeping, or some that syncer would not write."""
    name = here.pipeline.layout.vector
    vector = {name: [1.0] + [0.0] * 7}
    for one, payload in (
        (800, {"document": "foreign"}),
        ("6a7f75b2-5afe-51b8-b4b4-da7ae14a678d", {}),
        (2**64 - 1, {"_sync": {"row": 7}}),
        (801, {"_sync": {"row": "not a key", "chunk": 0}}),
    ):
        struct = models.PointStruct(id=one, payload=payload, vector=vector)  # type: ignore[arg-type]
        here.client.upsert("memory", [struct], wait=True)


def break_chunks(here: Compared) -> None:
    """Take a chunk away, let one speak of other content, and add one that no row asks for."""
    here.client.delete("memory", [chunk(2, 2)])
    here.client.set_payload("memory", {"content": "0" * 16}, [chunk(4, 1)], key="_sync")
    put(here, chunk(6, 3), "6", 3, 4)


def drop_vectors(here: Compared) -> None:
    """Take a dense vector away, and a sparse one of a further chunk."""
    here.client.delete_vectors("memory", [here.pipeline.layout.vector], [7])
    here.client.delete_vectors("memory", [here.pipeline.layout.sparse], [chunk(2, 1)])


DRIFT: dict[Drift, tuple[Change, set[str]]] = {
    Drift.MISSING: (lose_rows, {"1", "2"}),
    Drift.STALE: (change_content, {"3", "4", "5"}),
    Drift.ORPHAN: (copy_rows, {"901", "902", "903"}),
    Drift.INCOMPLETE: (break_chunks, {"2", "4", "6"}),
    Drift.NO_VECTOR: (drop_vectors, {"2", "7"}),
    Drift.FOREIGN: (
        put_foreign,
        {"800", "801", "6a7f75b2-5afe-51b8-b4b4-da7ae14a678d", str(2**64 - 1)},
    ),
}
