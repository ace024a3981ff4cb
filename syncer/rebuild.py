"""Blue and green: a generation is built beside the one that serves, and then takes its place.

Blue goes on serving, and is kept in step, until green is found equal to the source. Where green has
got to is stored as any generation's position is, and what it is there for as its phase: killed at
any moment, the next rebuild goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from syncer.errors import IdentityError, ShrunkError
from syncer.generations import (
    Catalog,
    Known,
    Store,
    Wanted,
    check_unclaimed,
    finish_swap,
    is_as_wanted,
)
from syncer.guard import Limit
from syncer.model import Description, Phase, Recipe
from syncer.ports import Pipeline, State
from syncer.result import SyncResult
from syncer.worker import Terms, catch_up

_PASSES = 10  # over what was written meanwhile; the last changes are applied with blue's lock held


class Book(Store, Protocol):
    """The state's list of generations, as a rebuild needs it."""

    def enter(self, generation: str, phase: Phase) -> None:
        """Note that a generation that does not serve has come into another phase."""

    def keep_by(self, generation: str, settings_digest: str, mapping_digest: str) -> None:
        """Note by which settings a generation is kept."""

    def bind(self, generation: str) -> State:
        """Return the part of the state that a run on a generation works with."""


class Shelf(Catalog, Protocol):
    """The target's collections, as a rebuild needs them."""

    def make(self, generation: str, description: Description, indexes: Sequence[str]) -> None:
        """Create the collection, which nobody reads yet; may be repeated."""

    def differences(self, generation: str, recipe: Recipe) -> list[str]:
        """Return how the collection is stored otherwise than the settings ask for new ones."""


class Heirs(Protocol):
    """Whom the alias points at, and who goes."""

    def swap(self, alias: str, expected: str | None, generation: str) -> None:
        """Let `alias` point at `generation` instead of `expected`, in one request; read it back.

        May be repeated. Raises IdentityError if it points elsewhere, before or after.
        """

    def remove(self, generation: str) -> None:
        """Delete a collection for good; may be repeated. Raises RefusedError if an alias has it."""


def blue_of(
    store: Store, catalog: Catalog, alias: str, heir: str | None = None
) -> tuple[Known | None, str | None]:
    """Return the generation that serves as far as the state knows, and where the alias points.

    A swap that was interrupted is finished first. The alias may be gone, and the collection too: a
    rebuild brings them back. None serves while the alias points at one that is half made. Raises
    IdentityError if it points at what this state knows nothing of, or at another of its
    generations than `heir`, to which it is to go.
    """
    found = catalog.resolve(alias)
    ours = finish_swap(store, alias, found)
    check_unclaimed(alias, found, ours)
    if any(each.generation == found and each.phase is Phase.NEW for each in ours):
        return None, found
    blue = next((each for each in ours if each.serving), None)
    if found is not None and blue is not None and found not in {blue.generation, heir}:
        raise IdentityError(
            f"the alias {alias} points at {found}, but the state says {blue.generation}: somebody "
            "else has moved it",
            hint=f"Let it point at {blue.generation} again, or run `syncer rollback {found}` if "
            "that is the one that should serve.",
        )
    return blue, found


def begin(
    store: Book, catalog: Shelf, heirs: Heirs, wanted: Wanted, new_name: Callable[[], str]
) -> str:
    """Return the generation to build: one that was begun towards the same, or a new one.

    What was begun towards anything else is discarded. A changed mapping is the same space: the
    walk of green begins again in place. It is noted before anything of it exists. One that was
    verified stays so: a swap whose answer did not come may still be on its way to it.
    """
    ours = [each for each in store.generations(wanted.alias) if each.phase.is_green]
    green = next((each for each in ours if _is_usable(store, catalog, each, wanted)), None)
    for other in ours:
        if other is not green:
            discard(store, heirs, other.generation)
    if green is None:
        name = new_name()
        store.add(name, wanted.alias, wanted.description.table, Phase.BUILDING)
    else:
        name = green.generation
    catalog.make(name, wanted.description if green else wanted.measured(), wanted.indexes)
    described = catalog.describe(name)
    mapping = wanted.description.mapping
    if described.mapping != mapping:
        store.enter(name, Phase.BUILDING)
        store.walk_again(name)
        catalog.set_description(name, replace(wanted.description, recipe=described.recipe))
    store.keep_by(name, wanted.settings_digest, mapping)
    return name


def _is_usable(store: Book, catalog: Shelf, known: Known, wanted: Wanted) -> bool:
    """Say whether a rebuild may go on with a generation that was begun.

    Its collection has to be the one whose position the state knows: not gone, nor another one of
    that name, nor further than a database that was put back.
    """
    name, recipe = known.generation, wanted.description.recipe
    return (
        catalog.exists(name)
        and is_as_wanted(catalog, known, wanted)
        and not catalog.differences(name, recipe)
        and catalog.token(name) in store.bind(name).tokens()
    )


def discard(store: Store, heirs: Heirs, generation: str) -> None:
    """Remove a generation that nobody reads, and all that is known of it. May be repeated."""
    heirs.remove(generation)
    store.forget(generation)


def build(
    green: Pipeline, terms: Terms, head: Callable[[], int], report: Callable[[SyncResult], None]
) -> SyncResult:
    """Walk the table, then follow its changes until hardly anything is left; may be repeated.

    Deletes are not withheld here: how many rows are left is judged when green is to take over.
    """
    unguarded = replace(terms, limit=None)
    total = catch_up(green, unguarded, head=head(), report=report)
    for _ in range(_PASSES):
        if total.more or head() <= total.position.change_seq:
            break
        total = total.plus(catch_up(green, unguarded, head=head(), report=report))
    return total


def check_size(
    blue: str, before: int, green: str, now: int, limit: Limit, confirmed: int | None
) -> None:
    """Raise ShrunkError if green has so many rows fewer than blue that it may be a mistake.

    `confirmed` is how many rows somebody has said are enough, if so.
    """
    enough = before if confirmed is None else min(before, confirmed)
    if not limit.is_exceeded(enough - now, enough):
        return
    raise ShrunkError(
        f"{green} has {now} rows, {blue} has {before}: so many fewer may be a mistake, so the "
        "alias was not moved",
        hint="See whether rows are missing from the table. If it is right as it is, run `syncer "
        "confirm-deletes`, then the same command again; what was built is kept.",
    )


def take_over(
    store: Book, heirs: Heirs, alias: str, found: str | None, heir: Known, phase: Phase
) -> None:
    """Let the alias point at `heir` instead of `found`, and note it; may be repeated.

    The phase is noted before: killed in between, whoever comes next sees the alias there, and
    notes the rest. Raises IdentityError if the alias was moved by somebody else.
    """
    store.enter(heir.generation, phase)
    heirs.swap(alias, found, heir.generation)
    store.serve(heir.generation, heir.settings_digest, heir.mapping_digest)
