"""Making a generation, finishing one half made, and what is refused: local mode and real state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import memory
import pytest
from qdrant_client import QdrantClient, models

from syncer import generations
from syncer.cli.opening import Sides
from syncer.errors import IdentityError, RecipeError, SchemaError
from syncer.generations import Wanted
from syncer.model import Description
from syncer.settings import Settings
from syncer.state import Generation, StateStore
from syncer.target import Catalog, Connection


class Killed(BaseException):
    """Stands for the end of the process; nothing may catch it."""


@dataclass
class Place:
    """An open state and target, and what the settings want of them."""

    sides: Sides
    connection: Connection
    wanted: Wanted
    made: int = 0

    @property
    def store(self) -> StateStore:
        """Return the state."""
        return self.sides.store

    @property
    def catalog(self) -> Catalog:
        """Return the target's catalog."""
        return Catalog(self.connection)

    def new_name(self) -> str:
        """Return the next name."""
        self.made += 1
        return f"memory--{len(self.collections()) + self.made}"

    def settle(self, **parts: object) -> str:
        """Settle, with one part or another replaced."""
        return self._call(generations.settle, parts)

    def start_over(self, **parts: object) -> str:
        """Start over, with one part or another replaced."""
        return self._call(generations.start_over, parts)

    def _call(self, function: Callable[..., str], parts: dict[str, object]) -> str:
        store, catalog = parts.get("store", self.store), parts.get("catalog", self.catalog)
        return function(store, catalog, parts.get("wanted", self.wanted), self.new_name)

    def collections(self) -> set[str]:
        """Return the names of all collections."""
        return {found.name for found in self.connection.client.get_collections().collections}

    def aliases(self) -> dict[str, str]:
        """Return all aliases and where they point."""
        found = self.connection.client.get_aliases().aliases
        return {alias.alias_name: alias.collection_name for alias in found}

    def known(self) -> list[Generation]:
        """Return what the state knows of the alias."""
        return self.store.generations(self.wanted.alias)


def settings_for(folder: Path, **options: object) -> Settings:
    """Return settings without a sparse vector: nothing of a recipe has to be measured then."""
    return memory.settings_for(folder, **{"sparse.enabled": False, **options})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings for a memory of three rows."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    return settings_for(tmp_path)


@contextmanager
def opened(settings: Settings) -> Iterator[Place]:
    """Open state and target as ``syncer once`` does."""
    with ExitStack() as stack:
        sides = stack.enter_context(memory.opening.opened(settings))
        connection = stack.enter_context(memory.connect(memory.specs.target_spec(settings)))
        embedder = stack.enter_context(closing(memory.compose.build_embedder(settings)))
        yield Place(sides, connection, memory.compose.wanted(sides, embedder))


@pytest.fixture
def place(settings: Settings) -> Iterator[Place]:
    """An open state and target that hold nothing yet."""
    with opened(settings) as found:
        yield found


class Dying:
    """Passes everything on, and dies before or after the call with a given name."""

    def __init__(self, inner: object, name: str, *, after: bool) -> None:
        self._inner, self._name, self._after = inner, name, after

    def __getattr__(self, name: str) -> object:
        """Return the inner method, deadly if it is the one."""
        method = getattr(self._inner, name)
        if name != self._name:
            return method

        def call(*arguments: object, **options: object) -> None:
            if self._after:
                method(*arguments, **options)
            raise Killed

        return call


MOMENTS = {
    "before the state knows of it": ("store", "add", False),
    "noted": ("store", "add", True),
    "collection made": ("client", "create_collection", True),
    "first payload index made": ("client", "create_payload_index", True),
    "payload indexes made": ("client", "update_collection_aliases", False),
    "alias set": ("client", "update_collection_aliases", True),
    "before it serves": ("store", "serve", False),
    "serving": ("store", "serve", True),
}


REPLACING = {
    **MOMENTS,
    "before the old one is forgotten": ("store", "forget", False),
    "old one forgotten": ("store", "forget", True),
}


