"""Whether the collection still holds what was written: by counts, which cost next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


@contextmanager
def keeping_count(
    book: Book, target: Counting, generation: str, retry: Retry, *, fewer: bool = False
) -> Iterator[int]:
    """Give how many points there are beyond those noted, and note in the end how many there are.

    However the block ends, it is noted how many there must be at least: those of before, one for
    each row that is new, less those that were asked to be deleted. Raises IdentityError if there
    are fewer, before or after; before only unless `fewer` may be there, since they are put back.
    """
    points, rows = retry(target.count), book.rows()
    more = 0 if fewer else check_count(book, points, generation)

    def least() -> int:
        return max(0, points + book.rows() - rows - target.deleted)

    try:
        yield more
    except SyncerError:
        with suppress(SyncerError):  # the first one is told
            book.note_points(least(), at_least=True)
        raise
    found = retry(target.count)
    if found < least():
        book.note_points(least(), at_least=True)
        raise IdentityError(
            f"{generation} has {found} points, but should have {least()} or more by what this run "
            "wrote: it was emptied, restored or written to by somebody else meanwhile",
            hint=_HINT,
        )
    book.note_points(found)
