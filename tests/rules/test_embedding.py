"""Rules about embedding and chunking (EM, CS) that no other test holds."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import memory
import pytest
from commands import Outcome, run
from embedding_server import EmbeddingServer
from memories import documents, settings_of
from other_libraries import changed

from syncer.embed import canary
from syncer.errors import TargetError
from syncer.keys import PointId
from syncer.ports import Target

SETTINGS = '[source]\ndatabase = "memory.db"\n'
HASH = SETTINGS + '[embed]\nprovider = "hash"\ndimension = 8\n[sync]\nwindow_rows = 16\n'
SECONDS = 60  # for a process on a busy machine
MODEL = SETTINGS + "[embed]\nthreads = 2\nbatch_timeout = 1\n"

# The process dies as one does that the kernel kills for its memory: over too much at a time.
TOO_MANY_TEXTS = """
import os, signal
from syncer.embed.hashing import HashEmbedder
real = HashEmbedder.embed
def embed(self, texts, counts=()):
    if len(texts) > 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, texts, counts)
HashEmbedder.embed = embed
"""
TOO_MANY_TOKENS = """
import os, signal
from fastembed.text.onnx_text_model import OnnxTextModel
real = OnnxTextModel.onnx_embed
def onnx_embed(self, documents, **options):
    output = real(self, documents, **options)
    if output.input_ids.size > 200:
        os.kill(os.getpid(), signal.SIGKILL)
    return output
OnnxTextModel.onnx_embed = onnx_embed
"""
STUCK = """
import threading
from fastembed.text.onnx_text_model import OnnxTextModel
real = OnnxTextModel.onnx_embed
def onnx_embed(self, documents, **options):
    if any("stuck" in text for text in documents):
        threading.Event().wait()
    return real(self, documents, **options)
