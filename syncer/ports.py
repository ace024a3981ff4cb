"""What the heart needs of the world: source, state, embedder and target, each with its contract.

The adapters know nothing of this module's users, and these know no adapter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from syncer.keys import Key, PointId
from syncer.model import (
    Embedded,
    Held,
    Outcome,
    Piece,
    Point,
    Position,
    Reason,
    Recipe,
    Row,
    SparseVector,
    StoredVectors,
    Vector,
    Window,
)
from syncer.plan import Chunker, Layout, RowPlan
from syncer.records import Record, RecordPage
from syncer.retry import Retry

Refused = Mapping[PointId, tuple[Reason, str]]
"""Points that the target does not take, each with why; nearly always none."""


class Source(Protocol):
    """The table and its change feed."""

    def read(self, position: Position, *, head: int, now: str) -> Window:
        """Return the rows to look at next, as they are now, each key once.

        Changes up to sequence number `head` come first, then rows that expired up to `now`, then
        the walk. One short read transaction; no statement is open afterwards. Raises SourceError,
        or SourceBusyError when the database stays locked.
        """

    def rows(self, keys: Sequence[Key], now: str) -> tuple[Row, ...]:
        """Return the rows with these keys as they are now, absent ones too."""

    def walk(self, after: Key | None, now: str) -> tuple[tuple[Row, ...], Key | None]:
        """Return the rows behind `after` in key order as they are now, and where to go on.

        None stands for the table's beginning, and for its end. Rows out of scope come as absent.
        One short read transaction; nothing is remembered.
        """

    def pending_keys(self, position: Position, keys: Sequence[Key], now: str) -> set[str]:
        """Return which of these rows, as JSON, are still to be looked at from `position` on.

        They have changed or expired since, are not settled, or the walk has not come to them.
        """

    def gone(self, position: Position, *, head: int, now: str) -> Iterator[list[Key]]:
        """Yield, in pages, the keys up to `head` whose rows are gone or out of scope at `now`.

        Expired rows do not count: they were to go.
        """


class State(Protocol):
    """Positions and tokens of one generation, kept beside the truth."""

    def position(self) -> Position:
        """Return the stored position. Raises IdentityError if another process moved it."""

    def commit(self, old: Position, new: Position, outcome: Outcome) -> int:
        """Record `outcome` and move the position; return how many rows are newly quarantined.

        One transaction; nothing is written if nothing changes. Raises PositionMovedError if the
        stored position is not `old`.
        """

    def due(self, now: str) -> list[Key]:
        """Return the quarantined rows that are to be tried again now."""

    def withheld(self) -> list[Key]:
        """Return the rows whose deletion is withheld."""

    def quarantined_among(self, rows: Sequence[str]) -> set[str]:
        """Return which of these rows, by their key as JSON, are quarantined."""

    def withheld_among(self, rows: Sequence[str]) -> set[str]:
        """Return which of these rows, by their key as JSON, are withheld from deletion."""

    def deletes_since(self, moment: str) -> int:
        """Return how many rows were taken out since then that nobody had announced."""

    def rows(self) -> int:
        """Return how many rows the target holds, as far as the state has kept count."""

    def reconciling(self) -> bool:
        """Say whether both stores are still to be compared key by key."""

    def reconciled(self) -> None:
        """Note that they were compared."""

    def tokens(self) -> frozenset[str | None]:
        """Return what the collection may carry: the last token (or None) or a pending one."""

    def owns_token(self) -> bool:
        """Say whether this process wrote the last token."""

    def begin_token(self, token: str, carried: str | None) -> None:
        """Note `token` as pending, and `carried` as what the collection has. Durable then."""

    def confirm_token(self, token: str) -> None:
        """Note that the collection carries `token`."""


class Embedder(Protocol):
    """Texts to vectors, by the recipe of one generation."""

    @property
    def recipe(self) -> Recipe:
        """Return what decides the vectors."""

    def split(self, texts: Sequence[str]) -> Sequence[Sequence[Piece]]:
        """Return the pieces of each text, none longer than the model takes."""

    def embed(self, texts: Sequence[str], counts: Sequence[int] = ()) -> Embedded:
        """Return the vectors of `texts` in their order, checked for count and size.

        `counts` are the texts' tokens where ``split`` has counted them. An empty vector stands
        for one that is not finite or has no length, or for a text that was refused alone: what
        is wrong with all texts raises EmbedderError.
        """

    def sparse(self, texts: Sequence[str]) -> Sequence[SparseVector]:
        """Return the sparse vectors of `texts`; none at all where the recipe has no such part."""

    def query(self, text: str) -> Vector:
        """Return the vector of a question."""

    def close(self) -> None:
        """Let go of threads and memory."""


class Target(Protocol):
    """One generation: every call names the physical collection, none goes through the alias.

    All writes wait until they are applied, may be repeated, and raise TargetError, or
    TargetUnavailableError when it is not known whether they were applied. Points that are refused
    for what they are do not keep others from being written, and are returned; what is refused
    whatever it is raises.

    A target may be asked to preserve what is not syncer's: then vectors and payload keys that a
    written point does not name stay in the one that is there, until that is deleted. Interrupted
    amid such a write, a point says of itself that it is open.
    """

    def look_up(self, ids: Mapping[PointId, Key]) -> dict[Key, Held]:
        """Return what the points with these ids say of their rows; without the missing ones."""

    def token(self) -> str | None:
        """Return the token that the collection carries."""

    def write_token(self, token: str) -> None:
        """Let the collection carry `token`."""

    def batches(self, points: Sequence[Point]) -> Sequence[Sequence[Point]]:
        """Cut points, in their order, into what a request takes by number and by bytes."""

    def upsert(self, points: Sequence[Point]) -> Refused:
        """Write whole points in their order; of several with one id the last one counts."""

    def open_rows(self, held: Sequence[Point], new: Sequence[Point]) -> None:
        """Write commit records: only ``_sync`` of points that are there, bare points otherwise."""

    def overwrite(self, points: Sequence[Point]) -> Refused:
        """Replace the payloads of points and leave their vectors alone."""

    def delete(self, ids: Sequence[PointId]) -> None:
        """Delete points by id; missing ones are no error."""

    def row_page(self, offset: PointId | None = None) -> tuple[list[str], PointId | None]:
        """Return the rows of a page of points from the id `offset` on, and the next page's offset.

        Rows are keys as JSON; one with several points may come again on a later page. Raises
        TargetError if the page does not lead any further.
        """

    def records(self, offset: PointId | None = None, *, lacking: str = "") -> RecordPage:
        """Return a page of all points' records from the id `offset` on, in the order of ids.

        With `lacking` only those of points that have no vector of that name. Raises TargetError
        if the page does not lead any further.
        """

    def records_of(self, ids: Sequence[PointId]) -> tuple[Record, ...]:
        """Return the records of the points with these ids; without the missing ones."""

    def lacking(self, vector: str, ids: Sequence[PointId]) -> set[PointId]:
        """Return which of the points with these ids are there and have no vector of that name."""

    def vectors(self, vector: str, ids: Sequence[PointId]) -> dict[PointId, Vector]:
        """Return the dense vectors of that name by point id; without the missing ones."""


class Lender(Protocol):
    """A collection whose vectors can be read."""

    def stored(self, ids: Sequence[PointId], names: Sequence[str]) -> Sequence[StoredVectors]:
        """Return what the points with these ids hold of the vectors `names`; missing ones are out.

        May be repeated. Raises TargetError, or TargetUnavailableError.
        """

    def pieces(self, ids: Sequence[PointId]) -> Mapping[PointId, str]:
        """Return the texts of the points with these ids; missing ones are out."""


@dataclass(frozen=True, slots=True)
class Donor:
    """A generation that lends its `vectors`, by name.

    One that is `itself` written to is asked for rows of several chunks only: of those some may
    still be what they were. One that `cuts_alike` has the same chunks of the same text.
    """

    lender: Lender
    vectors: tuple[str, ...]
    itself: bool = False
    cuts_alike: bool = False

    def can_help(self, row: RowPlan) -> bool:
        """Say whether it is worth asking for this row."""
        return not self.itself or row.held_chunks > 1


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What ``sync_once`` works with: the adapters of one generation, and how rows become points.

    `withhold` keeps rows in the target that are gone without having announced it. `donors` have
    vectors that need not be computed again, the likeliest first.
    """

    source: Source
    state: State
    embedder: Embedder
    target: Target
    layout: Layout
    chunker: Chunker
    retry: Retry
    withhold: bool = False
    donors: tuple[Donor, ...] = ()

    def row_pages(self) -> Iterator[list[str]]:
        """Yield, in pages, the keys as JSON of all rows that the target holds; some come twice."""
        rows, following = self.retry(self.target.row_page)
        yield rows
        while following is not None:
            rows, following = self.retry(self.target.row_page, following)
            yield rows
