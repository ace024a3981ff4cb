"""Which generation a run writes to: found and checked, or made.

Nothing is trusted silently: state and target must agree on the generation, the generation must
have been made from this source and by this recipe. Anything else is refused before a write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from syncer.errors import IdentityError, RecipeError
from syncer.keys import canonical_json
from syncer.model import Description, Recipe

_CANARY_AGREES = 0.999  # cosine; the same model in another batch or on another CPU stays above


class Known(Protocol):
    """What the state knows of a generation."""

    @property
    def generation(self) -> str:
        """Return its name."""

    @property
    def serving(self) -> bool:
        """Whether the alias was seen to point at it."""

    @property
    def mapping_digest(self) -> str:
        """Return the digest of the mapping that it was last kept by."""

    @property
    def settings_digest(self) -> str:
        """Return the digest of the settings that it was last kept by."""


class Store(Protocol):
    """The state's list of generations."""

    def serving(self, alias: str) -> Known | None:
        """Return the generation that `alias` serves, or the one in the making."""

    def add(self, generation: str, alias: str, table: str) -> None:
        """Note a generation that is about to be made."""

    def forget(self, generation: str) -> None:
        """Drop all that is known of a generation."""

    def serve(self, generation: str, settings_digest: str, mapping_digest: str) -> None:
        """Note that the alias points at it, and by which settings it is kept."""

    def walk_again(self, generation: str) -> None:
        """Begin the walk anew."""


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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The generation that the settings ask for."""

    alias: str
    description: Description
    settings_digest: str
    indexes: tuple[str, ...] = ()


def settle(store: Store, catalog: Catalog, wanted: Wanted, new_name: Callable[[], str]) -> str:
    """Return the name of the generation to write to; make it if there is none yet.

    Raises IdentityError or RecipeError where state, target and settings do not agree. A changed
    mapping is no disagreement: the walk begins again in place.
    """
    known = store.serving(wanted.alias)
    found = catalog.resolve(wanted.alias)
    if known is None or not known.serving:
        return _make(store, catalog, wanted, known, found, new_name)
    check_alias(wanted.alias, known.generation, found)
    described = catalog.describe(known.generation)
    check_description(known.generation, described, wanted.description)
    mapping = wanted.description.mapping
    if mapping != described.mapping or mapping != known.mapping_digest:
        store.walk_again(known.generation)
        catalog.set_description(known.generation, wanted.description)
    if (known.settings_digest, known.mapping_digest) != (wanted.settings_digest, mapping):
        store.serve(known.generation, wanted.settings_digest, mapping)
    return known.generation


def check_alias(alias: str, expected: str, found: str | None) -> None:
    """Raise IdentityError unless the alias points where the state says."""
    if found != expected:
        where = f"points at {found}" if found else "is not there"
        raise IdentityError(
            f"the alias {alias} {where}, but the state says {expected}: the collection was "
            "replaced, removed or is another Qdrant's, or the database was restored",
            hint="Check target.url or target.path and the database. If the collection is gone "
            "for good, `syncer once --start-over` builds a new one from SQLite.",
        )


def check_description(generation: str, found: Description, wanted: Description) -> None:
    """Raise unless the generation was made from this source and by this recipe."""
    if (found.source_id, found.table) != (wanted.source_id, wanted.table):
        raise IdentityError(
            f"{generation} was made from table {found.table} of another database "
            f"({found.source_id}), not from {wanted.table} ({wanted.source_id})",
            hint="Check source.database and target.collection. To give the collection up and "
            "build a new one, run `syncer once --start-over`.",
        )
    check_recipe(generation, found.recipe, wanted.recipe)


def check_recipe(generation: str, found: Recipe, wanted: Recipe) -> None:
    """Raise RecipeError, both sides shown, unless the two make the same vectors."""
    differences = _differences(found, wanted)
    if differences:
        raise RecipeError(
            f"{generation} was made by another recipe than the settings ask for: "
            + "; ".join(differences),
            hint="Put the settings back, or run `syncer once --start-over` to build a new "
            "generation by the settings as they are.",
        )


def _make(
    store: Store,
    catalog: Catalog,
    wanted: Wanted,
    known: Known | None,
    found: str | None,
    new_name: Callable[[], str],
) -> str:
    """Make a generation, or finish one whose making was interrupted."""
    unfinished = known.generation if known else None
    if found not in (None, unfinished):
        raise IdentityError(
            f"the alias {wanted.alias} points at {found}, which this database knows nothing of",
            hint="It belongs to another database, or this database's state was lost. Choose "
            "another target.collection, or run `syncer once --start-over` to build a new "
            "generation from this database.",
        )
    if unfinished is None or not _is_as_wanted(catalog, unfinished, wanted):
        if unfinished is not None:
            store.forget(unfinished)
        unfinished = new_name()
        store.add(unfinished, wanted.alias, wanted.description.table)
    catalog.create(unfinished, wanted.alias, wanted.description, wanted.indexes)
    store.serve(unfinished, wanted.settings_digest, wanted.description.mapping)
    return unfinished


def start_over(store: Store, catalog: Catalog, wanted: Wanted, new_name: Callable[[], str]) -> str:
    """Make a new generation, whatever was there; older ones are left where they are."""
    known = store.serving(wanted.alias)
    while known is not None:
        store.forget(known.generation)
        known = store.serving(wanted.alias)
    catalog.resolve(wanted.alias)  # refuses a real collection of that name
    generation = new_name()
    store.add(generation, wanted.alias, wanted.description.table)
    catalog.create(generation, wanted.alias, wanted.description, wanted.indexes)
    store.serve(generation, wanted.settings_digest, wanted.description.mapping)
    return generation


def _is_as_wanted(catalog: Catalog, generation: str, wanted: Wanted) -> bool:
    if not catalog.exists(generation):
        return True
    found = catalog.describe(generation)
    return found.source_id == wanted.description.source_id and not _differences(
        found.recipe, wanted.description.recipe
    )


def _differences(found: Recipe, wanted: Recipe) -> list[str]:
    """Return where two recipes differ, each as one readable phrase."""
    left, right = _flat(found), _flat(wanted)
    differences = [
        f"{name} was {left.get(name, 'absent')}, now {right.get(name, 'absent')}"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]
    if not differences and (cosine := _cosine(found.canary, wanted.canary)) < _CANARY_AGREES:
        differences.append(f"the same sentence now has another vector (cosine {cosine:.4f})")
    return differences


def _flat(recipe: Recipe) -> dict[str, str]:
    flat: dict[str, str] = {}
    for part, values in asdict(recipe).items():
        if part == "canary":
            continue
        if isinstance(values, dict):
            flat |= {f"{part}.{name}": canonical_json(value) for name, value in values.items()}
        else:
            flat[part] = canonical_json(values)
    return flat


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    norms = math.hypot(*left) * math.hypot(*right)
    if not norms:
        return 1.0 if len(left) == len(right) else 0.0
    return sum(a * b for a, b in zip(left, right, strict=True)) / norms
