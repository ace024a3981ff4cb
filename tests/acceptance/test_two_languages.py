"""The two-language memory of the examples, synced and asked as its users do, by a real model."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from commands import run

EXAMPLES = Path(__file__).parents[2] / "examples"
MODES = ("dense", "sparse", "hybrid")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, filled and in sync, its chunks small so that rows have several."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copy(EXAMPLES / "two_languages.toml", folder / "syncer.toml")
    assert run("init", "memory.db", cwd=folder).code == 0
    with closing(sqlite3.connect(folder / "memory.db")) as connection, connection:
        connection.executescript((EXAMPLES / "two_languages.sql").read_text(encoding="utf-8"))
    done = run("once", "--json", "--set", "embed.chunk_tokens=96", cwd=folder)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["embedded"] == 48
    assert found["chunks"] > 48
    return folder


def rows(folder: Path, text: str, mode: str, limit: int = 3) -> list[str]:
    """Return the rows that `text` finds, the best first."""
    done = run("search", "--json", "--mode", mode, "-n", str(limit), text, cwd=folder)
    assert done.code == 0, done.err
    return [hit["row"] for hit in json.loads(done.out)]


def row_with(folder: Path, text: str) -> str:
    """Return the only row whose content has `text`."""
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        found = connection.execute(
            "SELECT id FROM memory_events WHERE content LIKE ?", (f"%{text}%",)
        ).fetchall()
    ((key,),) = found
    return str(key)


@pytest.mark.rule("CS-03")
@pytest.mark.parametrize("word", ["协程", "漏窗", "乌龙茶", "候鸟"])
def test_a_chinese_word_finds_its_row_by_words_alone(folder: Path, word: str) -> None:
    assert rows(folder, word, "sparse")[0] == row_with(folder, word)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Which food makes him ill?", "allergic to hazelnuts"),
        ("Why did the outage of the search happen?", "On the second of April"),
        ("how insects show one another where to eat", "Bees tell each other"),
    ],
)
def test_an_english_paraphrase_finds_its_row_by_meaning(
    folder: Path, question: str, words: str
) -> None:
    assert rows(folder, question, "dense")[0] == row_with(folder, words)


@pytest.mark.parametrize(
    ("question", "words"),
    [("协程", "协程里不要"), ("Which food makes him ill?", "allergic to hazelnuts")],
)
def test_both_together_find_either(folder: Path, question: str, words: str) -> None:
    assert row_with(folder, words) in rows(folder, question, "hybrid")


def test_a_code_finds_both_rows_that_have_it(folder: Path) -> None:
    english, chinese = row_with(folder, "Error E4517"), row_with(folder, "错误码 E4517")
    assert set(rows(folder, "E4517", "sparse", 2)) == {english, chinese}


@pytest.mark.parametrize("mode", MODES)
def test_a_row_of_several_chunks_is_found_once(folder: Path, mode: str) -> None:
    found = rows(folder, "a lighthouse keeper's log, the storm and his letters", mode, 10)
    assert len(found) == len(set(found)) == 10 if mode == "dense" else len(set(found)) == len(found)
    assert found[0] == row_with(folder, "lighthouse keeper")


def test_asking_needs_nothing_of_the_settings_but_the_place(folder: Path) -> None:
    """The collection was made with small chunks; settings that ask for others change nothing."""
    other = [
        *("--set", "embed.query_prefix=query: ", "--set", "sparse.language=german"),
        *("--set", "embed.provider=hash", "--set", "embed.chunk_tokens=32"),
    ]
    plain = run("search", "--json", "a certificate that nobody renewed", cwd=folder)
    changed = run("search", "--json", *other, "a certificate that nobody renewed", cwd=folder)
    assert plain.code == changed.code == 0, changed.err
    assert plain.out == changed.out


def test_a_question_of_stop_words_alone_finds_nothing_by_words(folder: Path) -> None:
    assert rows(folder, "and the of", "sparse") == []


def test_a_sparse_question_loads_no_model(folder: Path) -> None:
    nowhere = ["--set", "embed.model_path=/nowhere"]
    assert run("search", "--mode", "sparse", *nowhere, "协程", cwd=folder).code == 0
    assert run("search", "--mode", "dense", *nowhere, "协程", cwd=folder).code == 7
