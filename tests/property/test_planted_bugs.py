"""The schedules find what they are there to find: bugs planted in the real code, one at a time."""

# ruff: noqa: SLF001 - a bug is planted where somebody would make it
from __future__ import annotations

from pathlib import Path

import pytest
from property.modes import LOG
from property.planting import Bug
from property.qdrants import FakeQdrant
from property.trying import Trial, try_schedules
from property.world import Tally

from syncer import generations, plan, sync, write
from syncer.errors import SyncerError
from syncer.source import LogSource
from syncer.source.expiry import Expiry
from syncer.source.queries import Queries
from syncer.state import GenerationState

STEPS = 20_000  # in which each bug must show; most do in a few hundred

FINDINGS = (AssertionError, SyncerError, KeyError)
"""A difference, a refusal, or a point of the fake target's that should be there."""

BUGS = (
    Bug(
        "the position is stored before the write",
        sync._bring,
        (
            ("    if plan.writes:\n", "    if False:\n"),
            (
                "    result = _result(",
                "    if plan.writes: write(pipeline, plan, vectors.vectors)\n    result = _result(",
            ),
        ),
    ),
    Bug(
        "chunk 0 is written first",
        write.write,
        (
            ("p for number, p in whole if number > 0", "p for number, p in whole if number < 1"),
            ("p for number, p in whole if number == 0", "p for number, p in whole if number > 0"),
        ),
    ),
    Bug("chunk 0 is not opened", write.write, (("    _open(pipeline, spread)\n", ""),)),
    Bug(
        "chunk 0 is opened without a word about the chunks that go",
        plan.opening,
        (("max(plan.held_chunks, len(plan.chunks))", "max(1, len(plan.chunks))"),),
    ),
    Bug(
        "surplus chunks are not deleted",
        write.write,
        (("    retry(target.delete, surplus)\n", ""),),
    ),
    Bug("deletes are skipped", write.write, (("    retry(target.delete, gone)\n", ""),)),
    Bug(
        "the payload's hash is not compared",
        plan._plan_present,
        (("held.payload == plan.payload_hash", "held.payload"),),
    ),
    Bug(
        "a row that expires at this very moment is not taken out: < for <=",
        Expiry.__init__,
        (("{self.stamp} <= ?2", "{self.stamp} < ?2"),),
    ),
    Bug(
        "a row that expires at this very moment is in scope: >= for >",
        Expiry.is_ahead,
        (
            ("{self._column} > {mark}", "{self._column} >= {mark}"),
            ("{self.stamp} > {mark}", "{self.stamp} >= {mark}"),
        ),
    ),
    Bug(
        "the log's next entry is leapt over",
        Queries.__init__,
        (("WHERE seq > ? AND seq <= ?", "WHERE seq > ? + 1 AND seq <= ?"),),
    ),
    Bug(
        "the walk passes the row that did not fit into the window",
        LogSource._walk,
        (
            (
                "            if window.full:\n",
                "            last = encode_key(row.key)\n            if window.full:\n",
            ),
        ),
    ),
    Bug(
        "a window that is full by bytes ends the walk",
        LogSource._walk,
        (("walked=seen < room", "walked=True"),),
    ),
    Bug(
        "the walk begins at the newest head of the log",
        LogSource._read,
        (
            (
                "    if latest < position.change_seq:",
                (
                    "    begins = position.last_id is None and not position.walked\n"
                    "    position = replace(position, change_seq=latest) if begins else position\n"
                    "    if latest < position.change_seq:"
                ),
            ),
        ),
    ),
    Bug(
        "rows are judged by a later time than the one that is stored",
        LogSource._read,
        (
            (
                "min(head, latest), position.expired_to or now, window",
                "min(head, latest), now, window",
            ),
        ),
    ),
    Bug(
        "a clock that stepped back is not stored before anything is written by it",
        LogSource._read,
        (
            (
                "        return self._step_back(position, now)\n",
                "        position = self._step_back(position, now).next\n",
            ),
        ),
    ),
    Bug(
        "a clock that stepped back is not noticed",
        LogSource._read,
        (("now < position.expired_to", "False"),),
    ),
    Bug(
        "a clock that stepped back does not begin the walk anew",
        LogSource._step_back,
        (("if self._has_expired(position, now):", "if False:"),),
    ),
    Bug(
        "the pending token is not noted beside the one that the collection carries",
        GenerationState.begin_token,
        (
            ("SET token = ?, pending_token = ?", "SET pending_token = ?"),
            ("(carried, token, *self._key)", "(token, *self._key)"),
        ),
    ),
    Bug(
        "the log is pruned above what the slowest generation has served",
        GenerationState._prune,
        (("SELECT min(change_seq)", "SELECT max(change_seq)"),),
    ),
    Bug(
        "a changed mapping does not begin the walk anew",
        generations.settle,
        (("        store.walk_again(known.generation)\n", ""),),
    ),
    Bug(
        "a changed mapping is noted before the walk is begun anew",
        generations.settle,
        (
            (
                "        store.walk_again(known.generation)\n",
                (
                    "        store.serve(known.generation, wanted.settings_digest, mapping)\n"
                    "        catalog.set_description(known.generation, description)\n"
                    "        store.walk_again(known.generation)\n"
                ),
            ),
        ),
    ),
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_the_schedules_find(bug: Bug, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally()
    bug.plant(monkeypatch)

    with pytest.raises(FINDINGS) as found:
        try_schedules(Trial(template, LOG, FakeQdrant), tally, steps=STEPS, shrink=False)

    print(f"found after {tally.found_after} steps: {found.value!r}")  # noqa: T201 - for pytest -rP
