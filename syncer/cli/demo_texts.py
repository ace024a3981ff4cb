"""Real text that is on every machine: what Python says of its language and of its library."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

MAX_CHARACTERS = 2000
_MIN_CHARACTERS = 20  # a shorter text says little more than the name does

MODULES = (
    *("argparse", "bisect", "calendar", "collections", "contextlib", "csv", "datetime", "difflib"),
    *("fnmatch", "getpass", "glob", "heapq", "html", "json", "pathlib", "pprint", "queue"),
    *("random", "shlex", "shutil", "statistics", "string", "tarfile", "tempfile", "textwrap"),
    *("threading", "timeit", "webbrowser", "zipfile"),
)
"""Modules for everyday use that every Python from 3.11 on has, wherever it runs."""

_RETOLD = ("bltin-", "types")
"""Topics about the built-in types say again, more briefly, what other topics say."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A row of the demo's table: whose memory it is, where it belongs, its name and its text."""

    agent: str
    scope: str
    source: str
    content: str
    kind: str


def collect() -> list[Memory]:
    """Return some 300 memories, always the same ones in the same order for one build of Python.

    They are topics of the language reference, where Python brings them, and what the library's
    modules, functions and classes do; each text has at most 2,000 characters and comes once.
    """
    found: dict[str, Memory] = {}
    for memory in (*_topics(), *_docstrings()):
        if _MIN_CHARACTERS <= len(memory.content) <= MAX_CHARACTERS:
            found.setdefault(memory.content, memory)
    return list(found.values())


def prose(topic: str) -> str:
    """Return a topic without its grammar and code, which are indented, and without rules."""
    text = re.sub(r"^[*=]{3,}\n", "", topic, flags=re.MULTILINE)  # below headings
    parts = text.strip().split("\n\n")
    return "\n\n".join(part for part in parts if not part.startswith("   "))


def summary(docstring: str) -> str:
    """Return the first paragraph, which says what a thing does; then come its arguments."""
    return inspect.cleandoc(docstring).partition("\n\n")[0]


def _topics() -> Iterator[Memory]:
    try:
        topics: Mapping[str, str] = importlib.import_module("pydoc_data.topics").topics
    except ImportError:  # some distributions leave it out
        return
    for name in sorted(topics):
        if not name.startswith(_RETOLD):
            yield Memory("docs", "language", f"topic {name}", prose(topics[name]), "topic")


def _docstrings() -> Iterator[Memory]:
    for name in MODULES:
        module = importlib.import_module(name)
        for source, thing in ((name, module), *_public(module)):
            yield Memory("stdlib", name, source, summary(thing.__doc__ or ""), _kind(thing))


def _public(module: ModuleType) -> Iterator[tuple[str, object]]:
    names = getattr(module, "__all__", None) or [one for one in vars(module) if one[0] != "_"]
    for name in sorted(names):
        thing = vars(module).get(name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            yield f"{module.__name__}.{name}", thing


def _kind(thing: object) -> str:
    if inspect.ismodule(thing):
        return "module"
    return "class" if inspect.isclass(thing) else "function"