def interrupt(place: Place, moment: str, make: Callable[..., str]) -> None:
    """Make a generation, and die at the moment."""
    part, name, after = REPLACING[moment]
    store, catalog = place.store, place.catalog
    if part == "store":
        store = cast("StateStore", Dying(store, name, after=after))
    else:
        client = Dying(place.connection.client, name, after=after)
        catalog._client = cast("QdrantClient", client)  # noqa: SLF001
    with pytest.raises(Killed):
        make(store=store, catalog=catalog)


def complete(place: Place, generation: str) -> None:
    """Assert that one generation serves and that all of it is there."""
    assert place.aliases() == {"memory": generation}
    assert [(each.generation, each.serving) for each in place.known()] == [(generation, True)]
    (known,) = place.known()
    assert known.settings_digest == place.wanted.settings_digest
    assert known.mapping_digest == place.wanted.description.mapping
    assert place.catalog.describe(generation) == place.wanted.description


def test_a_generation_is_made_once(place: Place) -> None:
    first = place.settle()
    assert place.settle() == place.settle() == first
    assert place.made == 1
    assert place.collections() == {first}
    complete(place, first)


def test_a_run_that_finds_everything_settled_changes_nothing(place: Place) -> None:
    place.settle()
    before = place.known()
    with closing(memory.write(place.sides.settings.source.database)) as watcher:
        version = watcher.execute("PRAGMA data_version").fetchone()
        place.settle()
        assert watcher.execute("PRAGMA data_version").fetchone() == version
    assert place.known() == before


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupted_making_is_finished_by_the_next_run(settings: Settings, moment: str) -> None:
    with opened(settings) as place:
        interrupt(place, moment, place.settle)
    with opened(settings) as place:
        generation = place.settle()
        complete(place, generation)
        assert place.collections() == {generation}
    assert memory.sync_memory(settings).embedded == 3
    assert set(memory.points_in(settings)) == {1, 2, 3}


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupted_making_followed_by_another_recipe_ends_with_the_other(
    settings: Settings, moment: str
) -> None:
    with opened(settings) as place:
        interrupt(place, moment, place.settle)
        half_made = place.collections()
    folder = settings.source.database.parent
    other = settings_for(folder, **{"embed.dimension": 16})
    with opened(other) as place:
        if moment == "serving":
            with pytest.raises(RecipeError):
                place.settle()
            return
        generation = place.settle()
        complete(place, generation)
        assert place.collections() == {generation} | half_made
    assert memory.sync_memory(other).embedded == 3


@pytest.mark.parametrize("moment", ["collection made", "alias set"])
@pytest.mark.parametrize("again", REPLACING)
def test_interrupted_once_with_each_of_two_recipes_it_ends_with_the_second(
    settings: Settings, moment: str, again: str
) -> None:
    other = settings_for(settings.source.database.parent, **{"embed.dimension": 16})
    with opened(settings) as place:
        interrupt(place, moment, place.settle)
    with opened(other) as place:
        interrupt(place, again, place.settle)
        complete(place, place.settle())


def test_an_interrupted_making_followed_by_another_mapping_describes_the_other(
    settings: Settings,
) -> None:
    with opened(settings) as place:
        interrupt(place, "before it serves", place.settle)
    folder = settings.source.database.parent
    other = settings_for(folder, **{"target.document_key": "text", "source.where": "id > 1"})
    with opened(other) as place:
        complete(place, place.settle())
    assert memory.sync_memory(other).embedded == 2
    assert memory.sync_memory(other).read == 0


@pytest.mark.parametrize("moment", ["noted", "before it serves"])
def test_an_interrupted_making_followed_by_another_table_belongs_to_the_other(
    place: Place, moment: str
) -> None:
    interrupt(place, moment, place.settle)
    description = replace(place.wanted.description, table="notes", mapping="other")
    wanted = replace(place.wanted, description=description)
    generation = place.settle(wanted=wanted)
    assert [(each.generation, each.source_table) for each in place.known()] == [
        (generation, "notes")
    ]
    assert place.settle(wanted=wanted) == generation


@pytest.mark.parametrize("moment", REPLACING)
def test_an_interrupted_start_over_is_finished_by_the_same_command(
    settings: Settings, moment: str
) -> None:
    memory.sync_memory(settings)
    with opened(settings) as place:
        (old,) = place.collections()
        interrupt(place, moment, place.start_over)
    with opened(settings) as place:
        generation = place.start_over()
        assert generation != old
        complete(place, generation)
        assert len(place.collections()) == (3 if moment == "serving" else 2)
    assert memory.sync_memory(settings).embedded == 3


