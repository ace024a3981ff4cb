"""From SQLite to Qdrant's local mode: what is written, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import memory
import pytest

from syncer.errors import (
    ExitCode,
    IdentityError,
    RecipeError,
    SchemaError,
    TargetError,
    TargetUnavailableError,
)
from syncer.model import SYNC_KEY, Embedded, Piece, Point, SparseVector
from syncer.plan import Chunker
from syncer.ports import Embedder, Pipeline, State, Target
from syncer.result import SyncResult
from syncer.retry import within
from syncer.settings import Settings
from syncer.sync import sync_once
from syncer.target import Connection
from syncer.worker import Stop, Terms, catch_up
from syncer.write import check_token

NOW = "2030-01-01T00:00:00.000Z"


@dataclass
class Memory:
    """A memory in a folder, and a pipeline on it."""

    settings: Settings
    pipeline: Pipeline
    connection: Connection

    def execute(self, sql: str, *values: object) -> None:
        """Run and commit a statement."""
        memory.execute(self.settings.source.database, sql, values)

    def sync(self) -> SyncResult:
        """Catch up."""
        return memory.sync(self.pipeline)

    def points(self) -> memory.Points:
        """Return all points."""
        return memory.all_points(self.connection)

    def documents(self) -> dict[object, object]:
        """Return the documents by point id."""
        return {key: payload["document"] for key, (payload, _) in self.points().items()}  # type: ignore[index]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings for a memory of three rows."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    return memory.settings_for(tmp_path)


@pytest.fixture
def made(settings: Settings) -> Iterator[Memory]:
    """A memory of three rows, and a pipeline that has caught up with it."""
    with memory.pipeline_for(settings, chunker=memory.by_characters) as (pipeline, connection):
        found = Memory(settings, pipeline, connection)
        found.sync()
        yield found


class CountingEmbedder:
    """The real embedder, which counts what it is given."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.recipe = inner.recipe
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Count and pass on."""
        self.texts += texts
        return self._inner.embed(texts, counts)

    def split(self, texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        """Pass on."""
        return self._inner.split(texts)

    def sparse(self, texts: Sequence[str]) -> Sequence[SparseVector]:
        """Pass on."""
        return self._inner.sparse(texts)

    def query(self, text: str) -> Sequence[float]:
        """Pass on."""
        return self._inner.query(text)

    def close(self) -> None:
        """Pass on."""
        self._inner.close()


def counting(found: Memory) -> CountingEmbedder:
    """Let the memory's pipeline count what it embeds from now on."""
    embedder = CountingEmbedder(found.pipeline.embedder)
    found.pipeline = replace(found.pipeline, embedder=embedder)
    return embedder


def test_rows_become_points_under_their_own_ids(made: Memory) -> None:
    assert made.documents() == {1: "one", 2: "two", 3: "three"}
    payload, vectors = made.points()[1]
    assert sorted(vectors) == ["bm25", "hash-8"]
    assert payload == {
        "document": "one",
        "metadata": {
            "agent": "a",
            "scope": "s",
            "source": "x",
            "importance": 0.5,
            "created_at": payload["metadata"]["created_at"],  # type: ignore[index]
            "metadata": {},
            "sqlite_id": 1,
        },
        SYNC_KEY: payload[SYNC_KEY],  # type: ignore[index]
    }


def test_edits_deletes_and_new_rows_follow(made: Memory) -> None:
    made.execute("UPDATE memory_events SET content = 'uno' WHERE id = 1")
    made.execute("DELETE FROM memory_events WHERE id = 2")
    made.execute("INSERT INTO memory_events (content, scope, source) VALUES ('four', 's', 'x')")
    result = made.sync()
    assert (result.embedded, result.deleted, result.unchanged) == (2, 1, 0)
    assert made.documents() == {1: "uno", 3: "three", 4: "four"}


@pytest.mark.rule("CT-16")
def test_metadata_alone_is_written_to_every_chunk_and_embeds_nothing(made: Memory) -> None:
    made.execute("UPDATE memory_events SET content = 'a text of three chunks, surely' WHERE id = 1")
    made.sync()
    vectors = {key: vector for key, (_, vector) in made.points().items()}
    embedder = counting(made)
    made.execute("UPDATE memory_events SET agent = 'b', metadata = '{\"k\": 1}' WHERE id = 1")
    result = made.sync()
    assert (result.payload_only, result.embedded, embedder.texts) == (1, 0, [])
    chunks = [p for p, _ in made.points().values() if p[SYNC_KEY]["row"] == "1"]  # type: ignore[index]
    assert len(chunks) == 3
    assert all(p["metadata"]["agent"] == "b" for p in chunks)  # type: ignore[index]
    assert all(p["metadata"]["metadata"] == {"k": 1} for p in chunks)  # type: ignore[index]
    assert {key: vector for key, (_, vector) in made.points().items()} == vectors


