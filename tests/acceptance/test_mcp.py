"""The official mcp-server-qdrant reads what syncer wrote, as it is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fresh_environment
import numpy as np
import pytest
from fresh_environment import CHECKOUT, Environment, run
from memory import execute, make_memory
from qdrant_client import QdrantClient

from syncer.embed import offline

pytestmark = [
    pytest.mark.timeout(600),  # seconds; the first test installs the server
    pytest.mark.skipif(
        sys.version_info >= (3, 14),
        reason="mcp-server-qdrant 0.8.1 wants pydantic < 2.12, which has no wheel for Python 3.14",
    ),
]

TESTS = CHECKOUT / "tests"
REQUIREMENTS = TESTS / "requirements-mcp.txt"
ROWS = {
    1: "The nightly backup of the customer database is copied to the second data centre at 02:30.",
    2: "Anna asked for a window seat whenever the team travels by train.",
    3: "The coffee machine on the third floor has to be descaled once a month.",
    4: "Invoices above ten thousand euros need the signature of two managers.",
    5: "The build server rejects a release whose changelog has no entry for it.",
    6: "Bob is allergic to peanuts, so check the menu before booking a restaurant.",
}
QUESTIONS = {
    "When are the copies of our clients' data made?": 1,
    "Who has to approve an expensive bill?": 4,
    "What should I know before taking Bob out for dinner?": 6,
}
SAME = 0.9999  # cosine
EMBED = """
import asyncio, json, mcp_server_wrapper, sys
from mcp_server_qdrant.embeddings.fastembed import FastEmbedProvider
provider = FastEmbedProvider(sys.argv[1])
vectors = asyncio.run(provider.embed_documents(sys.argv[2:]))
print(json.dumps([provider.get_vector_name(), vectors]))
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """A folder with a database and the embedded Qdrant, and the server that reads it."""

    folder: Path
    server: Environment
    variables: dict[str, str]

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.folder / "memory.db"

    def sync(self) -> None:
        """Bring the rows into the embedded Qdrant."""
        run(sys.executable, "-m", "syncer", "once", cwd=self.folder, variables=self.variables)

    def ask(self, *questions: str) -> Said:
        """Start the server and ask it."""
        client, server = TESTS / "mcp_client.py", TESTS / "mcp_server_wrapper.py"
        command = map(str, (self.server.python, client, server, *questions))
        done = run(*command, cwd=self.folder, variables=self.variables)
        said = json.loads(done.stdout)
        return Said(said["tools"], ["\n".join(texts) for texts in said["answers"]])

    def points(self) -> list[tuple[Any, Any]]:
        """Return each row's payload and vectors by name, in the order of ROWS."""
        with closing(QdrantClient(path=str(self.folder / "qdrant"))) as client:
            found = client.retrieve("memory", list(ROWS), with_vectors=True)
        by_id = {record.id: record for record in found}
        return [(by_id[row].payload, by_id[row].vector) for row in ROWS]


@dataclass(frozen=True, slots=True)
class Said:
    """The server's tools, and its answer to each question."""

    tools: list[str]
    answers: list[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the server, once per Python and list of requirements."""
    path = CHECKOUT / ".venv-mcp" / "server"
    return fresh_environment.kept(path, REQUIREMENTS, tmp_path_factory.mktemp("probe"))


def variables_in(folder: Path) -> dict[str, str]:
    """Return what syncer and the server have to know of a memory in `folder`, but where Qdrant is.

    The packaged model is put there.
    """
    models = folder / "models"
    return {
        "HF_HUB_OFFLINE": "1",
        "XDG_CONFIG_HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "SYNCER_SOURCE__DATABASE": str(folder / "memory.db"),
        "SYNCER_EMBED__CACHE_DIR": str(models),
        "FASTEMBED_CACHE_PATH": str(folder / "cache"),
        "MODEL_FOLDER": str(offline.assemble(models)),
        "EMBEDDING_MODEL": offline.MODEL,
        "COLLECTION_NAME": "memory",
    }


def make(server: Environment, folder: Path) -> Memory:
    embedded = {"QDRANT_LOCAL_PATH": str(folder / "qdrant"), "QDRANT_READ_ONLY": "true"}
    variables = {**variables_in(folder), **embedded}
    make_memory(folder, list(ROWS.values()))
    memory = Memory(folder, server, variables)
    memory.sync()
    return memory


@pytest.fixture(scope="module")
def memory(server: Environment, tmp_path_factory: pytest.TempPathFactory) -> Memory:
    return make(server, tmp_path_factory.mktemp("memory"))


@pytest.fixture(scope="module")
def said(memory: Memory) -> Said:
    return memory.ask(*QUESTIONS)


def entries(answer: str) -> list[tuple[str, dict[str, object]]]:
    """Return the content and metadata of an answer's entries, the best first."""
    assert answer.startswith("["), f"the server said: {answer!r}"
    form = r"<entry><content>(.*?)</content><metadata>(.*?)</metadata></entry>"
    text = "\n".join(json.loads(answer))
    return [(content, json.loads(metadata)) for content, metadata in re.findall(form, text)]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))


def test_in_read_only_mode_the_server_offers_nothing_but_qdrant_find(said: Said) -> None:
    assert said.tools == ["qdrant-find"]


def test_qdrant_find_answers_questions_in_plain_words_with_the_right_rows_first(said: Said) -> None:
    best = [entries(answer)[0][0] for answer in said.answers]
    assert best == [ROWS[row] for row in QUESTIONS.values()]


def test_an_answer_carries_every_rows_metadata_and_none_of_the_book_keeping(
    memory: Memory, said: Said
) -> None:
    answer = said.answers[0]
    found = {metadata["sqlite_id"]: metadata for _, metadata in entries(answer)}
    assert found.keys() == ROWS.keys()
    named = [(one["agent"], one["scope"], one["source"]) for one in found.values()]
    assert named == [("a", "s", "x")] * len(ROWS)
    records = [payload["_sync"] for payload, _ in memory.points()]
    assert "_sync" not in answer
    assert not [record for record in records if record["content"] in answer]


def test_the_servers_own_vectors_are_those_that_syncer_wrote(memory: Memory) -> None:
    variables = {**memory.variables, "PYTHONPATH": str(TESTS)}
    words = ("-c", EMBED, offline.MODEL, *ROWS.values())
    done = run(memory.server.python, *words, cwd=memory.folder, variables=variables)
    name, vectors = json.loads(done.stdout)
    stored = [by_name for _, by_name in memory.points()]
    assert [sorted(by_name) for by_name in stored] == [["bm25", name]] * len(ROWS)
    assert (
        min(cosine(*pair) for pair in zip((v[name] for v in stored), vectors, strict=True)) > SAME
    )


def test_the_server_answers_with_a_rows_new_text_after_the_next_run(
    server: Environment, tmp_path: Path
) -> None:
    memory = make(server, tmp_path)
    edited = "Since May the customer database is backed up every six hours."
    execute(memory.database, "UPDATE memory_events SET content = ? WHERE id = 1", (edited,))
    memory.sync()
    (answer,) = memory.ask(next(iter(QUESTIONS))).answers
    assert entries(answer)[0][0] == edited
    assert ROWS[1] not in answer
