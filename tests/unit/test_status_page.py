"""What stands on the status page, made from a value alone."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from status_pages import FACTS, NOW, PAGE

from syncer.telemetry import UNKNOWN, Facts, GenerationFacts, Health, Minute
from syncer.web import NextRun, StatusPage
from syncer.web.charts import bars, round_duration, round_number
from syncer.web.page import render
from syncer.web.status import Mood, in_words
from syncer.web.words import ago, ahead, duration

WELL = replace(PAGE, facts=Facts(lag_rows=0, lag_seconds=0.0, quarantined={}, withheld=0))


class Words(HTMLParser):
    """The text of a document, and its tags with their attributes."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.texts.append(data)


def text(page: StatusPage) -> str:
    return " | ".join(Words(render(page)).texts)


def failing(page: StatusPage) -> StatusPage:
    return replace(page, runs=page.runs.failed(NOW, "target"))


@pytest.mark.parametrize(
    ("page", "mood", "sentence"),
    [
        (WELL, Mood.GOOD, "Everything is in the collection"),
        (PAGE, Mood.BUSY, "12,840 rows behind"),
        (replace(PAGE, facts=replace(FACTS, withheld=30)), Mood.BAD, "30 deletes are withheld"),
        (replace(WELL, health=Health(well=False, why="no run has succeeded for 9 s")), Mood.BAD,
         "No run has succeeded for 9 s"),
        (failing(WELL), Mood.BUSY, "The last run failed (target)"),
        (replace(WELL, facts=UNKNOWN), Mood.BUSY, "Nothing is known"),
        (replace(WELL, facts=replace(WELL.facts, lag_seconds=None)), Mood.BUSY, "being compared"),
        (replace(WELL, facts=replace(WELL.facts, lag_seconds=2.0)), Mood.BUSY, "Expired rows"),
        (replace(WELL, facts=replace(WELL.facts, quarantined={"refused": 1})), Mood.BUSY,
         "but for the rows in quarantine"),
    ],
)  # fmt: skip
def test_the_state_is_said_in_words(page: StatusPage, mood: Mood, sentence: str) -> None:
    found, words = in_words(page)
    assert found is mood
    assert sentence in words
    assert words in text(page)
    assert f'class="state {mood.value}"' in render(page)


def test_everything_that_is_known_stands_on_the_page() -> None:
    words = text(PAGE)
    for part in (
        "memory", "syncer 0.1.0", "Last success 42 s ago, last run 2 s ago", "Rebuilding.",
        "12,840", "1.6 min", "44%", "memory--20261130t201356-25be", "serving, 1,234,567 rows",
        "being filled, 540,000 rows", "too large | 3", "refused | 1", "Last verify | 2 h ago",
        "Stale points | 2", "sync | in 8 s", "verify | in 7 h", "2026-11-30 00:53:20 UTC",
    ):  # fmt: skip
        assert part in words
    assert words.index("sync | in") < words.index("verify | in")


@pytest.mark.rule("OP-04")
def test_what_is_not_known_is_no_number() -> None:
    words = text(replace(PAGE, facts=UNKNOWN, minutes=(None,) * 60, next_runs=()))
    assert words.count("–") == 4  # noqa: RUF001 - the dash of the page
    assert words.count("not known") == 2
    assert "nothing noted yet" in words
    assert "Rebuild" not in words.replace("Rebuilding", "")


def test_every_word_from_outside_is_escaped() -> None:
    evil = "<script>alert(1)</script>\"'&"
    page = replace(
        PAGE,
        name=evil,
        version=evil,
        health=Health(well=False, why=evil),
        doing=evil,
        next_runs=(NextRun(evil, NOW),),
        facts=replace(
            FACTS,
            quarantined={evil: 1},
            drift={evil: 1},
            generations=(GenerationFacts(evil, evil, 1),),
        ),
    )
    found = Words(render(page))
    assert "script" not in [tag for tag, _ in found.tags]
    assert sum("alert(1)" in text for text in found.texts) >= 8


def test_the_page_refers_to_nothing_outside_itself() -> None:
    document = render(PAGE)
    for tag, attributes in Words(document).tags:
        assert tag not in {"script", "img", "iframe", "object", "embed", "form", "a"}
        assert not {"src", "srcset", "action", "style"} & attributes.keys()
        assert attributes.get("href", "data:,") == "data:,"
    assert not re.search(r"url\(|@import|https?:", document)


def test_a_chart_has_a_bar_for_each_minute_and_a_mark_for_each_gap() -> None:
    drawing = bars([0.0, None, 5.0, 10.0], 10.0, 'a "chart"', lambda value: f"{value:.0f}")
    rects = ET.fromstring(drawing).findall("rect")  # noqa: S314 - our own
    heights = [float(rect.attrib["height"]) for rect in rects if "class" not in rect.attrib]
    assert heights == [0.0, 56.0, 112.0]
    assert len(rects) == 4
    assert "5, 1 min ago" in drawing


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300, -5.0])
def test_a_value_out_of_bounds_breaks_no_chart(value: float) -> None:
    page = replace(PAGE, minutes=(Minute(1, value, 0),))
    document = render(page)
    (drawing, _) = re.findall(r"<svg.*?</svg>", document)
    for rect in ET.fromstring(drawing).findall("rect"):  # noqa: S314 - our own
        assert 0 <= float(rect.attrib["height"]) <= 112


def test_scales_end_with_round_numbers() -> None:
    assert [round_number(value) for value in (0, 1, 1.1, 3, 7, 10, 11)] == [1, 1, 2, 5, 10, 10, 20]
    assert [round_duration(value) for value in (0, 11, 61, 93, 4000)] == [1, 20, 120, 120, 7200]


def test_times_are_said_as_people_say_them() -> None:
    said = [duration(value) for value in (0, 0.05, 1, 42, 93, 600, 3600, 9000, 86400 * 30)]
    assert said == ["0 s", "50 ms", "1 s", "42 s", "1.6 min", "10 min", "1 h", "2.5 h", "30 d"]
    assert (ago(None, 5), ago(3, 5), ago(9, 5)) == ("never", "2 s ago", "0 s ago")
    assert (ahead(5, 5), ahead(65, 5)) == ("now", "in 1 min")
