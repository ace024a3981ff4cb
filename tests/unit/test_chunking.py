"""Chunking: every piece fits, nothing is lost, and it always ends."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from syncer.embed import cutting, hashing
from syncer.embed.chunking import Chunker, ChunkSpec, TokenChunker, Unit, WordChunker
from syncer.embed.cutting import Cutter
from syncer.embed.tokens import TokenCounter
from syncer.errors import SettingsError
from syncer.model import Piece

LIMIT = 64
FAMILY = "👩\u200d👩\u200d👧\u200d👦"
PARTS = ["a", "bb ", "harbour", " ", "\n", "\r\n", "\n\n", ".", "! ", "港", "한국", "ก", FAMILY]
PARTS += ["e\u0301", "\ufdfa", "\x1c", "\u3000", "x" * 120, "Q2h1bms" * 9, "\U0010ffff"]
DISTINCT = [chr(n) for n in (*range(0x1200, 0x12B0), *range(0x4E00, 0x4E60)) if chr(n).isalpha()]
TEXTS = st.lists(st.sampled_from(PARTS) | st.text(max_size=8), max_size=120).map("".join)


def with_special_tokens(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    return tokenizer


def wordpiece() -> Tokenizer:
    """Return a tokenizer of BERT's kind: a word too long is one unknown token, spaces are none."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.!港한국ก"
    words = ["[CLS]", "[SEP]", "[UNK]", *letters, *("##" + letter for letter in letters), "harbour"]
    vocabulary = {word: number for number, word in enumerate(words)}
    model = models.WordPiece(vocabulary, unk_token=words[2], max_input_chars_per_word=100)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return with_special_tokens(tokenizer)


def bytewise() -> Tokenizer:
    """Return a tokenizer to which every byte is a token, white space too."""
    words = ["[CLS]", "[SEP]", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    model = models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=[])
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return with_special_tokens(tokenizer)


COUNTERS = [TokenCounter(wordpiece(), LIMIT), TokenCounter(bytewise(), LIMIT)]
LEAST = 6  # of both: two special tokens and the four bytes of a character


@st.composite
def specs(draw: st.DrawFn, least: int = LEAST) -> ChunkSpec:
    size = draw(st.integers(least, LIMIT))
    return ChunkSpec(size, draw(st.integers(0, size - least)))


def bytes_chunker(size: int) -> WordChunker:
    return WordChunker(ChunkSpec(size), limit=size, unit=Unit.BYTES)