@pytest.mark.rule("CS-02")
def test_a_text_that_shrinks_leaves_no_chunk_behind(made: Memory) -> None:
    made.execute("UPDATE memory_events SET content = 'a text of three chunks, surely' WHERE id = 1")
    made.sync()
    assert len(made.points()) == 5
    made.execute("UPDATE memory_events SET content = 'short' WHERE id = 1")
    made.sync()
    assert made.documents() == {1: "short", 2: "two", 3: "three"}


@pytest.mark.rule("SR-13")
def test_a_row_without_text_is_taken_out_and_comes_back(made: Memory) -> None:
    made.execute("UPDATE memory_events SET content = ' ' WHERE id = 1")
    result = made.sync()
    assert (result.deleted, result.empty) == (1, 1)
    assert set(made.points()) == {2, 3}
    made.execute("UPDATE memory_events SET content = 'one' WHERE id = 1")
    made.sync()
    assert set(made.points()) == {1, 2, 3}


def test_superseded_deleted_and_expired_rows_leave_the_index(made: Memory) -> None:
    made.execute("UPDATE memory_events SET superseded_by = 3 WHERE id = 1")
    made.execute("UPDATE memory_events SET expires_at = '2029-01-01' WHERE id = 2")
    made.sync()
    assert set(made.points()) == {2, 3}
    memory.sync(made.pipeline, now=lambda: NOW)
    assert set(made.points()) == {3}


@pytest.mark.rule("CT-17")
def test_an_edit_that_is_taken_back_before_the_run_writes_no_point(made: Memory) -> None:
    before = made.points()
    embedder = counting(made)
    made.execute("UPDATE memory_events SET content = 'other' WHERE id = 1")
    made.execute("UPDATE memory_events SET content = 'one' WHERE id = 1")
    result = made.sync()
    assert (result.unchanged, result.embedded, embedder.texts) == (1, 0, [])
    assert made.points() == before


def test_replayed_from_nothing_everything_is_unchanged(settings: Settings) -> None:
    memory.sync_memory(settings)
    before = memory.points_in(settings)
    memory.execute(
        settings.source.database, "UPDATE syncer_generations SET last_id = NULL, walked = 0"
    )
    result = memory.sync_memory(settings)
    assert (result.read, result.unchanged, result.embedded) == (3, 3, 0)
    assert memory.points_in(settings) == before


def test_an_upsert_that_fails_leaves_the_position_to_the_byte(made: Memory) -> None:
    class Refusing:
        """The real target, but no upsert arrives."""

        def __getattr__(self, name: str) -> object:
            return getattr(made.pipeline.target, name)

        def upsert(self, points: Sequence[Point]) -> None:
            raise TargetUnavailableError(f"{len(points)} points did not arrive")

    made.execute("UPDATE memory_events SET content = 'uno' WHERE id = 1")
    before = made.pipeline.state.position()
    target: Target = Refusing()  # type: ignore[assignment]
    with pytest.raises(TargetUnavailableError):
        memory.sync(replace(made.pipeline, target=target))
    assert made.pipeline.state.position() == before
    made.sync()
    assert made.documents()[1] == "uno"


