"""``syncer status``: how far behind, from the state alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from syncer.cli import opening
from syncer.model import Phase
from syncer.settings import Settings
from syncer.state import utc_now


@dataclass(frozen=True, slots=True)
class Standing:
    """A generation besides the one that serves: what it is there for, and since when."""

    generation: str
    phase: str
    since: str
    rows: int

    def in_words(self) -> str:
        """Return what it is there for, for people."""
        what = {
            Phase.BUILDING: "being built by a rebuild",
            Phase.VERIFIED: "built and verified; `syncer rebuild` lets it take over",
            Phase.KEPT: "kept for `syncer rollback`, until `syncer gc`",
            Phase.RETURNING: "on its way back; `syncer rollback` goes on",
            Phase.NEW: "half made",
        }[Phase(self.phase)]
        return f"{self.generation}  {what} ({self.rows} rows, since {self.since})"


@dataclass(frozen=True, slots=True)
class Status:
    """Where a collection stands; `pending` is None before the first run.

    `pending` counts the changes and rows that are still to be looked at, `walked_rows` of
    `rows` how much of the table the walk has seen, `lag_seconds` is the age of the oldest change
    not yet in the target.
    """

    collection: str
    generation: str | None
    database: str
    table: str
    caught_up: bool
    pending: int | None
    walked: bool
    lag_seconds: float
    last_id: str | None
    change_seq: int
    last_success_at: str | None
    quarantined: int
    withheld: int
    comparing: bool
    verified_at: str | None = None
    drift: int | None = None
    generations: tuple[Standing, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)

    def in_words(self) -> str:
        """Return the status as lines for people."""
        if self.generation is None:
            return f"{self.collection}: never synced; run `syncer once`"
        lines = [
            f"collection   {self.collection} -> {self.generation}",
            f"source       {self.table} in {self.database}",
            f"state        {self._state()}",
            f"position     last id {self.last_id or 'none'}, change {self.change_seq}",
            f"last write   {self.last_success_at or 'never'}",
        ]
        if self.quarantined:
            lines.append(f"quarantine   rows that could not be indexed: {self.quarantined}")
        if self.withheld:
            lines.append(
                f"deletes      {self.withheld} deletes are withheld; see `syncer confirm-deletes`"
            )
        lines += [f"generation   {each.in_words()}" for each in self.generations]
        if self.comparing:
            lines.append("comparison   both stores are still to be compared row by row")
        if self.verified_at is not None:
            found = f"{self.drift} differed" if self.drift else "equal"
            lines.append(f"verified     {self.verified_at}: {found}")
        return "\n".join(lines)

    def _state(self) -> str:
        if self.caught_up:
            return "caught up"
        age = f", the oldest for {self.lag_seconds:.0f} s" if self.lag_seconds else ""
        if self.pending:
            return f"{self.pending} {'changes' if self.walked else 'rows of the walk'} behind{age}"
        if age:
            return f"expired rows are still to be taken out{age}"
        return "all changes are served, but the collection is not equal to the table"


def status(settings: Settings) -> Status:
    """Return how far the serving generation has got. Asks neither target nor embedder."""
    with opening.opened(settings) as sides:
        known = sides.store.serving(sides.alias)
        now = utc_now()
        pending = sides.source.pending(known.position) if known else None
        idle = bool(known and known.serving and sides.source.is_caught_up(known.position, now))
        quarantined = sum(sides.store.quarantined(known.generation).values()) if known else 0
        withheld = sides.store.withheld(known.generation) if known else 0
        comparing = bool(known and known.reconciling)
        verified = sides.store.verified(known.generation) if known else None
        others = [each for each in sides.store.generations(sides.alias) if each != known]
        oldest = sides.source.oldest_change(known.position, now) if known and not idle else None
    return Status(
        collection=sides.alias,
        generation=known.generation if known else None,
        database=str(settings.source.database),
        table=settings.source.table,
        caught_up=idle and not (quarantined or withheld or comparing),
        pending=pending,
        walked=bool(known and known.position.walked),
        lag_seconds=_age(oldest),
        last_id=known.position.last_id if known else None,
        change_seq=known.position.change_seq if known else 0,
        last_success_at=known.last_success_at if known else None,
        quarantined=quarantined,
        withheld=withheld,
        comparing=comparing,
        verified_at=verified.at if verified else None,
        drift=sum(verified.drift.values()) if verified else None,
        generations=tuple(
            Standing(
                each.generation, each.phase.value, each.kept_since or each.created_at, each.rows
            )
            for each in others
        ),
    )


def _age(stamp: str | None) -> float:
    if stamp is None:
        return 0.0
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds())
