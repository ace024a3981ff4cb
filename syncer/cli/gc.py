"""``syncer gc``: generations that nothing needs any more go, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from syncer import lock
from syncer.cli import compose, opening, specs
from syncer.cli.opening import Sides
from syncer.cli.rebuild import alone
from syncer.errors import LockedError, RefusedError
from syncer.settings import Settings
from syncer.state import kept_ones

if TYPE_CHECKING:
    from syncer.retry import Retry
    from syncer.target import Succession


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a generation, and why."""

    generation: str
    removed: bool
    why: str


def gc(settings: Settings, keep: int | None, *, dry_run: bool) -> list[Fate]:
    """Remove the generations that served before, but for the last `keep`; and what was left over.

    Left over is what was made from this database and the state knows nothing of any more. Never
    removed is what serves, what is in the making, what an alias points at, and what holds points
    that syncer did not write.
    """
    from syncer.target import Succession, connect

    with (
        opening.opened(settings, to_write=True) as sides,
        alone(sides),
        connect(specs.target_spec(settings)) as connection,
        opening.locked(sides, sides.alias),
    ):
        retry = compose.retry_policy(settings)
        retry(connection.check_version)
        heirs = Succession(connection)
        most = settings.target.keep_generations if keep is None else keep
        fates = list(_fates(sides, heirs, retry, most, dry_run=dry_run))
        if not dry_run:
            _remove_locks(sides)
        return fates


def _fates(
    sides: Sides, heirs: Succession, retry: Retry, keep: int, *, dry_run: bool
) -> Iterator[Fate]:
    ours = sides.store.generations(sides.alias)
    kept = kept_ones(ours)
    for each in ours:
        if each not in kept:
            why = "serves" if each.serving else f"is in the making ({each.phase})"
            yield Fate(each.generation, removed=False, why=why)
    for number, each in enumerate(kept, 1):
        if number <= keep:
            why = f"kept for `syncer rollback`: the last {keep} are"
            yield Fate(each.generation, removed=False, why=why)
        else:
            why = f"served until {each.kept_since}"
            yield _removed(sides, heirs, retry, each.generation, why, dry_run=dry_run)
    known = {each.generation for each in ours}
    for name in retry(heirs.of_source, sides.alias, sides.store.source_id()):
        if name not in known:
            yield _removed(sides, heirs, retry, name, "was left over", dry_run=dry_run)


def _removed(
    sides: Sides, heirs: Succession, retry: Retry, name: str, why: str, *, dry_run: bool
) -> Fate:
    """Remove a generation, unless somebody uses it or it holds what is nowhere else.

    Raises TargetError or SchemaError where that cannot be found out: nothing is removed then.
    """
    if foreign := retry(heirs.foreign, name):
        held = f"holds {foreign} points that syncer did not write; see `syncer recover`"
        return Fate(name, removed=False, why=held)
    try:
        with lock.held(sides.lock_path(name), f"the lock on {name}"):
            if not dry_run:
                retry(heirs.remove, name)
                sides.store.forget(name)
    except LockedError:
        return Fate(name, removed=False, why="somebody works on it")
    except RefusedError as error:  # an alias points at it
        return Fate(name, removed=False, why=error.message)
    return Fate(name, removed=True, why=why)


def _remove_locks(sides: Sides) -> None:
    """Remove the lock files of generations that are no more."""
    from syncer.target import is_generation_of

    known = {each.generation for each in sides.store.generations(sides.alias)}
    for path, name in opening.lock_files(sides):
        if is_generation_of(name, sides.alias) and name not in known:
            path.unlink(missing_ok=True)


def in_words(fates: Sequence[Fate], *, dry_run: bool) -> str:
    """Return what became of each generation, as lines for people."""
    words = {True: "would go" if dry_run else "removed", False: "stays"}
    lines = [f"{words[each.removed]:<9} {each.generation}  {each.why}" for each in fates]
    return "\n".join(lines) or "there is no generation yet"


def as_json(fates: Sequence[Fate]) -> str:
    """Return what became of each generation, as a JSON array."""
    return json.dumps([asdict(each) for each in fates])
