"""BM25 through fastembed: what is found, what a recipe pins down, and what is refused."""

from __future__ import annotations

import json
import math
import multiprocessing
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import mmh3
import pytest
import stop_words
from fastembed.sparse import bm25
from hypothesis import given
from hypothesis import strategies as st

from syncer.embed import stopwords
from syncer.embed.sparse import MAX_K, TOKEN_MAX_LENGTH, SparseEncoder
from syncer.embed.spec import SparseSpec
from syncer.errors import EmbedderError, ExitCode, RecipeError, SettingsError, SyncerError
from syncer.keys import canonical_json
from syncer.model import SparseVector

ENGLISH = SparseEncoder(SparseSpec(avg_len=12.0))
GERMAN = SparseSpec("german", avg_len=12.0)
WORDS = [
    "restore",
    "boats",
    "协程",
    "第3章",
    "データ",
    "서울에서",
    "ภาษา",
    "snake_case",
    "größe",
    "ὁδός",
]


def dot(one: SparseVector, other: SparseVector) -> float:
    weights = dict(zip(one.indices, one.values, strict=True))
    pairs = zip(other.indices, other.values, strict=True)
    return sum(weights.get(index, 0.0) * value for index, value in pairs)


def stored(encoder: SparseEncoder) -> dict[str, object]:
    """Return the recipe as it comes back from a collection's metadata."""
    recipe: dict[str, object] = json.loads(canonical_json(encoder.recipe))
    return recipe


@pytest.mark.rule("CS-03")
@pytest.mark.parametrize(
    ("query", "hit", "near"),
    [
        ("协程", "我们用协程处理请求", "协议规定了程序步骤"),
        ("検索", "全文検索を追加した", "検査のあと索引を消す"),
        ("기억", "오래된기억을 지운다", "기차와 억새를 본다네"),
        ("ภาษา", "เรียนภาษาทุกวัน", "ภาพกับอักษรของเรา"),
    ],
)
def test_a_short_word_finds_its_row_among_200_through_sparse_alone(
    query: str, hit: str, near: str
) -> None:
    rows = [f"{near}{number}" for number in range(200)]
    rows.insert(77, hit)
    wanted = ENGLISH.query(query)
    scores = [dot(wanted, row) for row in ENGLISH.passages(rows)]
    assert max(range(len(rows)), key=scores.__getitem__) == 77
    assert sorted(scores)[-2] < scores[77]


@pytest.mark.rule("CS-08")
@given(
    st.lists(
        st.one_of(
            st.sampled_from(WORDS),
            st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1),
        ),
        min_size=1,
        max_size=12,
    ),
    st.data(),
)
def test_a_query_of_a_text_s_words_has_no_id_that_the_text_lacks(
    words: list[str], data: st.DataObject
) -> None:
    asked = data.draw(st.lists(st.sampled_from(words), min_size=1))
    (passage,) = ENGLISH.passages([" ".join(words)])
    query = ENGLISH.query(" ".join(asked))
    assert set(query.indices) <= set(passage.indices)
    for vector in (passage, query):
        assert list(vector.indices) == sorted(set(vector.indices))
        assert len(vector.values) == len(vector.indices)
        assert all(math.isfinite(value) and value > 0 for value in vector.values)
    assert set(query.values) <= {1.0}


@pytest.mark.rule("CS-08")
def test_a_recipe_alone_gives_the_same_vectors() -> None:
    texts = ["Boote und Häfen", "Python协程 in drei Sätzen", "wiederholt wiederholt"]
    spec = SparseSpec("german", k=1.5, b=0.5, avg_len=7.123456)
    encoder = SparseEncoder(spec)
    again = SparseEncoder.from_recipe(stored(encoder))
    assert again.recipe == encoder.recipe
    assert again.recipe["avg_len"] == 7.123
    assert again.passages(texts) == encoder.passages(texts)
    assert [*map(again.query, texts)] == [*map(encoder.query, texts)]
    assert again.passages(texts) != ENGLISH.passages(texts)


@pytest.mark.rule("CS-08")
def test_weights_are_those_of_the_bm25_formula() -> None:
    text = "boats boats harbour 协程"
    (vector,) = ENGLISH.passages([text])
    assert ENGLISH.length(text) == 6
    norm = 1.2 * (1 - 0.75 + 0.75 * 6 / 12.0)
    assert dot(vector, ENGLISH.query("boat")) == pytest.approx(2 * 2.2 / (2 + norm))
    assert dot(vector, ENGLISH.query("harbours")) == pytest.approx(2.2 / (1 + norm))


