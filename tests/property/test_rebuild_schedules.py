"""Whatever happens to rebuilds, an operator who runs one to its end has the table's equal."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import on_the_wire as wire
import pytest
from qdrant_http import Options, Server, running
from rebuilding.bugs import MISTAKES
from rebuilding.moments import PLACES
from rebuilding.nursery import Nursery, nursery
from rebuilding.schedule import COMMANDS, Round, Tally, leave_nothing

STEPS = 12  # of a round
FEW = 10  # rounds
MANY = 250
ENOUGH = 40  # rounds in which a bug must show


@pytest.fixture(scope="module")
def forks() -> Iterator[Nursery]:
    """Where processes come from."""
    with nursery() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all rounds."""
    with running(Options(folder=tmp_path_factory.mktemp("qdrant") / "storage")) as found:
        yield found


def try_rounds(
    forks: Nursery, server: Server, folder: Path, seeds: range, bug: str | None = None
) -> Tally:
    """Try a round for each seed, on a memory of its own; return what was done."""
    tally = Tally()
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        try:
            Round(forks, server, place, seed, tally, bug).run(STEPS)
        finally:
            server.faults.clear()
            with wire.anywhere_else(server.url) as client:
                leave_nothing(client)
    print(tally)  # noqa: T201 - for pytest -rP
    return tally


def first_that_fails(forks: Nursery, server: Server, folder: Path, bug: str) -> tuple[int, str]:
    """Return the first round that does not end well with a bug, and what it says."""
    for seed in range(1, 1 + ENOUGH):
        try:
            try_rounds(forks, server, folder, range(seed, seed + 1), bug)
        except AssertionError as error:
            return seed, str(error)
    pytest.fail(f"{ENOUGH} rounds do not find: {bug}")


def test_every_schedule_ends_with_one_generation_that_equals_the_table(
    forks: Nursery, server: Server, tmp_path: Path
) -> None:
    tally = try_rounds(forks, server, tmp_path, range(1, 1 + FEW))
    assert tally.comparisons == FEW
    assert tally.steps == FEW * STEPS
    assert sum(tally.kills.values()) >= FEW
    assert tally.swaps > 2 * FEW
    assert tally.meanwhile > FEW / 2
    assert tally.reused > 0
    assert set(tally.commands) == set(COMMANDS)


@pytest.mark.long
def test_every_one_of_many_schedules_ends_with_one_generation_that_equals_the_table(
    forks: Nursery, server: Server, tmp_path: Path
) -> None:
    first = secrets.randbelow(2**32)
    tally = try_rounds(forks, server, tmp_path, range(first, first + MANY))
    assert tally.comparisons == MANY
    assert sum(tally.kills.values()) > MANY
    assert PLACES.keys() - tally.kills == set(), "there are moments at which nobody died"
    assert tally.swaps > 2 * MANY
    assert tally.meanwhile > MANY
    assert tally.faults > MANY / 5  # two in three commands end before theirs would happen
    assert tally.withheld > 0


IN_CI = ("the state notes the swap before it is made",)


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(
            name, id=name.replace(" ", "-"), marks=[] if name in IN_CI else [pytest.mark.long]
        )
        for name in MISTAKES
    ],
)
def test_the_schedules_of_rebuilds_find(
    forks: Nursery, server: Server, tmp_path: Path, bug: str
) -> None:
    seed, found = first_that_fails(forks, server, tmp_path, bug)
    print(f"found by {seed}: {found}")  # noqa: T201 - for pytest -rP
    assert "code=1," not in found, "the process failed, whatever it was"
    right = tmp_path / "right"
    right.mkdir()
    try_rounds(forks, server, right, range(seed, seed + 1))