def test_a_refusal_is_tried_again_only_if_that_makes_sense(made: Memory) -> None:
    class Failing:
        """The real embedder, which fails at first."""

        def __init__(self, inner: Embedder, errors: list[Exception]) -> None:
            self._inner, self._errors = inner, errors
            self.recipe = inner.recipe

        def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
            if self._errors:
                raise self._errors.pop()
            return self._inner.embed(texts, counts)

        def split(self, texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
            return self._inner.split(texts)

        def sparse(self, texts: Sequence[str]) -> Sequence[SparseVector]:
            return self._inner.sparse(texts)

        def query(self, text: str) -> Sequence[float]:
            return self._inner.query(text)

        def close(self) -> None:
            self._inner.close()

    slept: list[float] = []
    retry = within(lambda _: 60, sleep=slept.append)
    made.execute("UPDATE memory_events SET content = 'uno' WHERE id = 1")
    flaky = Failing(made.pipeline.embedder, [TargetUnavailableError(), TargetUnavailableError()])
    memory.sync(replace(made.pipeline, embedder=flaky, retry=retry))
    assert len(slept) == 2
    made.execute("UPDATE memory_events SET content = 'eins' WHERE id = 1")
    broken = Failing(made.pipeline.embedder, [TargetError("no")])
    with pytest.raises(TargetError):
        memory.sync(replace(made.pipeline, embedder=broken, retry=retry))
    assert len(slept) == 2


def test_what_is_tried_in_vain_says_how_often(made: Memory) -> None:
    def refuse() -> None:
        raise TargetUnavailableError("no answer")

    retry = within(lambda _: 0.0, sleep=lambda _: None)
    with pytest.raises(TargetUnavailableError, match=r"no answer \(tried 1 times in 0 s\)"):
        retry(refuse)


def test_a_run_stops_between_two_windows_when_asked(settings: Settings) -> None:
    options = {"sync.window_rows": 1}
    with memory.pipeline_for(memory.settings_for(settings.source.database.parent, **options)) as (
        pipeline,
        connection,
    ):
        stop = Stop()
        result = catch_up(
            pipeline,
            Terms(lambda: NOW, stop),
            head=memory.head_of(pipeline),
            report=lambda _: stop.ask(ExitCode.TERMINATED),
        )
        assert result.more
        assert len(memory.all_points(connection)) == 1
        assert memory.sync(pipeline).embedded == 2


def test_the_collection_says_what_it_is(made: Memory) -> None:
    (collection,) = made.connection.client.get_collections().collections
    assert collection.name.startswith("memory--")
    config = made.connection.client.get_collection("memory").config
    assert config.metadata is not None
    description = config.metadata["syncer"]
    assert description["table"] == "memory_events"
    assert description["recipe"]["vector"] == "hash-8"
    assert description["recipe"]["canary"]
    assert config.metadata["syncer_token"] in made.pipeline.state.tokens()


def test_two_interruptions_in_a_row_leave_a_token_that_is_known(settings: Settings) -> None:
    memory.sync_memory(settings)
    path = settings.source.database

    def interrupted_at(step: str) -> None:
        """Run until the token's `step` has been done, and end there."""
        with memory.pipeline_for(settings) as (pipeline, _):
            state, target = pipeline.state, pipeline.target
            carried = check_token(state, target)
            state.begin_token(step, carried)
            if step == "written":
                target.write_token(step)

    interrupted_at("written")
    interrupted_at("only pending")
    memory.execute(path, "UPDATE memory_events SET content = 'uno' WHERE id = 1")
    assert memory.sync_memory(settings).embedded == 1


def test_a_run_leaves_one_token_for_all_its_windows_and_another_when_it_ends(
    tmp_path: Path,
) -> None:
    memory.make_memory(tmp_path, ["one", "two", "three"])
    settings = memory.settings_for(tmp_path, **{"sync.window_rows": 1})
    tokens: list[str | None] = []
    with memory.pipeline_for(settings) as (pipeline, _):

        def look(result: SyncResult) -> None:
            if result.wrote:
                tokens.append(pipeline.target.token())

        terms, head = Terms(lambda: NOW, Stop()), memory.head_of(pipeline)
        catch_up(pipeline, terms, head=head, report=look)
        assert len(tokens) == 3
        assert len(set(tokens)) == 1
        sealed = pipeline.target.token()
        assert sealed not in tokens
        catch_up(pipeline, terms, head=head, report=look)  # nothing to do
        assert pipeline.target.token() == sealed


def test_a_run_that_has_nothing_to_write_leaves_the_token_alone(settings: Settings) -> None:
    memory.sync_memory(settings)
    with memory.pipeline_for(settings) as (pipeline, _):
        before = pipeline.target.token()
        memory.sync(pipeline)
        assert pipeline.target.token() == before


def test_a_token_that_nobody_knows_is_refused(settings: Settings) -> None:
    memory.sync_memory(settings)
    with memory.pipeline_for(settings) as (pipeline, _):
        pipeline.target.write_token("somebody else's")
    with pytest.raises(IdentityError, match="token"):
        memory.sync_memory(settings)


def test_a_database_restored_from_a_backup_is_refused(settings: Settings) -> None:
    path = settings.source.database
    with memory.pipeline_for(settings) as (pipeline, _):
        memory.sync(pipeline)
    backup = path.with_name("backup.db")
    with closing(memory.write(path)) as source, closing(memory.write(backup)) as copy:
        source.backup(copy)
    memory.execute(path, "UPDATE memory_events SET content = 'later' WHERE id = 1")
    memory.sync_memory(settings)
    with closing(memory.write(path)) as target, closing(memory.write(backup)) as copy:
        copy.backup(target)
    before = memory.points_in(settings)
    with pytest.raises(IdentityError, match="token"):
        memory.sync_memory(settings)
    assert memory.points_in(settings) == before


def test_a_backup_that_was_taken_while_a_run_was_under_way_is_refused(settings: Settings) -> None:
    path, backup = settings.source.database, settings.source.database.with_name("backup.db")

    def back_up(_: SyncResult) -> None:
        with closing(memory.write(path)) as source, closing(memory.write(backup)) as copy:
            source.backup(copy)

    folder = path.parent
    small = memory.settings_for(folder, **{"sync.window_rows": 1})
    with memory.pipeline_for(small) as (pipeline, _):
        terms = Terms(lambda: NOW, Stop())
        catch_up(pipeline, terms, head=memory.head_of(pipeline), report=back_up)
    with closing(memory.write(path)) as target, closing(memory.write(backup)) as copy:
        copy.backup(target)
    with pytest.raises(IdentityError, match="token"):
        memory.sync_memory(settings)


def test_a_collection_that_is_gone_is_refused(settings: Settings) -> None:
    memory.sync_memory(settings)
    with memory.pipeline_for(settings) as (_, connection):
        (collection,) = connection.client.get_collections().collections
        connection.client.delete_collection(collection.name)
    with pytest.raises(IdentityError, match="alias memory is not there"):
        memory.sync_memory(settings)


def test_a_collection_of_another_database_is_refused(settings: Settings, tmp_path: Path) -> None:
    memory.sync_memory(settings)
    (tmp_path / "other").mkdir()
    other = memory.make_memory(tmp_path / "other", ["another"])
    with pytest.raises(IdentityError, match="knows nothing of"):
        memory.sync_memory(memory.settings_for(tmp_path, **{"source.database": str(other)}))


def test_a_collection_under_the_alias_s_name_is_refused_and_left_alone(settings: Settings) -> None:
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        connection.client.create_collection("memory", vectors_config={})
    with pytest.raises(SchemaError, match="memory is a collection of its own"):
        memory.sync_memory(settings)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        assert [c.name for c in connection.client.get_collections().collections] == ["memory"]


def test_another_recipe_is_refused_and_both_sides_are_shown(settings: Settings) -> None:
    memory.sync_memory(settings)
    before = memory.points_in(settings)
    folder = settings.source.database.parent
    other = memory.settings_for(folder, **{"embed.passage_prefix": "passage: "})
    with pytest.raises(RecipeError, match=r'passage_prefix was "", now "passage: "'):
        memory.sync_memory(other)
    assert memory.points_in(settings) == before


def test_a_row_deleted_before_the_mapping_changes_goes_too(settings: Settings) -> None:
    memory.sync_memory(settings)
    memory.execute(settings.source.database, "DELETE FROM memory_events WHERE id = 2")
    folder = settings.source.database.parent
    other = memory.settings_for(folder, **{"source.metadata": ["agent"]})
    memory.sync_memory(other)
    assert set(memory.points_in(other)) == {1, 3}


def test_a_row_deleted_after_an_interrupted_first_window_goes_too(settings: Settings) -> None:
    with memory.pipeline_for(settings) as (pipeline, _):

        class Interrupted:
            """The real state, which never gets to store the position."""

            def __getattr__(self, name: str) -> object:
                return getattr(pipeline.state, name)

            def commit(self, *_: object) -> None:
                raise TargetError("power cut")

        state: State = Interrupted()  # type: ignore[assignment]
        with pytest.raises(TargetError, match="power cut"):
            memory.sync(replace(pipeline, state=state))
    memory.execute(settings.source.database, "DELETE FROM memory_events WHERE id = 2")
    memory.sync_memory(settings)
    assert set(memory.points_in(settings)) == {1, 3}


def test_a_row_that_expires_while_the_clock_is_back_goes_when_its_time_comes(
    settings: Settings,
) -> None:
    path = settings.source.database
    memory.execute(path, "UPDATE memory_events SET expires_at = '2030-01-01T11:30:00Z'")
    folder = path.parent
    with memory.pipeline_for(memory.settings_for(folder, **{"sync.window_rows": 1})) as (
        pipeline,
        connection,
    ):
        for clock, rows in (("11:00", 3), ("12:00", 0), ("11:00", 3), ("12:00", 0)):
            memory.sync(pipeline, now=lambda clock=clock: f"2030-01-01T{clock}:00.000Z")  # type: ignore[misc]
            assert len(memory.all_points(connection)) == rows, clock


def test_metadata_too_deep_for_an_object_stay_text(made: Memory) -> None:
    deep = "[" * 500 + "]" * 500
    made.execute("UPDATE memory_events SET metadata = ? WHERE id = 1", deep)
    made.execute("UPDATE memory_events SET content = 'dos' WHERE id = 2")
    made.sync()
    payload, _ = made.points()[1]
    assert payload["metadata"]["metadata"] == deep  # type: ignore[index]
    assert made.documents()[2] == "dos"


def test_a_changed_mapping_walks_again_in_place(settings: Settings) -> None:
    memory.sync_memory(settings)
    folder = settings.source.database.parent
    other = memory.settings_for(folder, **{"source.where": "id > 1", "source.metadata": ["agent"]})
    result = memory.sync_memory(other)
    assert (result.deleted, result.payload_only, result.embedded) == (1, 2, 0)
    assert set(memory.points_in(other)) == {2, 3}
    assert memory.sync_memory(other).read == 0


def test_a_foreign_point_under_a_row_s_id_is_left_and_the_row_quarantined(made: Memory) -> None:
    foreign = Point(4, {"document": "mine"}, {"hash-8": [1.0] * 8})
    made.pipeline.target.upsert([foreign])
    made.execute("INSERT INTO memory_events (content, scope, source) VALUES ('four', 's', 'x')")
    result = made.sync()
    assert [(item.row, item.reason.value) for item in result.quarantined] == [
        ("4", "foreign_point")
    ]
    assert made.documents()[4] == "mine"
    assert made.pipeline.state.position().change_seq == memory.head_of(made.pipeline)


def test_a_row_without_a_usable_vector_is_quarantined_and_its_old_points_go(made: Memory) -> None:
    class Spoilt(CountingEmbedder):
        """Gives no vector for one of the texts."""

        def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
            vectors = self._inner.embed(texts, counts).vectors
            usable = [() if "bad" in text else v for text, v in zip(texts, vectors, strict=True)]
            return Embedded(usable, frozenset({len(texts) - 1}))

    made.execute(
        "UPDATE memory_events SET content = 'a text whose second chunk is bad' WHERE id = 1"
    )
    made.execute("UPDATE memory_events SET content = 'dos' WHERE id = 2")
    result = memory.sync(replace(made.pipeline, embedder=Spoilt(made.pipeline.embedder)))
    assert [(item.row, item.reason.value) for item in result.quarantined] == [("1", "bad_vector")]
    assert (result.embedded, result.deleted, list(result.truncated)) == (1, 1, ["2"])
    assert made.documents() == {2: "dos", 3: "three"}
    made.execute("UPDATE memory_events SET content = 'good' WHERE id = 1")
    made.sync()
    assert made.documents() == {1: "good", 2: "dos", 3: "three"}


def test_every_write_names_the_generation_and_none_the_alias(made: Memory) -> None:
    named: set[str] = set()
    client = made.connection.client

    class Watching:
        """The real client, which notes which collection each call names."""

        def __getattr__(self, name: str) -> object:
            method = getattr(client, name)

            def call(*args: object, **options: object) -> object:
                if args:
                    named.add(str(args[0]))
                return method(*args, **options)

            return call

    made.pipeline.target._client = Watching()  # type: ignore[attr-defined] # noqa: SLF001
    made.execute("UPDATE memory_events SET content = 'a text of three chunks, surely' WHERE id = 1")
    made.execute("DELETE FROM memory_events WHERE id = 2")
    made.execute("UPDATE memory_events SET agent = 'b' WHERE id = 3")
    made.sync()
    assert named == {made.pipeline.state.position().generation}


def test_keys_of_every_kind_in_one_window_do_not_meet(tmp_path: Path) -> None:
    """A chunk of one row never lands on the id of another."""
    memory.make_memory(tmp_path, ["x" * 60 for _ in range(40)])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings, chunker=memory.by_characters)
    assert len(memory.points_in(settings)) == 40 * 5


def test_sync_once_alone_does_one_window(settings: Settings) -> None:
    folder = settings.source.database.parent
    options: dict[str, object] = {"sync.window_rows": 2}
    chunker: Chunker = memory.by_characters
    with memory.pipeline_for(memory.settings_for(folder, **options), chunker=chunker) as (
        pipeline,
        _,
    ):
        result = sync_once(pipeline, head=memory.head_of(pipeline), now=NOW)
        assert (result.read, result.more) == (2, True)
        assert set(result.seconds) == {"read", "plan", "embed", "write", "advance"}
