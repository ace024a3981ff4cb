"""Rules about rebuilding (RB): blue serves until green is whole, and nobody loses a row."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from qdrant_client import QdrantClient, models
from qdrant_http import Server
from rebuilding import equality, here

import syncer.verify
from syncer import lock
from syncer.cli import opening, specs
from syncer.errors import ExitCode, LockedError, SyncerError
from syncer.model import Phase
from syncer.result import Drift, Sample, SyncResult, VerifyResult
from syncer.settings import Settings
from syncer.target import Catalog, connect, generation_name

ROWS = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of some rows."""
    memory.make_memory(tmp_path, [f"memory {number}" for number in range(1, ROWS + 1)])
    return tmp_path


@pytest.fixture
def old(server: Server, folder: Path) -> Settings:
    """The settings that the generation that serves was made by."""
    settings = settings_for(folder, server)
    assert wire.once(settings)[0] == ExitCode.OK
    return settings


@pytest.fixture
def new(server: Server, folder: Path, old: Settings) -> Settings:
    """Settings that ask for vectors of another dimension."""
    del old
    return settings_for(folder, server, **{"embed.dimension": 16})


def settings_for(folder: Path, server: Server, **options: object) -> Settings:
    """Return settings by which a walk takes several windows."""
    return wire.settings(folder, server.url, **{"sync.window_rows": 4, **options})


def write(settings: Settings, sql: str) -> None:
    """Let the application commit a statement."""
    memory.execute(settings.source.database, sql)


def point_alias_at(client: QdrantClient, generation: str, alias: str = "memory") -> None:
    """Let somebody else move an alias."""
    there = {one.alias_name for one in client.get_aliases().aliases}
    gone = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
    made = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=generation, alias_name=alias)
    )
    client.update_collection_aliases([*([gone] if alias in there else []), made])


def greens(settings: Settings) -> list[str]:
    """Return the generations that are in the making."""
    return [each.generation for each in equality.generations(settings) if each.phase.is_green]


@pytest.mark.rule("RB-01")
def test_a_collection_under_the_alias_s_name_is_refused_and_left_alone(
    server: Server, folder: Path
) -> None:
    settings = settings_for(folder, server)
    with wire.anywhere_else(server.url) as client:
        client.create_collection("memory", vectors_config={})
        client.upsert("memory", [models.PointStruct(id=1, vector={}, payload={"theirs": 1})])
        code, told = wire.rebuild(settings)
        assert code == ExitCode.REFUSED
        assert "memory is a collection of its own" in str(told.error)
        assert client.count("memory").count == 1
        assert len(client.get_collections().collections) == 1


@pytest.mark.rule("RB-02")
def test_readers_get_the_old_answers_until_the_swap_and_nothing_of_the_old_is_removed(
    server: Server, new: Settings
) -> None:
    blue = equality.serving(new)
    with wire.anywhere_else(server.url) as client:
        before = list(equality.points(client, "memory", vectors=True))
        seen: list[bool] = []

        def look(_: int) -> None:
            if equality.serving(new) == blue:
                seen.append(list(equality.points(client, "memory", vectors=True)) == before)

        with here.before("upsert", look), here.before("counted", look), here.before("alias", look):
            assert wire.rebuild(new)[0] == ExitCode.OK
        assert len(seen) > ROWS // 4  # at each window, and just before the swap
        assert all(seen)
        assert list(equality.points(client, blue, vectors=True)) == before
    equality.assert_equal(new)


