"""Commands about generations in this process, and what happens amid them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import on_the_wire as wire
import pytest

from rebuilding.moments import PLACES
from syncer.cli import gc as gc_command
from syncer.cli import rebuild as rebuild_command
from syncer.cli import rows
from syncer.cli.gc import Fate
from syncer.errors import ExitCode
from syncer.settings import Settings


class Interrupted(BaseException):
    """The run ends here, as if the process had been killed."""


@contextmanager
def before(place: str, act: Callable[[int], object]) -> Iterator[None]:
    """Let `act` happen before each call of a place while the block runs; it gets the turn."""
    owner, name = PLACES[place]
    inner, turns = getattr(owner, name), 0

    def call(*args: object, **kwargs: object) -> object:
        nonlocal turns
        turns += 1
        act(turns)
        return inner(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, call)
        yield


def interrupted(settings: Settings, place: str, turn: int = 1) -> None:
    """Run a rebuild that ends before the `turn`-th call of a place."""

    def act(now: int) -> None:
        if now == turn:
            raise Interrupted

    with before(place, act), pytest.raises(Interrupted):
        wire.rebuild(settings)


def rollback(settings: Settings, to: str | None = None) -> tuple[ExitCode, wire.Told]:
    """Run ``syncer rollback``; return its exit code and what it said."""
    told = wire.Told()
    return rebuild_command.rollback(settings, told, to), told


def confirm_deletes(settings: Settings) -> tuple[ExitCode, wire.Told]:
    """Run ``syncer confirm-deletes``; return its exit code and what it said."""
    told = wire.Told()
    return rows.confirm_deletes(settings, told), told


def gc(settings: Settings, keep: int | None = None, *, dry_run: bool = False) -> dict[str, Fate]:
    """Run ``syncer gc``; return what became of each generation."""
    return {each.generation: each for each in gc_command.gc(settings, keep, dry_run=dry_run)}
