"""The comparison: what the target holds into the scratch file, then the table along it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from syncer.ports import Pipeline
from syncer.result import VerifyResult
from syncer.verify.sampling import Reservoir, wrong_vectors
from syncer.verify.scratch import Finding, Scratch, scratch_in
from syncer.verify.suspects import confirm
from syncer.verify.walking import Gathering, Report, Walk
from syncer.worker import Terms


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many rows are embedded again, and by which seed they are chosen."""

    rows: int = 0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found, and one finding after the other as long as the scratch file is there."""

    result: VerifyResult
    scratch: Scratch

    def findings(self) -> Iterator[list[Finding]]:
        """Yield, in pages, what differs."""
        return self.scratch.findings()


def verify(
    pipeline: Pipeline,
    terms: Terms,
    *,
    scratch: Path | None = None,
    report: Report = lambda _: None,
    sampling: Sampling | None = None,
) -> VerifyResult:
    """Compare both stores and return what differs; nothing is written to either.

    `scratch` is a folder for a temporary file of some 200 bytes for each point, by default where
    temporary files go. Raises what reading either store raises, and Stopped.
    """
    with compared(pipeline, terms, scratch=scratch, report=report, sampling=sampling) as found:
        return found.result


@contextmanager
def compared(
    pipeline: Pipeline,
    terms: Terms,
    *,
    scratch: Path | None = None,
    report: Report = lambda _: None,
    sampling: Sampling | None = None,
) -> Iterator[Comparison]:
    """Compare both stores; while the block runs, each finding can be asked for."""
    began, sampling = perf_counter(), sampling or Sampling()
    with scratch_in(scratch) as file:
        reservoir = Reservoir(sampling.rows, sampling.seed)
        gathering = Gathering(pipeline, file, report)
        walk = Walk(pipeline, file, gathering, reservoir)
        seen = walk.all_rows(terms.now(), report)
        apart = confirm(pipeline, terms, file, walk.unindexable, gathering.points)
        file.find(wrong_vectors(pipeline, terms, reservoir.keys))
        result = VerifyResult(
            generation=pipeline.retry(pipeline.state.position).generation,
            rows=seen,
            points=gathering.points,
            sampled=len(reservoir.keys),
            drift=file.drift(),
            pending=apart.pending,
            quarantined=apart.quarantined,
            withheld=apart.withheld,
            seconds=perf_counter() - began,
        )
        yield Comparison(result, file)
