"""Planting a bug: a line of the real code is exchanged while a test runs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import cast

import pytest
from property.modes import LOG, Mode


@dataclass(frozen=True, slots=True)
class Bug:
    """A mistake somebody could make: in `function`, each text is exchanged for another.

    The schedules of `modes` have to find it; one that `is_rare` takes them many steps, and any
    takes many in the modes where it is `rare_in`.
    """

    name: str
    function: Callable[..., object]
    exchanges: tuple[tuple[str, str], ...]
    modes: tuple[Mode, ...] = (LOG,)
    is_rare: bool = False
    rare_in: tuple[Mode, ...] = ()

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the function, wherever it is used, do what it would do with the bug in it."""
        source = textwrap.dedent(inspect.getsource(self.function))
        for right, wrong in self.exchanges:
            assert source.count(right) == 1, f"plant this bug anew, {right!r} is not there once"
            source = source.replace(right, wrong)
        function = cast("FunctionType", self.function)
        scope = dict(function.__globals__)
        exec(compile(source, "<planted>", "exec"), scope)  # noqa: S102 - our own code, changed
        monkeypatch.setattr(function, "__code__", scope[function.__name__].__code__)