@pytest.mark.parametrize("moment", REPLACING)
def test_after_an_interrupted_start_over_a_plain_run_goes_on_with_what_readers_see(
    settings: Settings, moment: str
) -> None:
    memory.sync_memory(settings)
    with opened(settings) as place:
        interrupt(place, moment, place.start_over)
        (seen,) = place.aliases().values()
    with opened(settings) as place:
        assert place.settle() == seen
        complete(place, seen)


def test_starting_over_leaves_the_old_collection_and_moves_the_alias(settings: Settings) -> None:
    memory.sync_memory(settings)
    with opened(settings) as place:
        (old,) = place.collections()
        new = place.start_over()
        complete(place, new)
        assert place.collections() == {old, new}
        assert place.connection.client.count(old).count == 3
        assert place.connection.client.count(new).count == 0


def test_starting_over_under_a_real_collection_s_name_is_refused_and_forgets_nothing(
    settings: Settings,
) -> None:
    memory.sync_memory(settings)
    with opened(settings) as place:
        place.connection.client.delete_collection(place.known()[0].generation)
        place.connection.client.create_collection("memory", vectors_config={})
        before = place.known()
        with pytest.raises(SchemaError, match="memory is a collection of its own"):
            place.start_over()
        assert place.known() == before
        assert place.collections() == {"memory"}


def test_two_collections_of_one_database_do_not_disturb_each_other(settings: Settings) -> None:
    """The change log is pruned only below the slower one's position."""
    path = settings.source.database
    folder = path.parent
    other = settings_for(folder, **{"target.collection": "other", "source.where": "id > 1"})
    memory.sync_memory(settings)
    memory.sync_memory(other)
    memory.execute(path, "UPDATE memory_events SET content = 'uno' WHERE id = 1")
    memory.execute(path, "UPDATE memory_events SET content = 'dos' WHERE id = 2")
    assert memory.sync_memory(settings).embedded == 2
    assert len(waiting(path)) == 2
    assert memory.sync_memory(other).embedded == 1
    assert waiting(path) == []
    assert set(memory.points_in(settings)) == {1, 2, 3}
    assert set(memory.points_in(other)) == {2, 3}
    with opened(other) as place:
        place.start_over()
    with opened(settings) as place:
        assert place.settle() == place.aliases()["memory"]


def waiting(path: Path) -> Sequence[object]:
    """Return the change log."""
    with closing(memory.write(path)) as connection:
        return connection.execute("SELECT * FROM syncer_changes_memory_events").fetchall()


def test_another_alias_s_generation_is_not_taken_for_one_s_own(settings: Settings) -> None:
    memory.sync_memory(settings)
    with opened(settings) as place:
        (mine,) = place.collections()
        wanted = replace(place.wanted, alias="other")
        Catalog(place.connection).create(mine, "other", place.wanted.description, ())
        with pytest.raises(IdentityError, match=f"alias other points at {mine}, which this"):
            place.settle(wanted=wanted)
        assert place.aliases() == {"memory": mine, "other": mine}


def test_a_refusal_over_the_alias_names_both_sides(place: Place) -> None:
    generation = place.settle()
    place.catalog.create("stranger", "memory", place.wanted.description, ())
    with pytest.raises(IdentityError, match=f"points at stranger, but the state says {generation}"):
        place.settle()


def other_source(description: Description) -> Description:
    return replace(description, source_id="another")


def other_table(description: Description) -> Description:
    return replace(description, table="another")


