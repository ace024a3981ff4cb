"""The tree of errors is as its drawing says."""

from __future__ import annotations

import re

import pytest

from syncer import errors
from syncer.errors import ExitCode, SyncerError, TargetUnavailableError

LINE = re.compile(
    r"^ {4}(?P<indent>[ │├└─]*)(?P<name>\w+Error) +(?P<code>\d+)? *(?P<meaning>\S.*)$", re.MULTILINE
)
_STEP = 4  # columns a level of the drawing is indented by


def drawn() -> dict[str, tuple[str, int, bool]]:
    """Return what is above it, exit code and "may be tried again" by name, as drawn."""
    tree: dict[str, tuple[str, int, bool]] = {}
    path: list[str] = []
    for line in LINE.finditer(errors.__doc__ or ""):
        depth = len(line["indent"]) // _STEP
        path = [*path[:depth], line["name"]]
        above = path[-2] if depth else "Exception"
        code = int(line["code"]) if line["code"] else tree[above][1]
        tree[line["name"]] = (above, code, "may be tried again" in line["meaning"])
    return tree


def defined() -> dict[str, type[SyncerError]]:
    """Return the classes by name."""
    classes = (value for value in vars(errors).values() if isinstance(value, type))
    return {one.__name__: one for one in classes if issubclass(one, SyncerError)}


def test_the_drawing_shows_every_class() -> None:
    assert drawn().keys() == defined().keys()


@pytest.mark.parametrize("name", sorted(defined()))
def test_a_class_stands_where_it_is_drawn_with_its_exit_code_and_retry(name: str) -> None:
    above, exit_code, may_retry = drawn()[name]
    one = defined()[name]
    assert above == one.__bases__[0].__name__
    assert (one.exit_code, one.may_retry) == (exit_code, may_retry)


@pytest.mark.parametrize("name", sorted(defined()))
def test_every_error_has_a_message_of_its_own_by_default(name: str) -> None:
    error = getattr(errors, name)()
    assert error.message == str(error) == getattr(errors, name).__doc__.splitlines()[0]
    assert error.message.endswith(".")
    others = {str(getattr(errors, other)()) for other in defined() if other != name}
    assert error.message not in others


def test_a_hint_is_the_second_line_and_no_part_of_the_message() -> None:
    error = SyncerError("it broke", hint="mend it")
    assert (error.message, error.hint, str(error)) == ("it broke", "mend it", "it broke\nmend it")


def test_tries_are_told_in_the_message() -> None:
    error = TargetUnavailableError("no answer", hint="Is it running?")
    error.note_tries(3, 12.4)
    assert str(error) == "no answer (tried 3 times in 12 s)\nIs it running?"


def test_the_signals_exit_codes_are_those_of_a_shell() -> None:
    assert (ExitCode.INTERRUPTED, ExitCode.TERMINATED) == (128 + 2, 128 + 15)