@pytest.mark.rule("CS-10")
@pytest.mark.parametrize(
    ("one", "other"),
    [("Café ｆｕｌｌ", "cafe\u0301 full"), ("ﾃﾞｰﾀ 한", "データ \u1112\u1161\u11ab")],  # noqa: RUF001
)
def test_two_spellings_of_one_text_give_the_same_vector(one: str, other: str) -> None:
    assert ENGLISH.passages([one]) == ENGLISH.passages([other])
    assert ENGLISH.query(one) == ENGLISH.query(other)


@pytest.mark.rule("CS-09")
def test_a_changed_stop_word_list_is_refused_with_both_sides_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = stored(SparseEncoder(GERMAN))
    longer = [*stop_words.get_stop_words("german"), "boot"]
    monkeypatch.setitem(stop_words.STOP_WORDS_CACHE, "german", longer)
    here = stored(SparseEncoder(GERMAN))
    with pytest.raises(RecipeError) as refused:
        SparseEncoder.from_recipe(made)
    message = str(refused.value)
    assert canonical_json(made["stopwords"]) in message
    assert canonical_json(here["stopwords"]) in message
    assert "canary" not in message
    assert "`syncer rebuild`" in message


@pytest.mark.rule("CS-09")
def test_other_token_ids_are_refused_with_both_sides_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = stored(ENGLISH)
    monkeypatch.setattr(bm25.Bm25, "compute_token_id", lambda _, token: abs(mmh3.hash(token, 1)))
    here = stored(SparseEncoder(SparseSpec(avg_len=12.0)))
    with pytest.raises(RecipeError) as refused:
        SparseEncoder.from_recipe(made)
    for side in (made, here):
        assert isinstance(side["canary"], list)
        assert str(side["canary"][0]) in str(refused.value)


@pytest.mark.rule("CS-03")
def test_a_stop_word_never_takes_a_character_out_of_other_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [*stop_words.get_stop_words("german"), "协", "协程"]
    monkeypatch.setitem(stop_words.STOP_WORDS_CACHE, "german", words)
    assert SparseEncoder(GERMAN).length("协程") == 3


@pytest.mark.rule("CS-03")
def test_a_stemmer_never_shortens_what_was_cut() -> None:
    finnish, plain = SparseEncoder(SparseSpec("finnish")), SparseEncoder(SparseSpec("none"))
    assert finnish.query("talossa") != plain.query("talossa")
    assert finnish.query("ธรรม 人人") == plain.query("ธรรม 人人")