@pytest.mark.parametrize("change", [other_source, other_table])
def test_a_refusal_over_the_source_names_both_sides(
    place: Place, change: Callable[[Description], Description]
) -> None:
    generation = place.settle()
    ours, theirs = place.wanted.description, change(place.wanted.description)
    place.catalog.set_description(generation, theirs)
    before = place.known()
    with pytest.raises(IdentityError) as refusal:
        place.settle()
    for side in (ours, theirs):
        assert side.source_id in refusal.value.message
        assert side.table in refusal.value.message
    assert place.known() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distance": "Dot"}, 'distance was "Cosine", now "Dot"'),
        ({"dense": {"provider": "hash", "new": 1}}, "dense.new was absent, now 1"),
        ({"text": {}}, "text was there, now absent"),
        ({"canary": (-1.0,) * 8}, "the same sentence now has another vector"),
    ],
)
def test_a_refusal_over_the_recipe_names_both_sides(
    place: Place, change: dict[str, object], message: str
) -> None:
    place.settle()
    description = place.wanted.description
    recipe = replace(description.recipe, **change)  # type: ignore[arg-type]
    wanted = replace(place.wanted, description=replace(description, recipe=recipe))
    before = place.known()
    with pytest.raises(RecipeError) as refusal:
        place.settle(wanted=wanted)
    assert message in refusal.value.message
    assert "syncer rebuild" in str(refusal.value.hint)
    assert place.known() == before


@pytest.mark.parametrize(
    ("part", "name", "after"),
    [
        ("store", "walk_again", True),
        ("catalog", "set_description", False),
        ("catalog", "set_description", True),
        ("store", "serve", False),
    ],
)
def test_a_changed_mapping_killed_between_state_and_collection_is_taken_up_again(
    settings: Settings, part: str, name: str, after: bool
) -> None:
    memory.sync_memory(settings)
    folder = settings.source.database.parent
    other = settings_for(folder, **{"source.where": "id > 1"})
    with opened(other) as place:
        parts = {part: Dying(getattr(place, part), name, after=after)}
        with pytest.raises(Killed):
            place.settle(**parts)
    result = memory.sync_memory(other)
    assert (result.deleted, result.unchanged) == (1, 2)
    with opened(other) as place:
        complete(place, place.aliases()["memory"])
    assert memory.sync_memory(other).read == 0


def test_a_collection_that_tells_of_another_mapping_is_walked_again(settings: Settings) -> None:
    memory.sync_memory(settings)
    with opened(settings) as place:
        (generation,) = place.collections()
        other = replace(place.wanted.description, mapping="another")
        place.catalog.set_description(generation, other)
        place.settle()
        complete(place, generation)
    assert memory.sync_memory(settings).unchanged == 3


def test_what_is_measured_when_a_generation_is_made_stays_with_it(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["boats carry salt", "boats", "the of and"])
    settings = memory.settings_for(tmp_path)
    with opened(settings) as place:
        generation = place.settle()
        first = place.catalog.describe(generation)
    assert first.recipe.sparse["avg_len"] == pytest.approx(2.0)  # of the texts with a term
    memory.execute(tmp_path / "memory.db", "DELETE FROM memory_events WHERE id < 3")
    other = memory.settings_for(tmp_path, **{"source.where": "id > 1"})
    with opened(other) as place:
        assert place.settle() == generation
        again = place.catalog.describe(generation)
    assert again.mapping != first.mapping
    assert again.recipe == first.recipe


def test_an_empty_table_gets_a_usual_length(tmp_path: Path) -> None:
    memory.make_memory(tmp_path)
    with opened(memory.settings_for(tmp_path)) as place:
        assert place.catalog.describe(place.settle()).recipe.sparse["avg_len"] == 64.0


@pytest.mark.rule("CS-07")
def test_a_missing_idf_modifier_is_put_back(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings)

    def modifier(place: Place) -> object:
        config = place.connection.client.get_collection("memory").config.params
        return (config.sparse_vectors or {})["bm25"].modifier

    with opened(settings) as place:
        plain = {"bm25": models.SparseVectorParams(modifier=models.Modifier.NONE)}
        (generation,) = place.collections()
        place.connection.client.update_collection(generation, sparse_vectors_config=plain)
        assert modifier(place) != models.Modifier.IDF
        place.settle()
        assert modifier(place) == models.Modifier.IDF
    with opened(settings) as place:
        assert modifier(place) == models.Modifier.IDF


def test_a_difference_is_shown_so_that_it_can_be_read(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    memory.sync_memory(settings_for(tmp_path))
    with (
        opened(memory.settings_for(tmp_path)) as place,
        pytest.raises(RecipeError) as refusal,
    ):
        place.settle()
    assert "sparse was absent, now there" in refusal.value.message
    assert len(refusal.value.message) < 300