OnnxTextModel.onnx_embed = onnx_embed
"""


def make(folder: Path, settings: str, contents: Sequence[str]) -> Path:
    folder.mkdir()
    memory.make_memory(folder, contents)
    (folder / "syncer.toml").write_text(settings)
    return folder


def until_one_gets_through(folder: Path, program: str) -> tuple[int, Outcome]:
    """Run until a run is not killed; return how many were, and what the last one left."""
    environment = changed(folder.parent / "library", program)
    for killed in range(8):
        done = run("once", "--json", cwd=folder, timeout=SECONDS, **environment)
        if done.code != -signal.SIGKILL:
            return killed, done
        assert documents(folder) == {}
    pytest.fail("every run was killed")


def windows(outcome: Outcome) -> list[object]:
    """Return how many rows each window had."""
    return [event["read"] for event in outcome.log if event["event"] == "window"]


def warnings(outcome: Outcome) -> list[object]:
    return [event["message"] for event in outcome.log if event["event"] == "risk"]


@pytest.mark.rule("EM-03")
def test_em_03_runs_that_are_killed_make_the_next_one_work_in_smaller_windows(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "memory", HASH, [f"memory {number}" for number in range(16)])
    killed, done = until_one_gets_through(folder, TOO_MANY_TEXTS)
    assert killed == 3  # over 16, 8 and 4 rows
    assert done.code == 0, done.err
    (warning,) = warnings(done)
    assert str(warning).startswith("the last 3 runs were killed; this one works in smaller")
    assert windows(done)[:8] == [2] * 8
    assert len(documents(folder)) == 16

    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = content || '!'")
    later = run("once", cwd=folder)
    assert later.code == 0, later.err
    assert (warnings(later), windows(later)) == ([], [16])


@pytest.mark.rule("EM-03")
def test_runs_that_are_killed_make_the_next_one_embed_in_smaller_batches(tmp_path: Path) -> None:
    texts = [f"memory {number} of boats and the bay before the storm" for number in range(60)]
    settings = MODEL.replace("= 1\n", "= 60\n") + "token_budget = 512\n"
    folder = make(tmp_path / "memory", settings, texts)
    killed, done = until_one_gets_through(folder, TOO_MANY_TOKENS)
    assert killed == 2  # over 512 and 256 tokens, in one window of 60 rows each time
    assert done.code == 0, done.err
    assert windows(done)[0] == 60
    assert len(documents(folder)) == 60


@pytest.mark.rule("EM-15")
def test_em_15_an_inference_that_never_ends_ends_the_process_with_the_position_where_it_was(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "memory", MODEL, ["one", "a text to be stuck over", "three"])
    environment = changed(tmp_path / "library", STUCK)
    done = run("once", "--json", cwd=folder, timeout=SECONDS, **environment)
    assert (done.code, json.loads(done.out)["error"]) == (7, "EmbedderStuckError")
    assert documents(folder) == {}
    memory.execute(folder / "memory.db", "UPDATE memory_events SET content = 'two' WHERE id = 2")
    assert run("once", cwd=folder, timeout=SECONDS, **environment).code == 0
    assert documents(folder) == {1: "one", 2: "two", 3: "three"}


@pytest.mark.rule("EM-06")
def test_em_06_whatever_sqlite_holds_reaches_the_embedder_as_whole_texts(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    memory.execute(database, "CREATE TABLE notes (id INTEGER PRIMARY KEY, body)")
    bodies = [None, 42, 3.5, b"blob", "", "plain", b"\xff\xfe", '["a", "b"]']
    for body in bodies:
        memory.execute(database, "INSERT INTO notes (body) VALUES (?)", (body,))
    with EmbeddingServer().running() as server:
        (tmp_path / "syncer.toml").write_text(
            SETTINGS + 'table = "notes"\nkey = "id"\ncontent = "body"\nmetadata = []\n[embed]\n'
            f'provider = "openai"\nmodel = "m"\nurl = "{server.url}"\nchunk_tokens = 2000\n'
        )
        assert run("attach", cwd=tmp_path).code == 0
        done = run("once", cwd=tmp_path)
        assert done.code == 3, done.err  # the blob that is no text
        memory.execute(database, "UPDATE notes SET body = 'alone' WHERE id = 1")
        assert run("once", cwd=tmp_path).code == 0
        inputs = [asked.body["input"] for asked in server.asked]
    assert inputs[0] == inputs[2] == [canary.SENTENCE]
    assert sorted(inputs[1]) == ["3.5", "42", '["a", "b"]', "blob", "plain"]
    assert inputs[3] == ["alone"]
    assert documents(tmp_path) == {
        1: "alone", 2: "42", 3: "3.5", 4: "blob", 6: "plain", 8: '["a", "b"]',
    }  # fmt: skip


class FailingDeletes:
    """A target that does not delete."""

    def __init__(self, inner: Target) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def delete(self, ids: Sequence[PointId]) -> None:
        """Fail if there is anything to delete."""
        if ids:
            raise TargetError("no deletes today")


@pytest.mark.rule("CS-02")
def test_cs_02_a_row_whose_surplus_chunks_cannot_be_deleted_is_not_taken_for_done(
    tmp_path: Path,
) -> None:
    path = memory.make_memory(tmp_path, ["a text of three chunks, surely", "two"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings, chunker=memory.by_characters)
    assert len(memory.points_in(settings)) == 4
    memory.execute(path, "UPDATE memory_events SET content = 'short' WHERE id = 1")
    with memory.pipeline_for(settings, chunker=memory.by_characters) as (pipeline, _):
        before = pipeline.state.position()
        failing = replace(pipeline, target=cast(Target, FailingDeletes(pipeline.target)))
        with pytest.raises(TargetError):
            memory.sync(failing)
        assert pipeline.state.position() == before
        memory.sync(pipeline)
    assert documents(settings) == {1: "short", 2: "two"}


@pytest.mark.rule("EM-12")
@pytest.mark.rule("CS-08")
@pytest.mark.rule("CS-10")
def test_the_collection_says_how_it_is_to_be_asked(tmp_path: Path) -> None:
    folder = make(tmp_path / "memory", HASH + '[sparse]\nlanguage = "german"\n', ["eins", "zwei"])
    options = ("--set", "embed.passage_prefix=passage: ", "--set", "embed.query_prefix=query: ")
    assert run("once", *options, cwd=folder).code == 0
    with memory.connect(memory.specs.target_spec(settings_of(folder))) as connection:
        config = connection.client.get_collection("memory").config
    recipe = (config.metadata or {})["syncer"]["recipe"]
    assert (recipe["dense"]["passage_prefix"], recipe["dense"]["query_prefix"]) == (
        "passage: ",
        "query: ",
    )
    assert recipe["text"]["normaliser"] == 1
    for name in ("language", "stemmer", "stopwords", "k", "b", "avg_len", "terms", "canary"):
        assert recipe["sparse"][name] is not None
