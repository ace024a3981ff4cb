"""Taking over from a collection that another tool has made under the alias's own name.

Qdrant cannot rename: that collection has to go before the alias can have its name. It goes only
once each of its points is a row, or is written into a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from syncer.errors import DriftError, RefusedError
from syncer.foreign import Foreign, Form, Memory, Unfit, is_foreign, memory_of
from syncer.rebuild import Heirs
from syncer.recover import Fate, File, Origin, Table, Taken, exported, make_rows
from syncer.retry import Retry


class ArrivedError(DriftError):
    """Points were written to the collection that is to go, and are saved only now."""


class Predecessor(Protocol):
    """The collection that is to go."""

    def exists(self) -> bool:
        """Say whether it is there, and no alias has its name."""

    def remove(self) -> None:
        """Delete it for good; may be repeated."""


@dataclass(frozen=True, slots=True)
class Saved:
    """How many points were saved now, and the first that could not be, with why."""

    new: int = 0
    left: int = 0
    first: str = ""


Keep = Callable[[], Saved]
"""Sees to it that each point of the collection is a row or in a file; may be repeated."""


def unfit(point: Foreign, form: Form) -> str | None:
    """Return why a point cannot become a row, None if it can.

    What syncer wrote is no memory: its row is in some database, and a chunk is not the whole of it.
    """
    if not is_foreign(point.payload):
        return "syncer wrote it, from a row of some database"
    found = memory_of(point, form)
    return found.why if isinstance(found, Unfit) else None


def check_all_fit(origin: Origin, form: Form) -> None:
    """Raise RefusedError if a point cannot become a row: before anything is built or written."""
    left, first = 0, ""
    for page in origin.pages():
        for point in page:
            if (why := unfit(point, form)) is not None:
                left, first = left + 1, first or f"point {point.name}: {why}"
    refuse_left(form.collection, Saved(left=left, first=first))


def refuse_left(collection: str, saved: Saved) -> None:
    """Raise RefusedError if a point is neither a row nor in a file."""
    if saved.left:
        raise RefusedError(
            f"{collection} has {saved.left} points that cannot become rows, so it was not taken "
            f"over; the first is {saved.first}",
            hint="Nothing was deleted. `syncer rebuild --adopt --export FILE` writes all of its "
            "points into a file instead.",
        )


def keep_as_rows(retry: Retry, table: Table, taken: Taken, origin: Origin, form: Form) -> Saved:
    """Bring each point home as a row."""
    new, left, first = 0, 0, ""
    for page in origin.pages():
        before = table.last_id()
        found = [(point, memory_of(point, form)) for point in page]
        memories = [
            memory
            for point, memory in found
            if isinstance(memory, Memory) and unfit(point, form) is None
        ]
        homes = make_rows(retry, table, taken, memories, form.collection)
        new += sum(isinstance(row, int) and row > before for row in homes.values())
        for point, _ in found:
            home = homes.get(point.id, unfit(point, form) or "")
            if isinstance(home, str):
                left, first = left + 1, first or f"point {point.name}: {home}"
    return Saved(new, left, first)


def keep_in_file(file: File, origin: Origin, collection: str) -> Saved:
    """Write each point into a file."""
    new, left, first = 0, 0, ""
    for page in origin.pages():
        for point in page:
            told, added = exported(point, file, collection)
            new += added
            if told.fate is Fate.LEFT:
                left, first = left + 1, first or f"point {point.name}: {told.why}"
    return Saved(new, left, first)


@dataclass(frozen=True, slots=True)
class Successors:
    """Who gets the alias, once the collection that has its name is saved and gone."""

    heirs: Heirs
    predecessor: Predecessor
    keep: Keep
    say: Callable[[str], None]

    def swap(self, alias: str, expected: str | None, generation: str) -> None:
        """Delete the collection and let the alias point at `generation`; two requests.

        May be repeated. Raises ArrivedError, nothing deleted, if there were points that had not
        been saved before; RefusedError if one cannot be.
        """
        if self.predecessor.exists():
            saved = self.keep()
            refuse_left(alias, saved)
            if saved.new:
                raise ArrivedError(
                    f"{saved.new} points were written to {alias} meanwhile; they were saved, and "
                    "it was not deleted yet",
                    hint="Stop what writes to it, then run the same command again.",
                )
            self.say(
                f"deleting the collection {alias}, then the alias {alias} is made: Qdrant cannot "
                "rename, so readers get an error between the two"
            )
            self.predecessor.remove()
        self.heirs.swap(alias, expected, generation)

    def remove(self, generation: str) -> None:
        """Delete a generation's collection; see ``syncer.rebuild.Heirs``."""
        self.heirs.remove(generation)