@pytest.mark.rule("CS-09")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"terms": 0}, "terms is 0 in the generation and 1 here"),
        ({"token_max_length": 40}, f"40 in the generation and {TOKEN_MAX_LENGTH} here"),
        ({"later": True}, "later is true in the generation and null here"),
        ({"language": "klingon"}, "klingon"),
        ({"language": None}, "None"),
        ({"k": "1.2"}, "k is '1.2'"),
        ({"avg_len": 0}, "avg_len is 0"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(RecipeError, match=said) as refused:
        SparseEncoder.from_recipe(stored(ENGLISH) | changed)
    assert refused.value.exit_code == ExitCode.REFUSED


@pytest.mark.rule("CS-05")
@pytest.mark.parametrize(
    ("language", "hint"),
    [
        ("englisch", "'english'"),
        ("German", "'german'"),
        ("nor", "'norwegian'"),
        ("chinese", "cut into characters"),
        ("klingon", "'none'"),
        ("", "'none'"),
    ],
)
def test_an_unknown_language_is_refused_with_the_list_and_the_closest(
    language: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        SparseEncoder(SparseSpec(language))
    assert refused.value.exit_code == ExitCode.USAGE
    assert all(known in refused.value.message for known in bm25.supported_languages)
    assert hint in (refused.value.hint or "")


@pytest.mark.rule("CS-05")
def test_every_language_of_fastembed_can_be_used() -> None:
    assert [*stopwords.LANGUAGES] == sorted(bm25.supported_languages)
    for language in stopwords.LANGUAGES:
        assert SparseEncoder(SparseSpec(language)).query("boats 协程").indices


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (SparseSpec(k=-0.1), "sparse.k"),
        (SparseSpec(k=MAX_K * 1.01), "sparse.k"),
        (SparseSpec(k=math.nan), "sparse.k"),
        (SparseSpec(b=1.01), "sparse.b"),
        (SparseSpec(b=-0.01), "sparse.b"),
        (SparseSpec(avg_len=0.0), "sparse.avg_len"),
        (SparseSpec(avg_len=math.inf), "sparse.avg_len"),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_its_name(spec: SparseSpec, name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        SparseEncoder(spec)


def test_a_text_without_terms_has_a_vector_without_indices() -> None:
    vectors = ENGLISH.passages(["", "the and of", "😀 ... ___", "boats"])
    assert [len(vector.indices) for vector in vectors] == [0, 0, 1, 1]
    assert ENGLISH.query("the") == SparseVector((), ())
    assert ENGLISH.passages([]) == []


def test_a_language_s_stop_words_and_endings_are_left_out() -> None:
    german = SparseEncoder(GERMAN)
    assert german.length("die Boote und der Hafen") == 2
    assert german.query("Boote") == german.query("Boot")
    assert SparseEncoder(SparseSpec("none")).length("die Boote und der Hafen") == 5
    french = SparseEncoder(SparseSpec("french"))
    assert french.query("qu'il l'ancre") == french.query("ancre")
    assert french.length("v") == 1  # a part of "s.v.", which is one entry


def test_a_stemmer_sees_the_marks_of_its_script() -> None:
    tamil = SparseEncoder(SparseSpec("tamil"))
    assert tamil.query("புத்தகங்கள்") == tamil.query("புத்தகம்")


@pytest.mark.parametrize("word", ["computer", "number", "system", "file", "test", "problem"])
def test_no_english_word_with_a_meaning_is_left_out(word: str) -> None:
    assert len(ENGLISH.query(word).indices) == 1


def test_only_what_is_longer_than_a_sha_256_is_left_out() -> None:
    assert len(ENGLISH.query("0a" * 32).indices) == 1
    assert len(ENGLISH.query("0a" * 33).indices) == 0


def test_a_measured_length_changes_passages_and_not_queries() -> None:
    unmeasured = SparseEncoder(SparseSpec())
    with pytest.raises(SyncerError, match="average length"):
        unmeasured.passages(["boats"])
    measured = unmeasured.with_length(2.5)
    assert measured.recipe == {**unmeasured.recipe, "avg_len": 2.5}
    assert measured.query("old boats") == unmeasured.query("old boats")
    assert measured.passages(["old boats"]) != ENGLISH.passages(["old boats"])


@pytest.mark.rule("EM-08")
def test_fewer_vectors_than_texts_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bm25.Bm25.raw_embed
    monkeypatch.setattr(bm25.Bm25, "raw_embed", lambda self, documents: whole(self, documents)[:-1])
    with pytest.raises(EmbedderError, match="1 vectors for 2 texts"):
        ENGLISH.passages(["boats", "harbours"])


@pytest.mark.rule("EM-08")
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_weight_that_cannot_be_stored_is_an_error(
    bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25.Bm25, "_term_frequency", lambda *_: {7: 1.0, 5: bad})
    with pytest.raises(EmbedderError, match="above 0"):
        ENGLISH.passages(["boats"])


@pytest.mark.rule("EM-01")
def test_nothing_is_fetched_and_no_cache_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    attempts: list[str] = []

    def refuse(*args: object, **_: object) -> None:
        attempts.append(repr(args))
        raise OSError("no network in this test")

    for owner, name in [(socket, "getaddrinfo"), (socket.socket, "connect")]:
        monkeypatch.setattr(owner, name, refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "cache"))
    assert SparseEncoder(SparseSpec("french", avg_len=3.0)).passages(["des bateaux"])
    assert attempts == []
    assert [*tmp_path.iterdir()] == []


@pytest.mark.rule("EM-15")
def test_a_large_batch_starts_no_process_and_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    for kind in (multiprocessing.process.BaseProcess, threading.Thread):
        monkeypatch.setattr(kind, "start", lambda self: started.append(repr(self)))
    texts: Sequence[str] = [f"boat {number}" for number in range(1000)]
    assert len(ENGLISH.passages(texts)) == 1000
    assert started == []
