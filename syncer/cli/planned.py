"""``syncer rebuild --plan``: what a rebuild would embed, and how long that takes here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from syncer.cli import compose, opening, specs
from syncer.cli.lenders import donors
from syncer.cli.opening import Sides
from syncer.settings import Settings

if TYPE_CHECKING:
    from syncer.embed.encoder import Encoder
    from syncer.model import Chunk, Row
    from syncer.plan import RowPlan
    from syncer.ports import Donor, Pipeline

_SAMPLE = 256  # texts that are embedded to see how fast it goes


@dataclass(frozen=True, slots=True)
class Planned:
    """What a rebuild would do.

    `differences` are those between the recipe that serves and the one that the settings ask for.
    `embed` texts have to be embedded, of `reuse` the vectors are there. `rate` is how many texts a
    second a sample of `sampled` was embedded at, just now; 0 where nothing has to be.
    """

    collection: str
    serving: str | None
    differences: tuple[str, ...]
    rows: int
    embed: int
    reuse: int
    sampled: int
    rate: float

    @property
    def seconds(self) -> float:
        """How long the embedding takes at that rate."""
        return self.embed / self.rate if self.rate else 0.0

    def as_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return {**asdict(self), "seconds": round(self.seconds, 1)}

    def in_words(self) -> str:
        """Return the plan as lines for people."""
        lines = [
            f"collection   {self.collection} -> {self.serving or 'nothing yet'}",
            f"rows         {self.rows}",
            f"embed        {self.embed} texts" + self._duration(),
            f"reuse        {self.reuse} texts whose vectors are there already",
        ]
        lines += [f"differs      {each}" for each in self.differences]
        return "\n".join(lines)

    def _duration(self) -> str:
        if not self.rate:
            return ""
        return (
            f", about {_duration(self.seconds)} at {self.rate:.0f} texts/s (a sample of "
            f"{self.sampled}, embedded just now)"
        )


def plan(settings: Settings) -> Planned:
    """Return what a rebuild would do; nothing is written anywhere.

    The whole table is read and cut into chunks, and the target asked which texts it knows.
    """
    from syncer.cli.ready import Ready
    from syncer.recipes import differences
    from syncer.target import Catalog, connect
    from syncer.worker import Stop

    with (
        opening.opened(settings) as sides,
        connect(specs.target_spec(settings), to_write=False) as connection,
        closing(compose.build_embedder(settings)) as embedder,
    ):
        retry = compose.retry_policy(settings)
        found = Ready(sides, connection, embedder, retry, Stop())
        serving = sides.store.serving(sides.alias)
        different: list[str] = []
        catalog = Catalog(connection)
        if serving and retry(catalog.exists, serving.generation):
            theirs = retry(catalog.describe, serving.generation).recipe
            different = differences(theirs, embedder.recipe)
        lenders = donors(found, "", embedder.recipe)
        blank = replace(compose.preview_pipeline(sides, compose.null_target()), retry=retry)
        measured = embedder.by(compose.wanted(sides, embedder).measured().recipe)
        counted = _counted(blank, sides, measured, lenders)
    return replace(
        counted,
        serving=serving.generation if serving else None,
        differences=tuple(different),
    )


def _counted(
    pipeline: Pipeline, sides: Sides, embedder: Encoder, lenders: Sequence[Donor]
) -> Planned:
    rows = embed = reuse = 0
    sample: list[Chunk] = []
    layout = compose.layout(sides, embedder.recipe)
    lenders = [donor for donor in lenders if layout.vector in donor.vectors]
    with _progress(sides) as progress:
        for window in compose.whole_table(sides):
            planned = _embedded(window, replace(pipeline, layout=layout, chunker=embedder.split))
            there = {text for donor in lenders for text in _texts(pipeline, donor, planned)}
            new = [one for row in planned for one in row.chunks if one.text_hash not in there]
            rows += len(planned)
            embed += len(new)
            reuse += sum(len(row.chunks) for row in planned) - len(new)
            sample += new[: max(0, _SAMPLE - len(sample))]
            progress(len(window))
    rate = _rate(embedder, sample)
    return Planned(sides.alias, None, (), rows, embed, reuse, len(sample), rate)


def _embedded(rows: Sequence[Row], pipeline: Pipeline) -> tuple[RowPlan, ...]:
    """Return the plans of rows that an empty generation would get."""
    from syncer.plan import Action, plan_rows

    return plan_rows(rows, {}, pipeline.layout, pipeline.chunker).having(Action.EMBED)


def _texts(pipeline: Pipeline, donor: Donor, rows: Sequence[RowPlan]) -> set[str]:
    """Return the hashes of the texts that a donor knows of these rows; no vectors are read."""
    from syncer.reuse import of_rows

    return {found.text for found in of_rows(pipeline, replace(donor, vectors=()), rows)}


def _rate(embedder: Encoder, sample: Sequence[Chunk]) -> float:
    if not sample:
        return 0.0
    began = time.perf_counter()
    embedder.embed([chunk.text for chunk in sample], [chunk.tokens for chunk in sample])
    return len(sample) / (time.perf_counter() - began)


@contextmanager
def _progress(sides: Sides) -> Iterator[Callable[[int], None]]:
    """Give what moves a bar on, shown if somebody is looking."""
    from syncer.cli.progress import progress_bar
    from syncer.cli.terminal_report import colours, interactive

    if not interactive():
        yield lambda _: None
        return
    with progress_bar(no_colour=not colours()) as bar:
        task = bar.add_task("planning", total=sides.source.count() or None)
        yield lambda rows: bar.advance(task, rows)


def _duration(seconds: float) -> str:
    """Return a duration as people say it."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
