"""How a text is cut into terms before BM25 sees it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncer.embed import terms

UNSPACED = "协程很好用検索するデーター데이터베이스ภาษาไทยที่นี่น้ำພາສາລາວភាសាខ្មែរမြန်မာ"
LATIN = "PythonÄé_3é"
MARKS = "".join(  # and what NFKC turns into a mark and a letter, as the Thai am
    character
    for character in sorted(set(UNSPACED + LATIN))
    if unicodedata.category(unicodedata.normalize("NFKC", character)[0]).startswith("M")
)


def cut(text: str) -> list[str]:
    """Return the terms of `text` with their marks as they are written."""
    return [terms.spelled(term) for term in terms.separate(text).split()]


@pytest.mark.rule("CS-03")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("协程", ["协", "程", "协程"]),
        ("猫", ["猫"]),
        ("检索快", ["检", "索", "快", "检索", "索快"]),
        ("食べる", ["食", "べ", "る", "食べ", "べる"]),
        ("時々", ["時", "々", "時々"]),
        ("ｶﾞｽ", ["ガ", "ス", "ガス"]),
        ("アン・サン", ["ア", "ン", "アン", "・", "サ", "ン", "サン"]),
        ("서울에", ["서", "울", "에", "서울", "울에"]),
        ("ที่นี่", ["ที่", "นี่", "ที่นี่"]),
        ("ລາວ", ["ລ", "າ", "ວ", "ລາ", "າວ"]),
        ("ខ្មែរ", ["ខ្", "មែ", "រ", "ខ្មែ", "មែរ"]),
        ("မြန်", ["မြ", "န်", "မြန်"]),
        ("𠮷野", ["𠮷", "野", "𠮷野"]),
    ],
)
def test_a_run_without_blanks_becomes_characters_and_pairs(text: str, expected: list[str]) -> None:
    assert cut(text) == [unicodedata.normalize("NFKC", term) for term in expected]


@pytest.mark.rule("CS-03")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Python协程", ["python", "协", "程", "协程"]),
        ("第3章", ["第", "3", "章"]),
        ("๒๕๖๗ปี", ["๒๕๖๗", "ปี"]),
        ("用snake_case写", ["用", "snake_case", "写"]),
        ("API키", ["api", "키"]),
    ],
)
def test_a_run_leaves_the_words_and_numbers_beside_it_whole(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "two words",
        "snake_case and camelcase",
        "привет мир",
        "φίλη θάλασσα",
        "हिन्दी में",
        "x̄ tamil தமிழ்",
    ],
)
def test_a_script_with_blanks_keeps_its_words(text: str) -> None:
    assert cut(text) == text.split()


@pytest.mark.parametrize("text", ["हिन्दी", "தமிழ்", "שָׁלוֹם", "x̄y", "ที่นี่"])
def test_combining_marks_reach_the_tokenizer_as_letters(text: str) -> None:
    assert terms.separate(text).replace(" ", "").isalnum()


@pytest.mark.rule("CS-10")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "cafe\u0301"),
        ("Ｐｙｔｈｏｎ３", "python3"),  # noqa: RUF001 - full width is the point
        ("ﾃﾞｰﾀ", "データ"),
        ("が", "か\u3099"),
        ("한글", unicodedata.normalize("NFD", "한글")),
        ("น้ำ", "น\u0e4d\u0e49\u0e32"),
        ("葛城", "葛\U000e0100城"),
        ("infor\u00admation", "information"),
        ("İstanbul", "istanbul"),
        ("Syncer\u2122 works", "Syncer works"),
        ("1\ufe0f\u20e3", "1"),
        ("⼭", "山"),
    ],
)
def test_two_spellings_of_one_text_give_the_same_terms(one: str, other: str) -> None:
    assert terms.separate(one).split() == terms.separate(other).split()


@pytest.mark.rule("CS-10")
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_composed_and_decomposed_text_give_the_same_terms(text: str) -> None:
    composed = terms.separate(unicodedata.normalize("NFC", text))
    assert composed == terms.separate(unicodedata.normalize("NFD", text))


@pytest.mark.rule("CS-08")
@given(st.text(UNSPACED, min_size=1), st.text(UNSPACED + LATIN), st.text(LATIN + UNSPACED))
def test_a_word_inside_a_run_has_no_term_that_the_run_lacks(
    word: str, before: str, after: str
) -> None:
    word, after = word.lstrip(MARKS) or "协", after.lstrip(MARKS)
    whole = unicodedata.normalize("NFC", f"{before} {word}{after}")
    assert set(cut(word)) <= set(cut(whole))


def test_a_very_long_run_gives_one_term_per_character_and_per_pair() -> None:
    assert len(terms.separate("汉字" * 50_000).split()) == 2 * 100_000 - 1


@pytest.mark.parametrize(("term", "expected"), [("协程", True), ("ที่", True), ("wort", False)])
def test_a_term_knows_whether_it_was_cut(term: str, expected: bool) -> None:
    assert terms.is_unspaced(cut(term)[0]) is expected
