"""The demo's memories: real text, always the same, with the answers among them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from syncer.cli.demo import DELETED, EDITED, EXPIRED, EXPIRED_WITHOUT_TOPICS
from syncer.cli.demo_texts import MAX_CHARACTERS, collect, prose, summary

DIGEST = (
    "import hashlib; from syncer.cli.demo_texts import collect;"
    "print(hashlib.sha256(repr(collect()).encode()).hexdigest())"
)
TOPIC = """\
Waiting
*******

   wait_stmt ::= "wait" expression

To wait is to do nothing, until something happens:

   wait something

* In a list, text is set in by two:

  so this belongs to it.

More of it
==========

It ends.
"""


@pytest.fixture
def without_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)


def test_there_are_some_300_and_none_is_longer_than_2000_characters_or_next_to_nothing() -> None:
    memories = collect()
    assert 250 <= len(memories) <= 400
    assert MAX_CHARACTERS == 2000
    assert all(20 <= len(memory.content) <= 2000 for memory in memories)


def test_no_text_and_no_name_comes_twice() -> None:
    memories = collect()
    assert len({memory.content for memory in memories}) == len(memories)
    assert len({memory.source for memory in memories}) == len(memories)


def test_topics_and_library_are_told_apart() -> None:
    agents = {memory.source: (memory.agent, memory.scope, memory.kind) for memory in collect()}
    assert agents["topic lambda"] == ("docs", "language", "topic")
    assert agents["shutil.rmtree"] == ("stdlib", "shutil", "function")
    assert agents["threading.Barrier"] == ("stdlib", "threading", "class")
    assert agents["difflib"] == ("stdlib", "difflib", "module")


def test_every_process_collects_the_same() -> None:
    digests = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(digests[0]) == 65
    assert digests[0] == digests[1]


def test_the_answers_to_the_questions_are_among_them() -> None:
    sources = {memory.source for memory in collect()}
    assert {DELETED.source, EDITED.source, EXPIRED.source} <= sources


@pytest.mark.usefixtures("without_topics")
def test_a_python_without_topics_has_enough_docstrings_and_three_answers_too() -> None:
    memories = collect()
    assert len(memories) >= 250
    assert {memory.agent for memory in memories} == {"stdlib"}
    sources = {memory.source for memory in memories}
    assert {DELETED.source, EDITED.source, EXPIRED_WITHOUT_TOPICS.source} <= sources
    assert EXPIRED.source not in sources


def test_prose_is_a_topic_without_grammar_code_and_rules() -> None:
    assert prose(TOPIC) == (
        "Waiting\n\nTo wait is to do nothing, until something happens:\n\n"
        "* In a list, text is set in by two:\n\n  so this belongs to it.\n\nMore of it\n\nIt ends."
    )


def test_a_summary_is_the_first_paragraph_with_its_indentation_gone() -> None:
    assert summary("Wait\n    for it.\n\n    `it` is what to wait for.\n") == "Wait\nfor it."
    assert summary("") == ""
