"""Real text that is on every machine: the docstrings of Python's standard library."""

from __future__ import annotations

import ast
import json
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

MIN_CHARACTERS = 100  # leaves a mean of 80 to 90 WordPiece tokens, a median of 60, a long tail
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(count: int, min_characters: int = MIN_CHARACTERS) -> list[str]:
    """Return `count` different docstrings with the lengths of all of them, in mixed order.

    They are taken at even steps from the docstrings sorted by length, so that few have the same
    distribution as many. Nothing is imported; the sources are parsed. The same for the same
    Python; fewer than `count` if there are not so many.
    """
    found = {text for text in _all_docstrings() if len(text) >= min_characters}
    ordered = sorted(found, key=lambda text: (len(text), text))
    count = min(count, len(ordered))
    chosen = [ordered[(2 * step + 1) * len(ordered) // (2 * count)] for step in range(count)]
    random.Random(0).shuffle(chosen)  # noqa: S311 - an order, not a secret
    return chosen


def read_jsonl(path: Path, count: int) -> list[str]:
    """Return the `text` fields of the first `count` lines of a JSON Lines file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for _, line in zip(range(count), file, strict=False)]


def _all_docstrings() -> Iterator[str]:
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if SKIPPED.isdisjoint(path.relative_to(root).parts):
            yield from _docstrings_of(path)


def _docstrings_of(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # the library ships a few files that are wrong on purpose
        return
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
            yield text
