"""Which generation a run writes to: found and checked, or made.

Nothing is trusted silently: state and target must agree on the generation, the generation must
have been made from this source and by this recipe. Anything else is refused before a write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from syncer.errors import IdentityError, RefusedError
from syncer.model import Description, Phase, Recipe
from syncer.recipes import check_recipe, differences


class Known(Protocol):
    """What the state knows of a generation."""

    @property
    def generation(self) -> str:
        """Return its name."""

    @property
    def source_table(self) -> str:
        """Return the table that it is made from."""

    @property
    def serving(self) -> bool:
        """Whether the alias was seen to point at it."""

    @property
    def phase(self) -> Phase:
        """Return what it is there for."""

    @property
    def mapping_digest(self) -> str:
        """Return the digest of the mapping that it was last kept by."""

    @property
    def settings_digest(self) -> str:
        """Return the digest of the settings that it was last kept by."""


class Store(Protocol):
    """The state's list of generations."""

    def generations(self, alias: str) -> Sequence[Known]:
        """Return all generations of `alias`; at most one serves."""

    def add(self, generation: str, alias: str, table: str, phase: Phase = Phase.NEW) -> None:
        """Note a generation that is about to be made."""

    def forget(self, generation: str) -> None:
        """Drop all that is known of a generation."""

    def serve(self, generation: str, settings_digest: str, mapping_digest: str) -> None:
        """Note that the alias points at it, and by which settings it is kept."""

    def walk_again(self, generation: str) -> None:
        """Begin the walk anew."""

    def reconcile(self, generation: str, token: str | None) -> None:
        """Begin to compare both stores; the collection carries `token`."""


class Catalog(Protocol):
    """The target's collections and aliases."""

    def resolve(self, alias: str) -> str | None:
        """Return where the alias points. Raises SchemaError if it is a real collection."""

    def exists(self, generation: str) -> bool:
        """Say whether the collection is there."""

    def create(
        self, generation: str, alias: str, description: Description, indexes: Sequence[str]
    ) -> None:
        """Create the collection and let the alias point at it; may be repeated."""

    def describe(self, generation: str) -> Description:
        """Return what the collection says of itself."""

    def set_description(self, generation: str, description: Description) -> None:
        """Let the collection say something else of itself."""

    def mend(self, generation: str, recipe: Recipe, indexes: Sequence[str]) -> None:
        """Put back what the recipe asks of the collection's own settings, and payload indexes."""

    def token(self, generation: str) -> str | None:
        """Return the token that the collection carries."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The generation that the settings ask for.

    `measure` returns its recipe with what is measured on the source's texts when it is made.
    """

    alias: str
    description: Description
    settings_digest: str
    indexes: tuple[str, ...] = ()
    measure: Callable[[], Recipe] | None = None

    def measured(self) -> Description:
        """Return what a new generation says of itself."""
        recipe = self.measure() if self.measure else self.description.recipe
        return replace(self.description, recipe=recipe)


def settle(store: Store, catalog: Catalog, wanted: Wanted, new_name: Callable[[], str]) -> str:
    """Return the name of the generation to write to; make it if there is none yet.

    What an interrupted run left half made is finished or forgotten.
    Raises IdentityError or RecipeError where state, target and settings do not agree. A changed
    mapping is no disagreement: the walk begins again in place. Nor is another recipe, while a
    rebuild by that one is under way: until it has ended, the serving generation goes on by its own.
    """
    found = catalog.resolve(wanted.alias)
    ours = finish_swap(store, wanted.alias, found)
    known = next((each for each in ours if each.serving), None)
    in_making = [each.generation for each in ours if each.phase is Phase.NEW]
    if known is None or found in in_making:
        check_unclaimed(wanted.alias, found, ours)
        return _make(store, catalog, wanted, new_name)
    description = wanted.description
    check_alias(wanted.alias, known.generation, found)
    described = check_origin(catalog, known, (description.source_id, description.table))
    asked = wanted.settings_digest
    if differences(described.recipe, description.recipe):
        if not _is_being_rebuilt(catalog, ours, wanted):
            check_recipe(known.generation, described.recipe, description.recipe)
        asked = known.settings_digest  # it is not what these settings ask for
    catalog.mend(known.generation, described.recipe, wanted.indexes)
    mapping = description.mapping
    if mapping != described.mapping or mapping != known.mapping_digest:
        store.walk_again(known.generation)
        _describe(catalog, known.generation, wanted, described.recipe)
    if (known.settings_digest, known.mapping_digest) != (asked, mapping):
        store.serve(known.generation, asked, mapping)
    for generation in in_making:
        store.forget(generation)
    return known.generation


def finish_swap(store: Store, alias: str, found: str | None) -> Sequence[Known]:
    """Return all generations of `alias`; note a swap that was interrupted after the alias moved."""
    ours = store.generations(alias)
    heir = next((each for each in ours if each.generation == found), None)
    if heir is None or heir.phase not in {Phase.VERIFIED, Phase.RETURNING}:
        return ours
    store.serve(heir.generation, heir.settings_digest, heir.mapping_digest)
    return store.generations(alias)


def _is_being_rebuilt(catalog: Catalog, ours: Sequence[Known], wanted: Wanted) -> bool:
    """Say whether a rebuild towards what the settings want is under way."""
    greens = (each for each in ours if each.phase.is_green)
    return any(catalog.exists(g.generation) and is_as_wanted(catalog, g, wanted) for g in greens)


