"""Mistakes that somebody could make in a rebuild, to be planted in the real code of one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from property.planting import Bug

import syncer.verify
from syncer import generations, rebuild
from syncer.ports import Pipeline
from syncer.result import SyncResult, VerifyResult
from syncer.state import StateStore
from syncer.state.pruning import ChangeLog
from syncer.worker import Terms


@dataclass(frozen=True, slots=True)
class Mistake:
    """A bug; `ungated` ones are mended by the comparison of both stores, so it is left out too."""

    bug: Bug
    ungated: bool = False


def _mistake(
    name: str,
    function: Callable[..., object],
    *exchanges: tuple[str, str],
    ungated: bool = False,
) -> Mistake:
    return Mistake(Bug(name, function, exchanges), ungated=ungated)


_SWAP = "heirs.swap(alias, found, heir.generation)"
_SERVE = "store.serve(heir.generation, heir.settings_digest, heir.mapping_digest)"

_LOST = (
    "total = catch_up(green, unguarded, head=head(), report=report)\n"
    "    position = green.state.position()\n"
    "    green.state.commit(position, replace(position, change_seq=head()), Outcome())\n    for"
)

MISTAKES = {
    each.bug.name: each
    for each in (
        _mistake(
            "the state notes the swap before it is made",
            rebuild.take_over,
            (f"{_SWAP}\n    {_SERVE}", f"{_SERVE}\n    {_SWAP}"),
        ),
        _mistake(
            "a swap that was interrupted is not noted",
            generations.finish_swap,
            ("if heir is None or", "if True or"),
        ),
        _mistake(
            "green is built on by other settings",
            rebuild._is_usable,  # noqa: SLF001 - a bug has to be where it would be
            ("is_as_wanted(catalog, known, wanted)", "True"),
        ),
        _mistake(
            "the log is followed from too late on",
            StateStore.add,
            ("self._log_head(table), phase", "max(0, self._log_head(table) - 30), phase"),
            ungated=True,
        ),
        _mistake(
            "deletes are not followed",
            rebuild.build,
            ("limit=None", "limit=Limit(0, 0.0)"),
            ungated=True,
        ),
        _mistake(
            "what changed meanwhile is not followed",
            rebuild.build,
            (
                "total = catch_up(green, unguarded, head=head(), report=report)\n    for",
                _LOST,
            ),
            ungated=True,
        ),
        _mistake(
            "a changed mapping is not walked again",
            rebuild.begin,
            ("store.walk_again(name)", "pass"),
            ungated=True,
        ),
        _mistake(
            "the log is pruned although green has not seen it",
            ChangeLog.prune,
            (
                'f"WHERE source_table = ? AND NOT',
                'f"WHERE serving = 1 AND source_table = ? AND NOT',
            ),
            ungated=True,
        ),
    )
}


def plant(name: str) -> None:
    """Let this process make the mistake."""
    mistake = MISTAKES[name]
    if "Outcome()" in str(mistake.bug.exchanges):
        from syncer.model import Outcome  # noqa: PLC0415 - for the planted line alone

        rebuild.Outcome = Outcome  # type: ignore[attr-defined]
    mistake.bug.plant(pytest.MonkeyPatch())
    if mistake.ungated:
        syncer.verify.mend = _no_gate


def _no_gate(
    pipeline: Pipeline, terms: Terms, **_: object
) -> tuple[SyncResult, VerifyResult, VerifyResult]:
    del terms
    position = pipeline.state.position()
    clean = VerifyResult(position.generation)
    return SyncResult(position.generation, position), clean, clean
