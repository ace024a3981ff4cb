"""Killed at any moment of a rebuild or a rollback, whatever is run next, all ends well.

Real processes die by SIGKILL. Afterwards whoever reads through the alias finds a whole generation;
in the end exactly one serves, equals the table, and nothing that serves was removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import memory
import pytest
from _pytest.mark.structures import ParameterSet
from rebuilding import equality
from rebuilding.moments import Moment
from rebuilding.nursery import KILLED, Nursery, nursery

from syncer.model import Phase

FIRST = {
    "embed.dimension": 8,
    "embed.chunk_tokens": 12,
    "sync.window_rows": 4,
    "sparse.enabled": False,  # its stop words take half a second to load
}
SECOND = {**FIRST, "embed.dimension": 16}
THIRD = {**FIRST, "embed.passage_prefix": "a passage: "}  # the first one's dimension
LONG = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron pi rho"
ROWS = [f"{LONG} {number}" if number % 3 == 0 else f"memory {number}" for number in range(1, 11)]

EDITS = f"""
UPDATE memory_events SET content = 'edited' WHERE id IN (1, 3);
UPDATE memory_events SET content = '{LONG} anew' WHERE id = 2;
UPDATE memory_events SET scope = 'other' WHERE id IN (4, 6);
DELETE FROM memory_events WHERE id IN (5, 9);
INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', 'new');
"""

PHASES = {
    "before green is noted": Moment("noted"),
    "green noted": Moment("made"),
    "made": Moment("made", after=True),
    "kept by these settings": Moment("kept by", after=True),
    "the first token": Moment("token", after=True),
    "half a window": Moment("upsert", 2),
    "a window that is not noted": Moment("position", 2),
    "walking": Moment("position", 2, after=True),
    "walked": Moment("position", 3, after=True),
    "before it is compared": Moment("compared"),
    "compared": Moment("compared", after=True),
    "verified": Moment("phase", after=True),
    "before the swap's request": Moment("alias"),
    "after the swap's request": Moment("alias", after=True),
    "before the state notes it": Moment("served"),
    "the state has noted it": Moment("served", after=True),
    "before its size is noted": Moment("counted"),
}
RETURNS = {
    "on its way back": Moment("phase", after=True),
    "half a window": Moment("upsert", 1, after=True),
    "catching up": Moment("position", 1, after=True),
    "before it is compared": Moment("compared"),
    "compared": Moment("compared", after=True),
    "before the swap's request": Moment("alias"),
    "after the swap's request": Moment("alias", after=True),
    "the state has noted it": Moment("served", after=True),
}
SEQUELS = ("rebuild", "once", "rollback", "gc")


def pairs(phases: Mapping[str, Moment]) -> list[ParameterSet]:
    """Return each phase with each sequel; all but one of them take long together."""
    return [
        pytest.param(
            phase,
            sequel,
            id=f"{phase}, then {sequel}".replace(" ", "-"),
            marks=[] if number % len(SEQUELS) == place else [pytest.mark.long],
        )
        for number, phase in enumerate(phases)
        for place, sequel in enumerate(SEQUELS)
    ]


@pytest.fixture(scope="module")
def forks() -> Iterator[Nursery]:
    """Where processes come from."""
    with nursery() as found:
        yield found


@pytest.fixture(scope="module")
def base(forks: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a generation that serves, one that is kept, and edits that neither has seen."""
    folder = tmp_path_factory.mktemp("base")
    memory.make_memory(folder, ROWS)
    for options, command in ((FIRST, "once"), (SECOND, "rebuild")):
        assert forks.run(folder, options, command).code == 0
    with memory.write(folder / "memory.db") as connection:
        connection.executescript(EDITS)
    connection.close()
    return folder


def kept(folder: Path) -> set[str]:
    """Return the generations that are kept."""
    found = equality.generations(memory.settings_for(folder))
    return {each.generation for each in found if each.phase is Phase.KEPT}


def readers_see(folder: Path) -> Mapping[str, equality.Seen]:
    """Return the rows that a reader finds through the alias."""
    settings = memory.settings_for(folder)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        return equality.in_collection(connection.client, settings.target.collection)


def untouched() -> set[str]:
    """Return the rows that were there all along."""
    return {"7", "8", "10"}


def assert_all_ends_well(
    forks: Nursery, folder: Path, sequel: str, options: Mapping[str, object]
) -> None:
    """Run the sequel, then what an operator runs in the end."""
    assert untouched() <= readers_see(folder).keys()
    ended = forks.run(folder, options, sequel)
    assert ended.code in ({0, 4} if sequel == "once" else {0}), ended
    assert untouched() <= readers_see(folder).keys()
    memory.execute(folder / "memory.db", "UPDATE memory_events SET agent = 'b' WHERE id = 3")
    memory.execute(folder / "memory.db", "DELETE FROM memory_events WHERE id = 6")
    ended = forks.run(folder, THIRD, "rebuild")
    assert ended.code == 0, ended
    settings = memory.settings_for(folder, **THIRD)
    equality.assert_equal(settings)
    assert forks.run(folder, THIRD, "gc", "0").code == 0
    equality.assert_equal(settings)
    assert equality.collections(settings) == {equality.serving(settings)}
    assert [each.phase for each in equality.generations(settings)] == [Phase.SERVING]


@pytest.mark.rule("RB-03")
@pytest.mark.parametrize(("phase", "sequel"), pairs(PHASES))
def test_after_a_rebuild_was_killed_all_ends_well(
    forks: Nursery, base: Path, tmp_path: Path, phase: str, sequel: str
) -> None:
    folder = Path(shutil.copytree(base, tmp_path / "memory"))
    ended = forks.run(folder, THIRD, "rebuild", dying=PHASES[phase])
    assert ended.code == KILLED, ended
    assert_all_ends_well(forks, folder, sequel, THIRD)


@pytest.mark.rule("RB-09")
@pytest.mark.parametrize(("phase", "sequel"), pairs(RETURNS))
def test_after_a_rollback_was_killed_all_ends_well(
    forks: Nursery, base: Path, tmp_path: Path, phase: str, sequel: str
) -> None:
    folder = Path(shutil.copytree(base, tmp_path / "memory"))
    ended = forks.run(folder, FIRST, "rollback", dying=RETURNS[phase])
    assert ended.code == KILLED, ended
    assert_all_ends_well(forks, folder, sequel, FIRST)


def test_a_rebuild_and_a_rollback_that_nobody_kills_end_by_themselves(
    forks: Nursery, base: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(base, tmp_path / "memory"))
    assert forks.run(folder, THIRD, "rebuild").code == 0
    equality.assert_equal(memory.settings_for(folder, **THIRD))
    assert len(kept(folder)) == 2
    assert forks.run(folder, SECOND, "rollback").code == 0
    equality.assert_equal(memory.settings_for(folder, **SECOND))