def start_over(store: Store, catalog: Catalog, wanted: Wanted, new_name: Callable[[], str]) -> str:
    """Make a new generation, whatever was there; older ones are left where they are."""
    catalog.resolve(wanted.alias)  # refuses a real collection of that name
    return _make(store, catalog, wanted, new_name)


def reconcile(store: Store, catalog: Catalog, wanted: Wanted, new_name: Callable[[], str]) -> str:
    """Begin anew on what is there: the collection if it is still the alias's, else a new one.

    The collection keeps its points; the walk begins again, and everything that it holds is looked
    at. Raises RecipeError if its vectors were made in another way.
    """
    ours = store.generations(wanted.alias)
    known = next((each.generation for each in ours if each.serving), None)
    found = catalog.resolve(wanted.alias)
    if known is None and found is not None and not ours:
        known = _adopted(store, catalog, wanted, found)
    if known is None or found != known or not catalog.exists(known):
        return start_over(store, catalog, wanted, new_name)
    recipe = catalog.describe(known).recipe
    check_recipe(known, recipe, wanted.description.recipe)
    catalog.mend(known, recipe, wanted.indexes)
    _describe(catalog, known, wanted, recipe)
    store.reconcile(known, catalog.token(known))
    return known


def _adopted(store: Store, catalog: Catalog, wanted: Wanted, found: str) -> str | None:
    """Note a generation that was made from this very source, whose state was lost; None if not."""
    description = wanted.description
    described = catalog.describe(found)
    if (described.source_id, described.table) != (description.source_id, description.table):
        return None
    check_recipe(found, described.recipe, description.recipe)
    store.add(found, wanted.alias, description.table)
    store.serve(found, wanted.settings_digest, description.mapping)
    return found


def check_serving(
    catalog: Catalog, alias: str, known: Known, source: tuple[str, str]
) -> Description:
    """Return what the generation that serves `alias` says of itself.

    Raises IdentityError unless the alias points at it, it is there, and it was made from `source`:
    the database's id and the table.
    """
    check_alias(alias, known.generation, catalog.resolve(alias))
    return check_origin(catalog, known, source)


def check_origin(catalog: Catalog, known: Known, source: tuple[str, str]) -> Description:
    """Return what a generation says of itself; raise IdentityError unless made from `source`."""
    described = catalog.describe(known.generation)
    if (described.source_id, described.table) != source:
        wanted_id, table = source
        raise IdentityError(
            f"{known.generation} was made from table {described.table} of the database "
            f"{described.source_id}, not from {table} of {wanted_id}",
            hint="Check source.database, source.table and target.collection. To give the "
            "collection up and build a new one, run `syncer once --start-over`.",
        )
    return described


def check_alias(alias: str, expected: str, found: str | None) -> None:
    """Raise IdentityError unless the alias points where the state says."""
    if found != expected:
        where = f"points at {found}" if found else "is not there"
        raise IdentityError(
            f"the alias {alias} {where}, but the state says {expected}: the collection was "
            "replaced, removed or is another Qdrant's, or the database was restored",
            hint="Check target.url or target.path and the database. If the collection is gone "
            "for good, `syncer rebuild` builds a new one from SQLite.",
        )


def check_unclaimed(alias: str, found: str | None, ours: Sequence[Known]) -> None:
    """Raise IdentityError if the alias points at a generation that the state knows nothing of."""
    if found is not None and found not in {each.generation for each in ours}:
        raise IdentityError(
            f"the alias {alias} points at {found}, which this database knows nothing of",
            hint="It belongs to another database, or this database's state was lost. Choose "
            "another target.collection, or run `syncer once --start-over` to build a new "
            "generation from this database.",
        )


def _make(store: Store, catalog: Catalog, wanted: Wanted, new_name: Callable[[], str]) -> str:
    """Make a generation, or finish one whose making was interrupted; forget all but kept ones.

    It is noted before anything of it exists, and serves only when all of it is there and nothing
    else is known: interrupted at any moment, the next call finds its way from there.
    """
    ours = store.generations(wanted.alias)
    in_making = (each for each in ours if each.phase is Phase.NEW)
    usable = (each.generation for each in in_making if is_as_wanted(catalog, each, wanted))
    generation = next(usable, None)
    if generation is None:
        generation = new_name()
        store.add(generation, wanted.alias, wanted.description.table)
    there = catalog.exists(generation)
    description = wanted.description if there else wanted.measured()
    catalog.create(generation, wanted.alias, description, wanted.indexes)
    described = catalog.describe(generation)
    if described.mapping != wanted.description.mapping:
        _describe(catalog, generation, wanted, described.recipe)
    for other in ours:
        if other.generation != generation and other.phase is not Phase.KEPT:
            store.forget(other.generation)
    store.serve(generation, wanted.settings_digest, wanted.description.mapping)
    return generation


def _describe(catalog: Catalog, generation: str, wanted: Wanted, recipe: Recipe) -> None:
    """Let the generation describe itself as wanted, by the recipe that it was made by."""
    catalog.set_description(generation, replace(wanted.description, recipe=recipe))


def is_as_wanted(catalog: Catalog, known: Known, wanted: Wanted) -> bool:
    """Say whether a generation is what the settings want, or nothing of it is there yet."""
    if known.source_table != wanted.description.table:
        return False
    if not catalog.exists(known.generation):
        return True
    try:
        found = catalog.describe(known.generation)
    except RefusedError:  # somebody has replaced it meanwhile
        return False
    return found.source_id == wanted.description.source_id and not differences(
        found.recipe, wanted.description.recipe
    )
