"""Runs llm's own command line with a model that needs no network: it repeats what it is told.

Runs in llm's own environment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol

import llm  # type: ignore[import-not-found]
from llm.cli import cli  # type: ignore[import-not-found]
from llm.plugins import pm  # type: ignore[import-not-found]


class Prompt(Protocol):
    """What llm hands to a model."""

    prompt: str


class Echo(llm.Model):  # type: ignore[misc]
    """A model that answers with the question."""

    model_id = "echo"
    can_stream = False

    def execute(self, prompt: Prompt, *_: object, **__: object) -> list[str]:
        """Return the answer's only part."""
        return [f"You said: {prompt.prompt}"]


class Plugin:
    """What llm would find as an installed plugin."""

    @llm.hookimpl  # type: ignore[untyped-decorator]
    def register_models(self, register: Callable[[llm.Model], None]) -> None:
        """Offer the model."""
        register(Echo())


if __name__ == "__main__":
    pm.register(Plugin())
    cli(sys.argv[1:])
