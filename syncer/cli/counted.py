"""Whether the collection still holds what was written: by counts, which cost next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from syncer.errors import IdentityError, SyncerError
from syncer.retry import Retry

_ROWS, _SHARE = 20, 0.2  # so many rows fewer than counted, and such a share, are too many

_HINT = (
    "To compare both stores and mend what is missing, run `syncer once --on-regression reconcile`."
)


class Book(Protocol):
    """What the state knows of a generation's size."""

    def points(self) -> int | None:
        """Return the count of points after the last run, if it ended well."""

    def rows(self) -> int:
        """Return how many rows the target holds, as far as the state has kept count."""

    def reconciling(self) -> bool:
        """Say whether both stores are still to be compared key by key."""

    def note_points(self, points: int, *, at_least: bool = False) -> None:
        """Note how many points the target has, or has at least."""


class Counting(Protocol):
    """A target that counts."""

    @property
    def deleted(self) -> int:
        """How many points were asked to be deleted so far."""

    def count(self) -> int:
        """Return how many points there are."""


def check_count(book: Book, found: int, generation: str) -> int:
    """Return how many points there are beyond those noted; raise IdentityError if there are fewer.

    After a run that did not end well nothing is noted. A row has a point at least, but the state's
    count of rows may be a little high after a kill: only a large difference is refused.
    """
    noted, rows = book.points(), book.rows()
    missing = rows - found
    too_few = missing > _ROWS and missing > _SHARE * rows
    if noted is None and too_few and not book.reconciling():
        raise IdentityError(
            f"{generation} has {found} points for {rows} rows: it was emptied, restored or written "
            "to by somebody else",
            hint=_HINT,
        )
    if noted is not None and found < noted:
        raise IdentityError(
            f"{generation} has {found} points, but had {noted} after the last run: it was emptied, "
            "restored or written to by somebody else",
            hint=_HINT,
        )
    return 0 if noted is None else found - noted


@dataclass(slots=True)
class Count:
    """How many points a generation must have: those of before, and what was written since.

    `more` is how many there were beyond those noted.
    """

    book: Book
    target: Counting
    generation: str
    retry: Retry
    more: int = 0
    _points: int = field(init=False)
    _rows: int = field(init=False)
    _deleted: int = field(init=False)

    def __post_init__(self) -> None:
        self.begin(self.retry(self.target.count))

    def begin(self, points: int) -> None:
        """Begin with so many points, which are right, whatever happened before."""
        self._points = points
        self._rows, self._deleted = self.book.rows(), self.target.deleted

    def compare(self) -> None:
        """Raise IdentityError if there were fewer points than the last run has noted."""
        self.more = check_count(self.book, self._points, self.generation)

    def least(self) -> int:
        """Return how many there must be: one more for each new row, less what was to be deleted."""
        new, gone = self.book.rows() - self._rows, self.target.deleted - self._deleted
        return max(0, self._points + new - gone)

    def check(self) -> int:
        """Return how many there are; note how many there must be, and raise, if it is fewer."""
        found = self.retry(self.target.count)
        if found >= self.least():
            return found
        self.book.note_points(self.least(), at_least=True)
        raise IdentityError(
            f"{self.generation} has {found} points, but should have {self.least()} or more by what "
            "this run wrote: it was emptied, restored or written to by somebody else meanwhile",
            hint=_HINT,
        )


@contextmanager
def keeping_count(
    book: Book, target: Counting, generation: str, retry: Retry, *, fewer: bool = False
) -> Iterator[Count]:
    """Give the count of points, and note in the end how many there are.

    However the block ends, it is noted how many there must be at least. Raises IdentityError if
    there are fewer, before or after; before only unless `fewer` may be there, since they are put
    back.
    """
    count = Count(book, target, generation, retry)
    if not fewer:
        count.compare()
    try:
        yield count
    except SyncerError:
        with suppress(SyncerError):  # the first one is told
            book.note_points(count.least(), at_least=True)
        raise
    book.note_points(count.check())
