"""Chunking by the packaged model's tokenizer: real text, hard text, time and memory."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from syncer.embed import EmbedSpec, build, offline
from syncer.embed.chunking import ChunkSpec, TokenChunker
from syncer.embed.tokens import TokenCounter

LIMIT = offline.TOKENIZER_CONFIG["model_max_length"]
PROSE = (
    "The tide came in while they were counting. Nobody wrote it down; the list ends at forty.\n"
    "潮水在他们清点的时候涌了上来,没有人把它记下来。名单到四十为止。\n\n"
)
# 70,000 characters cost 5 MB here; the bound leaves room for other allocators.
MEMORY = """
import resource, sys
from tokenizers import Tokenizer
from syncer.embed.chunking import ChunkSpec, TokenChunker
from syncer.embed.tokens import TokenCounter
chunker = TokenChunker(TokenCounter(Tokenizer.from_file(sys.argv[1]), 256), ChunkSpec(None, 32))
short = [f"memory {number} of a boat that came late" for number in range(200)]
chunker.split(short)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pieces = chunker.split([*short, "".join(map(chr, range(0x4E00, 0x8E00))) * 4 + "!" * 4464])
assert len(pieces[-1]) > 250
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return offline.assemble(tmp_path_factory.mktemp("packaged")) / "tokenizer.json"


@pytest.fixture(scope="module")
def counter(tokenizer_file: Path) -> TokenCounter:
    return TokenCounter(Tokenizer.from_file(str(tokenizer_file)), int(str(LIMIT)))


def blob(size: int) -> str:
    digests = (hashlib.sha512(str(number).encode()).digest() for number in range(size // 64))
    return base64.b64encode(b"".join(digests)).decode()


HARD = {
    "prose in two languages": PROSE * 60,
    "Chinese without a break": "潮水涌来" * 1000,
    "Thai": "เรือสามลำมาสายแต่ไม่มีลำใดหายไป " * 200,
    "base64": blob(4000),
    "emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467 a " * 400,
    "punctuation": "!" * 5000,
    "one line": PROSE.replace("\n", " ") * 60,
    "CRLF": PROSE.replace("\n", "\r\n") * 60,
}


@pytest.mark.rule("CS-12")
@pytest.mark.parametrize("kind", HARD)
def test_no_piece_exceeds_the_models_limit_and_few_are_far_below(
    counter: TokenCounter, kind: str
) -> None:
    (pieces,) = TokenChunker(counter, ChunkSpec(), "passage: ").split([HARD[kind]])
    tokens = counter.count(["passage: " + piece.text for piece in pieces])
    assert [piece.tokens for piece in pieces] == tokens
    assert max(tokens) <= counter.limit
    assert sum(tokens) / len(tokens) > counter.limit / 2
    rest = HARD[kind]
    for piece in pieces:
        before, _, rest = rest.partition(piece.text)
        assert not before.strip()
    assert not rest.strip()


@pytest.mark.rule("EM-04")
def test_the_embedder_cuts_off_nothing_of_a_piece(counter: TokenCounter, tmp_path: Path) -> None:
    embedder = build(EmbedSpec(cache_dir=tmp_path, offline=True), {})
    text = PROSE * 12
    (pieces,) = TokenChunker(counter, ChunkSpec()).split([text])
    assert embedder.embed([text]).truncated == {0}
    assert not embedder.embed([piece.text for piece in pieces]).truncated
    embedder.close()


def test_a_text_of_a_mebibyte_is_cut_with_few_tokens_counted(
    counter: TokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    characters = 0
    count = counter.count

    class Watched(TokenCounter):
        def __init__(self) -> None:
            self.limit = counter.limit

        def count(self, texts: Sequence[str]) -> list[int]:
            nonlocal characters
            characters += sum(map(len, texts))
            return count(texts)

    text = PROSE * (2**20 // len(PROSE.encode()))
    (pieces,) = TokenChunker(Watched(), ChunkSpec()).split([text])
    assert len(pieces) > 1000
    assert characters < 6 * len(text)


def test_a_long_text_among_short_ones_costs_little_memory(tokenizer_file: Path) -> None:
    command = [sys.executable, "-c", MEMORY, str(tokenizer_file)]
    answer = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert int(answer) < 30_000  # kB