@st.composite
def distinct_characters(draw: st.DrawFn) -> str:
    """Return a text in which no letter stands twice, so that a piece tells where it was cut."""
    letters = DISTINCT[draw(st.integers(0, len(DISTINCT) // 2)) :]
    gaps = draw(
        st.lists(st.sampled_from(["", "", "", " ", "\n\n", "  \r\n"]), max_size=len(letters))
    )
    return "".join(letter + gap for letter, gap in zip(letters, gaps, strict=False))


def places(text: str, pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Return where each piece begins and ends in a text of which no part stands twice."""
    starts = [text.index(piece.text) for piece in pieces]
    return [(start, start + len(piece.text)) for start, piece in zip(starts, pieces, strict=True)]


def assert_nothing_lost(text: str, pieces: Sequence[Piece]) -> None:
    rest = text
    for piece in pieces:
        before, _, rest = rest.partition(piece.text)
        assert not before.strip()
    assert not rest.strip()


@pytest.mark.rule("CS-01")
@pytest.mark.rule("CS-12")
@pytest.mark.rule("EM-04")
@pytest.mark.parametrize("counter", COUNTERS)
@given(text=TEXTS, spec=specs(LEAST + 3), prefix=st.sampled_from(["", "p: "]))
def test_chunking_ends_and_no_piece_is_longer_than_the_size(
    counter: TokenCounter, text: str, spec: ChunkSpec, prefix: str
) -> None:
    (pieces,) = TokenChunker(counter, spec, prefix).split([text])
    assert all(piece.tokens <= (spec.size or 0) and piece.text.strip() for piece in pieces)
    counted = counter.count([prefix + piece.text for piece in pieces])
    assert [piece.tokens for piece in pieces] == counted


@pytest.mark.parametrize("counter", COUNTERS)
@given(text=TEXTS, size=st.integers(LEAST, LIMIT))
def test_without_overlap_only_white_space_at_the_cuts_is_lost(
    counter: TokenCounter, text: str, size: int
) -> None:
    (pieces,) = TokenChunker(counter, ChunkSpec(size)).split([text])
    assert_nothing_lost(text, pieces)


@pytest.mark.rule("CS-01")
@pytest.mark.parametrize("counter", COUNTERS)
@given(text=distinct_characters(), spec=specs())
def test_pieces_advance_and_leave_no_gap_whatever_the_overlap(
    counter: TokenCounter, text: str, spec: ChunkSpec
) -> None:
    (pieces,) = TokenChunker(counter, spec).split([text])
    found = places(text, pieces)
    for (start, end), (next_start, next_end) in pairwise(
        [(-1, 0), *found, (len(text), sys.maxsize)]
    ):
        assert start < next_start
        assert end < next_end
        assert not text[end:next_start].strip()
        assert counter.count([text[next_start:end]])[0] - 2 <= spec.overlap


@pytest.mark.parametrize("overlap", [3, 10, 40])
def test_a_piece_repeats_the_end_of_the_one_before_up_to_the_overlap(overlap: int) -> None:
    text = "\n\n".join(f"harbour {n} has boats. It is late {n}." for n in range(60))
    (pieces,) = TokenChunker(COUNTERS[0], ChunkSpec(60, overlap)).split([text])
    found = places(text, pieces)
    for (_, end), (start, _) in pairwise(found):
        repeated = text[start:end]
        assert 0 < COUNTERS[0].count([repeated])[0] - 2 <= overlap
        assert text[start - 1].isspace()


def test_overlap_goes_into_a_word_where_there_is_no_other_way() -> None:
    text = "".join(DISTINCT[:150])
    (pieces,) = TokenChunker(COUNTERS[1], ChunkSpec(50, 12)).split([text])
    for (_, end), (start, _) in pairwise(places(text, pieces)):
        assert end - start == 4  # of three bytes each


def test_overlap_does_not_begin_with_a_sign_that_belongs_to_the_one_before() -> None:
    text = "e\u0301" * 100 + FAMILY * 10
    (pieces,) = TokenChunker(COUNTERS[1], ChunkSpec(50, 11)).split([text])
    assert len(pieces) > 10
    assert all(piece.text.startswith(("e", "👩")) for piece in pieces)


def costly_pairs(texts: Sequence[str]) -> list[int]:
    """Measure texts so that two parts measure less than both together."""
    return [len(text) + 3 * text.count("ab") for text in texts]


@given(text=st.text("ab ", max_size=200), overlap=st.integers(1, 6))
def test_the_size_is_kept_where_the_parts_measure_less_than_the_whole(
    text: str, overlap: int
) -> None:
    pieces = Cutter(costly_pairs, 12, overlap, 0).pieces(text)
    assert all(piece.tokens <= 12 for piece in pieces)
    assert [piece.tokens for piece in pieces] == costly_pairs([piece.text for piece in pieces])


def test_overlap_gives_way_to_the_size() -> None:
    pieces = Cutter(costly_pairs, 12, 4, 0).pieces("a" * 8 + "b" * 8)
    assert pieces == (Piece("a" * 8, 8), Piece("a" + "b" * 8, 12))


def test_blank_parts_of_a_piece_that_is_halved_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cutting, "TextSplitter", LongWinded)
    pieces = Cutter(lambda texts: [len(text) for text in texts], 2, 0, 0).pieces("a b  c")
    assert [piece.text for piece in pieces] == ["a", "b", "c"]


def test_chunks_are_nearly_full_where_the_text_leaves_the_choice() -> None:
    (pieces,) = TokenChunker(COUNTERS[0], ChunkSpec(LIMIT)).split(["!" * 500 + "harbour " * 500])
    assert sum(piece.tokens < LIMIT - 2 for piece in pieces) <= 2  # the last, and where it changes


def test_a_text_that_fits_is_counted_once() -> None:
    class Watched(TokenCounter):
        seen: ClassVar[list[str]] = []

        def count(self, texts: Sequence[str]) -> list[int]:
            self.seen.extend(texts)
            return super().count(texts)

    chunker = TokenChunker(Watched(wordpiece(), LIMIT), ChunkSpec(), "b ")
    Watched.seen.clear()
    chunker.split(["a", "harbour " * 10, "c d"])
    assert Watched.seen == ["b a", "b " + "harbour " * 10, "b c d"]


def test_a_text_that_fits_is_one_piece_unchanged() -> None:
    text = " \n harbour\r\n\r\n a \x1c"
    (pieces,) = TokenChunker(COUNTERS[0], ChunkSpec(), "a ").split([text])
    assert pieces == (Piece(text, COUNTERS[0].count(["a " + text])[0]),)


def test_a_text_of_as_many_tokens_as_fit_is_not_cut_and_one_of_one_more_is() -> None:
    chunker = TokenChunker(COUNTERS[0], ChunkSpec(20), "a ")
    fits, too_long = chunker.split(["a " * 17, "a " * 18])
    assert [piece.tokens for piece in fits] == [20]
    assert len(too_long) == 2


def test_a_long_text_of_few_tokens_is_one_piece_unchanged() -> None:
    text = "x" * 100_000 + " " * 100_000 + "y"
    (pieces,) = TokenChunker(COUNTERS[0], ChunkSpec()).split([text])
    assert pieces == (Piece(text, 4),)


def test_a_blank_text_has_no_pieces() -> None:
    chunker = TokenChunker(COUNTERS[1], ChunkSpec())
    assert chunker.split(["", " \n", " " * 10_000]) == [(), (), ()]
    assert chunker.split([]) == []


def test_white_space_at_the_ends_of_a_text_that_is_cut_stays_where_it_fits() -> None:
    text = "  \n" + "harbour boats " * 20 + "\n"
    (pieces,) = TokenChunker(COUNTERS[1], ChunkSpec(LIMIT)).split([text])
    assert pieces[-1].text.endswith("boats \n")
    assert all(piece.text == piece.text.strip() for piece in pieces[1:-1])


def test_texts_are_cut_between_paragraphs_rather_than_between_words() -> None:
    first, second = "harbour a b c d e. f g h.", "harbour i j k l m. n o p."
    (pieces,) = TokenChunker(COUNTERS[0], ChunkSpec(18)).split([f"{first}\n\n{second}"])
    assert [piece.text for piece in pieces] == [first, second]


def test_a_line_break_of_two_characters_and_what_forms_one_sign_are_not_cut() -> None:
    text = f"abcde{FAMILY}\r\nfghie\u0301\r\n" * 30
    (pieces,) = TokenChunker(COUNTERS[1], ChunkSpec(40)).split([text])
    assert sum(piece.text.count(FAMILY) for piece in pieces) == 30
    assert sum(piece.text.count("e\u0301") for piece in pieces) == 30
    assert not any(piece.text.startswith(("\n", "\u0301", "\u200d")) for piece in pieces)


def test_a_sign_larger_than_a_chunk_is_cut_all_the_same() -> None:
    (pieces,) = TokenChunker(COUNTERS[1], ChunkSpec(8)).split([FAMILY])
    assert "".join(piece.text for piece in pieces) == FAMILY
    assert all(piece.tokens <= 8 for piece in pieces)


class LongWinded:
    """A library that pays no heed to the size."""

    calls: ClassVar[list[int]] = []

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.calls.append(capacity)

    def chunks(self, text: str) -> list[str]:
        """Return all of the text."""
        return [text]

    def chunk_indices(self, text: str) -> list[tuple[int, str]]:
        """Return the text in parts of as many characters as asked for, and where each begins."""
        half = self._capacity
        return [(start, text[start : start + half]) for start in range(0, len(text), half)]


@pytest.mark.rule("CS-12")
def test_the_size_is_kept_whatever_the_library_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "TextSplitter", LongWinded)
    text = "harbour boats " * 100 + " " * 500 + "x" * 900
    (pieces,) = TokenChunker(COUNTERS[1], ChunkSpec(LIMIT)).split([text])
    assert LongWinded.calls
    assert all(piece.tokens <= LIMIT and piece.text == piece.text.strip() for piece in pieces)
    assert all(piece.text for piece in pieces)
    assert_nothing_lost(text, pieces)


def test_a_library_that_returns_nothing_does_not_keep_it_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LongWinded, "chunks", lambda _self, _text: [""])
    monkeypatch.setattr(cutting, "TextSplitter", LongWinded)
    (pieces,) = TokenChunker(COUNTERS[1], ChunkSpec(LIMIT)).split(["ab " * 100])
    assert_nothing_lost("ab " * 100, pieces)


def test_order_is_kept_and_each_text_is_cut_as_it_would_be_alone() -> None:
    chunker = TokenChunker(COUNTERS[0], ChunkSpec(20, 5))
    texts = ["a", "harbour b c " * 30, "", "d e f " * 40, "g"]
    assert chunker.split(texts) == [chunker.split([text])[0] for text in texts]


def test_several_threads_may_use_one_chunker() -> None:
    chunker = TokenChunker(COUNTERS[0], ChunkSpec(20, 5))
    texts = [f"harbour {n} a b c. " * 40 for n in range(24)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: chunker.split([text])[0], texts)) == chunker.split(texts)


@pytest.mark.rule("CS-01")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ChunkSpec(LIMIT + 1), f"embed.chunk_tokens is {LIMIT + 1}, but must be from 6 to {LIMIT}"),
        (ChunkSpec(5), "embed.chunk_tokens is 5, but must be from 6"),
        (ChunkSpec(0), "embed.chunk_tokens is 0, but must be from 6"),
        (ChunkSpec(-1), "embed.chunk_tokens is -1, but must be from 6"),
        (ChunkSpec(20, -1), "embed.chunk_overlap is -1, but must be from 0 to 14"),
        (ChunkSpec(20, 15), "embed.chunk_overlap is 15, but must be from 0 to 14"),
        (ChunkSpec(20, 20), "embed.chunk_overlap is 20, but must be from 0 to 14"),
        (ChunkSpec(None, LIMIT), f"embed.chunk_overlap is {LIMIT}, but must be from 0 to 58"),
    ],
)
def test_a_size_or_overlap_out_of_bounds_is_refused_with_value_and_bound(
    spec: ChunkSpec, message: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)) as refused:
        TokenChunker(COUNTERS[1], spec)
    assert refused.value.exit_code == 2


def test_a_prefix_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"embed\.passage_prefix and special tokens take 72 of"):
        TokenChunker(COUNTERS[1], ChunkSpec(), "p" * 70)


def test_the_recipe_tells_size_and_overlap_and_how_the_canary_is_cut() -> None:
    recipe = TokenChunker(COUNTERS[0], ChunkSpec(None, 4)).recipe
    assert recipe["chunk_size"] == LIMIT
    assert recipe["chunk_overlap"] == 4
    assert recipe["chunk_unit"] == "tokens"
    assert recipe == TokenChunker(COUNTERS[0], ChunkSpec(LIMIT, 4)).recipe


def canary(chunker: Chunker) -> object:
    return chunker.recipe["chunk_canary"]


def test_the_canary_differs_for_a_library_or_tokenizer_that_cuts_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = canary(TokenChunker(COUNTERS[0], ChunkSpec()))
    assert known == canary(TokenChunker(COUNTERS[0], ChunkSpec(LIMIT - 1), "a "))
    assert known != canary(TokenChunker(COUNTERS[1], ChunkSpec()))
    assert known != canary(TokenChunker(COUNTERS[0], ChunkSpec(None, 8)))
    monkeypatch.setattr(cutting, "TextSplitter", LongWinded)
    assert known != canary(TokenChunker(COUNTERS[0], ChunkSpec()))


@given(text=TEXTS, limit=st.integers(4, 12), prefix=st.sampled_from(["", "p: "]))
def test_words_are_counted_as_the_hash_provider_counts_them(
    text: str, limit: int, prefix: str
) -> None:
    def count(part: str) -> int:
        return len(hashing._WORD.findall((prefix + part).encode().lower()))  # noqa: SLF001

    chunker = WordChunker(ChunkSpec(), limit, prefix)
    (pieces,) = chunker.split([text])
    assert all(piece.tokens == count(piece.text) <= limit for piece in pieces)
    assert_nothing_lost(text, pieces)
    assert len(pieces) <= 1 or count(text) > limit


def test_without_a_limit_no_text_is_cut() -> None:
    chunker = WordChunker(ChunkSpec())
    text = "harbour boats " * 5000
    assert chunker.split([text]) == [(Piece(text, 10_000),)]
    assert chunker.recipe["chunk_size"] is None


@pytest.mark.rule("CS-12")
@given(text=TEXTS, size=st.integers(16, 60))
def test_a_chunk_in_bytes_has_no_more_tokens_than_its_size(text: str, size: int) -> None:
    (pieces,) = bytes_chunker(size).split([text])
    texts = [piece.text for piece in pieces]
    assert all(piece.tokens <= size for piece in pieces)
    for counter in COUNTERS:
        assert all(count <= size for count in counter.count(texts))
    assert_nothing_lost(text, pieces)


def test_a_size_is_bounded_below_where_there_is_no_limit() -> None:
    with pytest.raises(SettingsError, match="is 0, but must be at least 1 for this embedder"):
        WordChunker(ChunkSpec(0), limit=None)
    assert WordChunker(ChunkSpec(sys.maxsize)).split(["a"]) == [(Piece("a", 1),)]
