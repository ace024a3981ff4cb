"""Bugs that somebody could write, each with the modes whose schedules have to find it."""

# ruff: noqa: SLF001 - a bug is planted where somebody would make it
from __future__ import annotations

from property.modes import APPEND_ONLY, LOG, LOG_OF_PAIRS, LOG_OF_WORDS, UPDATED_AT
from property.planting import Bug

from syncer import generations, guard, plan, points, sync, worker, write
from syncer.changelog import statements
from syncer.source import AppendSource, LogSource, StampedSource
from syncer.source.candidates import Candidates
from syncer.source.expiry import Expiry
from syncer.source.queries import Queries
from syncer.state import GenerationState
from syncer.state.pruning import ChangeLog

EACH = (LOG, UPDATED_AT, APPEND_ONLY)

WRITING = (
    Bug(
        "the position is stored before the write",
        sync._bring,
        (
            ("    if plan.writes:\n", "    if False:\n"),
            (
                "    result = _result(",
                "    if plan.writes: write(pipeline, plan, vectors)\n    result = _result(",
            ),
        ),
        EACH,
        rare_in=(UPDATED_AT,),
    ),
    Bug(
        "chunk 0 is written first",
        write._write_rows,
        (
            ("p for number, p in whole if number > 0", "p for number, p in whole if number < 1"),
            ("p for number, p in whole if number == 0", "p for number, p in whole if number > 0"),
        ),
        EACH,
        rare_in=(UPDATED_AT,),
    ),
    Bug(
        "chunk 0 is not opened",
        write._write_rows,
        (("    _open(pipeline, spread)\n", ""),),
        EACH,
    ),
    Bug(
        "chunk 0 is opened without a word about the chunks that go",
        points.opening,
        (("max(plan.held_chunks, len(plan.chunks))", "max(1, len(plan.chunks))"),),
        is_rare=True,
    ),
    Bug(
        "surplus chunks are not deleted",
        write._write_rows,
        (("    retry(target.delete, surplus)\n", ""),),
    ),
    Bug("deletes are skipped", write._write_rows, (("    retry(target.delete, gone)\n", ""),)),
    Bug(
        "the payload's hash is not compared",
        plan._plan_present,
        (("held.payload == payload", "held.payload"),),
    ),
    Bug(
        "the guard over deletes is off",
        guard.too_many,
        (("            return True\n", "            return False\n"),),
        EACH,
    ),
    Bug(
        "what was withheld is never let go",
        GenerationState.commit,
        (("        self._book.release(settled)\n", ""),),
    ),
    Bug(
        "a quarantined row is not recorded",
        GenerationState.commit,
        (("self._book.quarantine(outcome.quarantined, now)", "0"),),
    ),
    Bug(
        "a quarantined row is never tried again",
        worker.catch_up,
        (("pipeline.state.due(now())", "()"),),
        is_rare=True,
    ),
    Bug(
        "the points of a row that is quarantined stay",
        plan.set_aside,
        (("        elif row.held_chunks:\n", "        elif False:\n"),),
        is_rare=True,
    ),
    Bug(
        "both stores are never compared",
        worker._comparison,
        (("    if not pipeline.retry(pipeline.state.reconciling):\n", "    if True:\n"),),
        (LOG, UPDATED_AT),
    ),
    Bug(
        "any token will do",
        write.check_token,
        (("    if found not in known | state.tokens():\n", "    if False:\n"),),
        is_rare=True,
    ),
)

LOG_READING = (
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
        is_rare=True,
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
        is_rare=True,
    ),
    Bug(
        "a clock that stepped back is not noticed",
        LogSource._read,
        (("now < position.expired_to", "False"),),
    ),
    Bug(
        "a clock that stepped back does not begin the walk anew",
        LogSource._step_back,
        (("if self._expired.has_any(position, now):", "if False:"),),
        is_rare=True,
    ),
    Bug(
        "the pending token is not noted beside the one that the collection carries",
        GenerationState.begin_token,
        (
            ("SET token = ?, pending_token = ?", "SET pending_token = ?"),
            ("(carried, token, *self._key)", "(token, *self._key)"),
        ),
        is_rare=True,
    ),
    Bug(
        "the log is pruned above what the slowest generation has served",
        ChangeLog.prune,
        (("SELECT min(change_seq)", "SELECT max(change_seq)"),),
        is_rare=True,
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
        is_rare=True,
    ),
)

KEYS = (
    Bug(
        "a change of the key logs only the new one",
        statements._rekey_from,
        (('[_log(watched, "OLD")]', '[_log(watched, "NEW")]'),),
        (LOG_OF_WORDS, LOG_OF_PAIRS),
        is_rare=True,
    ),
    Bug(
        "a row that another one drives out is not logged",
        statements.eviction_triggers,
        (("    if not watched.evictions:\n", "    if True:\n"),),
        (LOG_OF_WORDS, LOG_OF_PAIRS),
        is_rare=True,
    ),
)

STAMPS = (
    Bug(
        "a window that ends amid a tie goes on behind it: > for >=",
        Candidates.statements,
        (('            yield number, f"{self._from}{same} ORDER BY {self._by_key}", tied\n', ""),),
        (UPDATED_AT,),
    ),
    Bug(
        "a row stamped in the second that was read last is not read: > for >=",
        StampedSource._settle,
        (("ended.began >= mark.noted + self._look_back", "ended.began >= mark.noted"),),
        (UPDATED_AT,),
    ),
    Bug(
        "a pass leaves out the row that did not fit into the window",
        StampedSource._go_on,
        (("left=left, place=place), None", "left=left, place=found.place), None"),),
        (UPDATED_AT,),
    ),
    Bug(
        "rows without a time are not read",
        Candidates.since,
        (
            (
                "found is None or instant is None or found > instant",
                "found is not None and (instant is None or found > instant)",
            ),
        ),
        (UPDATED_AT,),
        is_rare=True,
    ),
    Bug(
        "a clock that was set back behind what is settled is not noticed",
        StampedSource._settled,
        (("min(settled, self._before(clock))", "settled"),),
        (UPDATED_AT,),
        is_rare=True,
    ),
    Bug(
        "what is edited beside the walk counts as settled",
        StampedSource._before_walk,
        (("text_of(self._before(newest))", "text_of(newest)"),),
        (UPDATED_AT,),
        is_rare=True,
    ),
    Bug(
        "a table that has lost its last rows is not refused",
        AppendSource._check_forward,
        (("    if None in last:", "    if True:"),),
        (UPDATED_AT, APPEND_ONLY),
        is_rare=True,
    ),
)

BUGS = (*WRITING, *LOG_READING, *KEYS, *STAMPS)
