"""What the schedules have done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """What the schedules have done, so that those that do nothing cannot pass.

    `promised` counts the rows that a comparison could say something of, `found_after` the steps
    after which something was wrong for the first time.
    """

    schedules: int = 0
    steps: int = 0
    changed: int = 0
    windows: int = 0
    embedded: int = 0
    payload_only: int = 0
    deleted: int = 0
    processes: int = 0
    kills: int = 0
    errors: int = 0
    meanwhile: int = 0
    refusals: int = 0
    withheld: int = 0
    quarantined: int = 0
    comparisons: int = 0
    promised: int = 0
    rows: int = 0
    points: int = 0
    found_after: int | None = None