@pytest.mark.rule("RB-03")
def test_a_swap_is_not_taken_for_done_before_the_alias_was_read_back(
    new: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue = equality.serving(new)
    with monkeypatch.context() as patch:
        patch.setattr(QdrantClient, "update_collection_aliases", lambda *_, **__: True)
        code, told = wire.rebuild(new)
    assert code == ExitCode.REFUSED, told
    assert equality.serving(new) == blue
    (green,) = greens(new)
    code, _ = wire.rebuild(new)
    assert (code, equality.serving(new)) == (ExitCode.OK, green)


@pytest.mark.rule("RB-03")
@pytest.mark.parametrize(
    "kind", ["closed_before", "closed_during", "closed_after", "error", "too_many"]
)
def test_a_swap_whose_answer_is_lost_is_made_once(server: Server, new: Settings, kind: str) -> None:
    server.faults.next(kind, path="/collections/aliases", method="POST")
    assert wire.rebuild(new)[0] == ExitCode.OK
    assert server.faults.happened
    equality.assert_equal(new)
    assert len(equality.generations(new)) == 2


@pytest.mark.rule("RB-04")
@pytest.mark.rule("RB-05")
@pytest.mark.parametrize("place", ["lent", "upsert", "position", "compared", "alias", "served"])
def test_what_is_written_and_deleted_while_green_is_built_is_in_it_afterwards(
    new: Settings, place: str
) -> None:
    def work(turn: int) -> None:
        write(new, f"UPDATE memory_events SET content = 'edited {turn}' WHERE id = {turn}")
        write(new, f"DELETE FROM memory_events WHERE id IN ({turn + 1}, {ROWS - turn})")
        write(new, f"UPDATE memory_events SET scope = 'x{turn}' WHERE id = {turn + 2}")
        write(
            new,
            "INSERT INTO memory_events (agent, scope, source, content) "
            f"VALUES ('a', 's', 'x', 'new {turn}')",
        )

    with here.before(place, lambda turn: work(turn) if turn < 4 else None):
        code, told = wire.rebuild(new)
    assert code == ExitCode.OK, told
    equality.assert_equal(new)
    code, told = wire.once(new)
    assert (code, told.result and told.result.read) in {(ExitCode.OK, None), (ExitCode.OK, 0)}


@pytest.mark.rule("RB-04")
def test_blue_is_kept_in_step_by_its_own_recipe_while_green_is_built(new: Settings) -> None:
    blue = equality.serving(new)
    codes: list[ExitCode] = []

    def once_beside(turn: int) -> None:
        if turn == 2:
            write(new, "UPDATE memory_events SET content = 'edited meanwhile' WHERE id = 1")
            write(new, "DELETE FROM memory_events WHERE id = 2")
            codes.append(wire.once(new)[0])
            assert equality.serving(new) == blue
            equality.assert_equal(new)

    with here.before("position", once_beside):
        code, told = wire.rebuild(new)
    assert (code, codes) == (ExitCode.OK, [ExitCode.OK]), told
    equality.assert_equal(new)


@pytest.mark.rule("RB-06")
def test_two_generations_of_one_second_have_names_of_their_own() -> None:
    now = datetime.now(UTC)
    names = {generation_name("memory", now) for _ in range(20)}
    assert len(names) > 15


@pytest.mark.rule("RB-06")
@pytest.mark.parametrize("command", ["rebuild", "rollback", "gc"])
def test_a_second_rebuild_ends_with_the_holder_s_name_and_touches_nothing(
    new: Settings, command: str
) -> None:
    before = equality.generations(new)
    path = opening.lock_path(new, "memory--rebuild")
    with lock.held(path, "the lock on memory--rebuild"):
        if command == "gc":
            with pytest.raises(LockedError) as found:
                here.gc(new)
            error: SyncerError = found.value
            code = error.exit_code
        else:
            code, told = wire.rebuild(new) if command == "rebuild" else here.rollback(new)
            assert told.error is not None
            error = told.error
    assert code == ExitCode.LOCKED
    assert "held by another syncer: process " in error.message
    assert equality.generations(new) == before


@pytest.mark.rule("RB-07")
@pytest.mark.parametrize("place", ["upsert", "compared"])
def test_an_alias_that_somebody_else_has_moved_stays_where_it_is(
    server: Server, new: Settings, place: str
) -> None:
    blue = equality.serving(new)
    with wire.anywhere_else(server.url) as client:
        client.create_collection("theirs", vectors_config={})

        with here.before(place, lambda _: point_alias_at(client, "theirs")):
            code, told = wire.rebuild(new)
        assert code == ExitCode.REFUSED
        assert "memory was to point at" in str(told.error)
        assert "points at theirs" in str(told.error)
        (green,) = greens(new)
        assert green in equality.collections(new)
        (serving,) = [each.generation for each in equality.generations(new) if each.serving]
        assert serving == blue
        assert wire.rebuild(new)[0] == ExitCode.REFUSED
        point_alias_at(client, blue)
    code, told = wire.rebuild(new)
    assert code == ExitCode.OK
    assert told.result is not None
    assert told.result.embedded == 0
    assert equality.serving(new) == green


@pytest.mark.rule("RB-07")
def test_an_alias_that_points_at_a_kept_generation_is_taken_for_an_answer_by_rollback(
    server: Server, old: Settings, new: Settings
) -> None:
    kept = equality.serving(old)
    assert wire.rebuild(new)[0] == ExitCode.OK
    write(new, "UPDATE memory_events SET content = 'edited' WHERE id = 1")
    with wire.anywhere_else(server.url) as client:
        point_alias_at(client, kept)
    code, told = wire.once(new)
    assert code == ExitCode.REFUSED
    code, told = wire.rebuild(new)
    assert code == ExitCode.REFUSED
    assert told.error is not None
    assert f"syncer rollback {kept}" in str(told.error.hint)
    code, told = here.rollback(old, kept)
    assert code == ExitCode.OK, told
    assert equality.serving(old) == kept
    equality.assert_equal(old)


@pytest.mark.rule("RB-08")
def test_a_green_that_is_not_equal_and_cannot_be_mended_does_not_serve(
    new: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue = equality.serving(new)

    def hopeless(pipeline: object, *_: object, **__: object) -> object:
        position = pipeline.state.position()  # type: ignore[attr-defined]
        after = VerifyResult(position.generation, drift={Drift.MISSING: Sample.of(["1"])})
        return SyncResult(position.generation, position), after, after

    with monkeypatch.context() as patch:
        patch.setattr(syncer.verify, "mend", hopeless)
        code, told = wire.rebuild(new)
    assert code == ExitCode.REFUSED
    assert "is not equal to the table" in str(told.error)
    assert "1 missing" in str(told.error)
    assert equality.serving(new) == blue
    assert wire.rebuild(new)[0] == ExitCode.OK


@pytest.mark.rule("RB-08")
@pytest.mark.parametrize(
    ("place", "mended"), [("position", True), ("compared", True), ("phase", False)]
)
def test_points_that_somebody_deletes_from_green_are_put_back_or_keep_it_from_serving(
    server: Server, old: Settings, new: Settings, place: str, mended: bool
) -> None:
    blue = equality.serving(old)

    def take_away(turn: int) -> None:
        if turn == 1:
            (green,) = greens(new)
            with wire.anywhere_else(server.url) as client:
                client.delete(green, points_selector=[1, 2, 3])

    with here.before(place, take_away):
        code, told = wire.rebuild(new)
    assert (code == ExitCode.OK) is mended, told
    assert (equality.serving(new) == blue) is not mended
    assert wire.rebuild(new)[0] == ExitCode.OK
    equality.assert_equal(new)


@pytest.mark.rule("RB-08")
def test_rows_that_are_lost_in_green_are_mended_before_it_serves(
    server: Server, new: Settings
) -> None:
    here.interrupted(new, "compared")
    (green,) = greens(new)
    with wire.anywhere_else(server.url) as client:
        client.delete(green, [1, 5])
        client.overwrite_payload(green, {"document": "half a row", "_sync": {"row": "7"}}, [7])
    code, told = wire.rebuild(new)
    assert code == ExitCode.OK, told
    assert equality.serving(new) == green
    equality.assert_equal(new)


@pytest.mark.rule("RB-09")
def test_the_old_generation_is_kept_and_brought_up_to_date_before_it_serves_again(
    old: Settings, new: Settings
) -> None:
    first = equality.serving(old)
    assert wire.rebuild(new)[0] == ExitCode.OK
    code, told = here.rollback(old)
    assert code == ExitCode.OK, told
    assert equality.serving(old) == first
    equality.assert_equal(old)
    write(old, "UPDATE memory_events SET content = 'edited' WHERE id = 1")
    write(old, "DELETE FROM memory_events WHERE id = 2")
    assert wire.once(old)[0] == ExitCode.OK
    code, told = here.rollback(new)
    assert code == ExitCode.OK, told
    assert told.result is not None
    assert told.result.read < ROWS
    equality.assert_equal(new)


@pytest.mark.rule("RB-09")
def test_a_generation_whose_removal_was_cut_off_is_none_to_go_back_to_and_goes_at_last(
    old: Settings, new: Settings
) -> None:
    first = equality.serving(old)
    assert wire.rebuild(new)[0] == ExitCode.OK

    def die(_: int) -> None:
        raise here.Interrupted

    with here.before("forgotten", die), pytest.raises(here.Interrupted):
        here.gc(new, 0)
    code, told = here.rollback(old)
    assert code == ExitCode.REFUSED
    assert "nothing to go back to" in str(told.error)
    assert here.gc(new, 0)[first].removed
    assert [each.phase for each in equality.generations(new)] == [Phase.SERVING]
    equality.assert_equal(new)


@pytest.mark.rule("RB-09")
def test_a_generation_that_any_alias_points_at_is_not_removed(
    server: Server, old: Settings, new: Settings
) -> None:
    first = equality.serving(old)
    assert wire.rebuild(new)[0] == ExitCode.OK
    with wire.anywhere_else(server.url) as client:
        point_alias_at(client, first, "of-somebody-else")
        fate = here.gc(new, 0)[first]
        assert not fate.removed
        assert "the alias of-somebody-else points at it" in fate.why
        assert first in equality.collections(new)
        gone = models.DeleteAlias(alias_name="of-somebody-else")
        client.update_collection_aliases([models.DeleteAliasOperation(delete_alias=gone)])
    assert here.gc(new, 0)[first].removed
    equality.assert_equal(new)


@pytest.mark.rule("RB-10")
@pytest.mark.parametrize("place", ["kept by", "position", "compared", "alias"])
def test_settings_that_change_while_green_is_built_discard_it_and_leave_nothing_of_it(
    server: Server, folder: Path, new: Settings, place: str
) -> None:
    blue = equality.serving(new)
    here.interrupted(new, place)
    (green,) = greens(new)
    other = settings_for(folder, server, **{"embed.passage_prefix": "a passage: "})
    code, told = wire.rebuild(other)
    assert code == ExitCode.OK, told
    equality.assert_equal(other)
    left = {each.generation for each in equality.generations(other)}
    assert green not in left
    assert equality.collections(other) == left == {blue, equality.serving(other)}
    assert not opening.lock_path(other, green).exists()


@pytest.mark.rule("RB-10")
def test_a_green_that_was_removed_and_not_yet_forgotten_is_not_gone_on_with(
    server: Server, folder: Path, new: Settings
) -> None:
    here.interrupted(new, "position", 2)
    other = settings_for(folder, server, **{"embed.passage_prefix": "a passage: "})
    here.interrupted(other, "forgotten")
    code, told = wire.rebuild(new)
    assert code == ExitCode.OK, told
    equality.assert_equal(new)


@pytest.mark.rule("RB-10")
@pytest.mark.parametrize("what", ["deleted", "replaced", "ahead of the database"])
def test_a_green_that_is_not_the_one_that_was_begun_is_made_anew(
    server: Server, new: Settings, what: str
) -> None:
    here.interrupted(new, "position", 2)
    (green,) = greens(new)
    if what == "ahead of the database":
        with closing(memory.write(new.source.database)) as one:
            backup = one.serialize()
        here.interrupted(new, "compared")
        for suffix in ("-wal", "-shm"):
            new.source.database.with_name(f"memory.db{suffix}").unlink(missing_ok=True)
        new.source.database.write_bytes(backup)
    with wire.anywhere_else(server.url) as client:
        made = client.get_collection(green).config.metadata
        if what != "ahead of the database":
            client.delete_collection(green)
        if what == "replaced":
            vectors = {"hash-16": models.VectorParams(size=16, distance=models.Distance.COSINE)}
            client.create_collection(
                green, vectors, metadata={k: v for k, v in (made or {}).items() if "token" not in k}
            )
    code, told = wire.rebuild(new)
    assert code == ExitCode.OK, told
    assert equality.serving(new) != green
    equality.assert_equal(new)


@pytest.mark.rule("RB-10")
def test_a_run_by_the_new_settings_writes_only_the_old_recipe_s_vectors_into_blue(
    new: Settings,
) -> None:
    here.interrupted(new, "position", 2)
    write(new, "UPDATE memory_events SET content = 'edited' WHERE id = 1")
    assert wire.once(new)[0] == ExitCode.OK
    equality.assert_equal(new)
    assert wire.rebuild(new)[0] == ExitCode.OK
    equality.assert_equal(new)
    phases = [each.phase for each in equality.generations(new)]
    assert phases == [Phase.SERVING, Phase.KEPT]


@pytest.mark.rule("RB-10")
def test_a_mapping_that_changes_while_green_is_built_lets_its_walk_begin_again(
    server: Server, folder: Path, new: Settings
) -> None:
    here.interrupted(new, "position", 3)
    (green,) = greens(new)
    write(new, "UPDATE memory_events SET scope = 'out' WHERE id < 6")
    mapped = settings_for(
        folder, server, **{"embed.dimension": 16, "source.where": "scope <> 'out'"}
    )
    code, told = wire.rebuild(mapped)
    assert code == ExitCode.OK, told
    assert equality.serving(mapped) == green
    equality.assert_equal(mapped, "scope <> 'out'")


@pytest.mark.rule("RB-03")
def test_a_generation_that_was_half_made_in_the_serving_one_s_place_is_finished(
    server: Server, old: Settings
) -> None:
    with opening.opened(old, to_write=True) as sides:
        before = sides.store.serving("memory")
        assert before is not None
        sides.store.add("memory--half-made", "memory", "memory_events", Phase.NEW)
    with connect(specs.target_spec(old)) as connection:
        catalog = Catalog(connection)
        described = catalog.describe(before.generation)
        catalog.create("memory--half-made", "memory", described, ())
    assert wire.rebuild(old)[0] == ExitCode.OK
    (serving,) = (each for each in equality.generations(old) if each.serving)
    assert serving.generation == "memory--half-made"
    assert len(wire.documents(old)) == ROWS


@pytest.mark.rule("RB-03")
def test_a_swap_that_arrives_after_it_was_given_up_is_noted(
    server: Server, folder: Path, new: Settings
) -> None:
    write(new, "DELETE FROM memory_events")
    settings = settings_for(folder, server, **{"embed.dimension": 16, "sync.max_deletes": 0})
    assert wire.rebuild(settings)[0] == ExitCode.WITHHELD  # verified, and no swap
    (green,) = greens(settings)
    assert wire.rebuild(settings)[0] == ExitCode.WITHHELD  # begun again, and as far again
    with wire.anywhere_else(server.url) as client:
        point_alias_at(client, green)  # as if the request had been on its way all the time
    assert wire.once(settings)[0] == ExitCode.OK
    (serving,) = (each for each in equality.generations(settings) if each.serving)
    assert serving.generation == green
