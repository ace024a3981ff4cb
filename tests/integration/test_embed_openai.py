"""The `openai` provider against an endpoint that does everything endpoints do wrong."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import embedding_server as server
import numpy as np
import pytest
from embedding_server import (
    BAD,
    PASSING,
    Answer,
    Asked,
    EmbeddingServer,
    Way,
    complaint,
    only,
    right,
    said,
    shuffled,
    with_vectors,
    without_index,
)

from syncer.embed import canary
from syncer.embed.openai import HttpEmbedder, HttpSpec
from syncer.errors import EmbedderError, EmbedderUnavailableError, SettingsError
from syncer.model import Embedded

KEY = "sk-THISISAVERYSECRETKEY42"
TEXTS = [f"the text of row number {number}" for number in range(10)]
PRIVATE = "Anna's pension is paid out on Friday,\nsays the bank 中国银行今天付款."
POISON = "poison"
Load = Callable[..., HttpEmbedder]


@pytest.fixture
def endpoint() -> Iterator[EmbeddingServer]:
    with EmbeddingServer().running() as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """Seconds that were waited before a request was tried again; none of them goes by."""
    return []


@pytest.fixture
def load(endpoint: EmbeddingServer, waits: list[float]) -> Iterator[Load]:
    """Load an embedder for the endpoint, and forget the requests that took."""
    loaded: list[HttpEmbedder] = []

    def one(**settings: Any) -> HttpEmbedder:
        spec = HttpSpec(
            **{"url": endpoint.url, "model": "org/Model-S", "timeout": 20.0, **settings}
        )
        loaded.append(HttpEmbedder.load(spec, sleep=waits.append))
        endpoint.asked.clear()
        waits.clear()
        return loaded[-1]

    yield one
    for embedder in loaded:
        embedder.close()


def is_right(embedded: Embedded, texts: list[str], prefix: str = "") -> bool:
    """Say whether each text has its own vector."""
    expected = np.array([server.vector(prefix + text) for text in texts], np.float32)
    return np.allclose(np.array(embedded.vectors), expected) and not embedded.refused


def for_poison(way: Way) -> Way:
    """Answer in this way where the poison is among the texts."""
    return lambda asked: (way if any(POISON in one for one in asked.texts) else right)(asked)


def above(most: int, way: Way) -> Way:
    """Answer in this way where more texts are sent than `most`."""
    return lambda asked: (way if len(asked.texts) > most else right)(asked)


PERMANENT = {401: "api_key", 402: "paid", 403: "api_key", 404: "embed.model", 418: "embed.url"}


@pytest.mark.rule("EM-07")
@pytest.mark.parametrize("way", [right, shuffled, without_index, server.packed])
def test_em_07_every_text_gets_its_own_vector_in_whatever_order_they_come(
    endpoint: EmbeddingServer, load: Load, way: Way
) -> None:
    embedder = load()
    endpoint.usual = way
    assert is_right(embedder.embed(TEXTS), TEXTS)
    assert len(endpoint.asked) == 1


@pytest.mark.rule("EM-07")
@pytest.mark.rule("EM-08")
@pytest.mark.parametrize("way", BAD.values(), ids=BAD)
def test_em_08_an_answer_that_cannot_be_matched_is_thrown_away_and_asked_for_again(
    endpoint: EmbeddingServer, load: Load, waits: list[float], way: Way
) -> None:
    embedder = load()
    endpoint.next(way)
    assert is_right(embedder.embed(TEXTS), TEXTS)
    assert [len(asked.texts) for asked in endpoint.asked] == [10, 10]
    assert len(waits) == 1


@pytest.mark.rule("EM-08")
@pytest.mark.parametrize(
    "what", sorted(BAD.keys() - {"an index on some"})
)  # one text has none, rightly
def test_an_endpoint_that_only_answers_badly_is_unavailable_and_no_text_is_blamed(
    endpoint: EmbeddingServer, load: Load, what: str
) -> None:
    embedder = load()
    endpoint.usual = BAD[what]
    with pytest.raises(EmbedderUnavailableError, match=r"answer .*tried \d+ times in 6\d s"):
        embedder.embed(TEXTS)


@pytest.mark.rule("EM-05")
def test_an_endpoint_that_drops_texts_above_its_limit_is_asked_for_fewer(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load()
    endpoint.usual = only(slice(4))
    assert is_right(embedder.embed(TEXTS), TEXTS)


@pytest.mark.rule("EM-16")
def test_em_16_the_dimension_and_the_canary_are_what_the_endpoint_says(load: Load) -> None:
    recipe = load(passage_prefix="p: ", query_prefix="q: ").recipe
    assert (recipe.vector, recipe.dimension) == ("model-s", server.DIMENSION)
    assert recipe.canary == canary.rounded(server.vector("p: " + canary.SENTENCE))
    assert recipe.text == {}
    assert recipe.dense == {
        "provider": "openai",
        "model": "org/Model-S",
        "dimension": None,
        "passage_prefix": "p: ",
        "query_prefix": "q: ",
    }


@pytest.mark.rule("EM-16")
def test_a_dimension_is_asked_for_only_if_it_is_set(endpoint: EmbeddingServer, load: Load) -> None:
    assert load(dimension=16).recipe.dimension == 16
    load().embed(TEXTS)
    assert endpoint.asked[-1].body == {
        "model": "org/Model-S",
        "input": TEXTS,
        "encoding_format": "float",
    }


@pytest.mark.rule("EM-16")
def test_an_endpoint_that_does_not_give_the_dimension_asked_for_is_refused_at_once(
    endpoint: EmbeddingServer, load: Load
) -> None:
    endpoint.usual = with_vectors(lambda vector: vector)
    with pytest.raises(
        EmbedderError, match=r"8 numbers, where embed\.dimension asks for 16"
    ) as found:
        load(dimension=16)
    assert not found.value.may_retry
    assert len(endpoint.asked) == 1


def test_passages_and_questions_get_their_own_prefix(load: Load) -> None:
    embedder = load(passage_prefix="passage: ", query_prefix="query: ")
    assert is_right(embedder.embed(TEXTS), TEXTS, "passage: ")
    assert np.allclose(embedder.query("who?"), server.vector("query: who?"))


def test_a_repeated_text_is_sent_once(endpoint: EmbeddingServer, load: Load) -> None:
    texts = ["one", "two", "one", "one"]
    assert is_right(load().embed(texts), texts)
    assert sorted(endpoint.asked[0].texts) == ["one", "two"]


def test_nothing_is_asked_about_nothing(endpoint: EmbeddingServer, load: Load) -> None:
    assert load().embed([]) == Embedded(())
    assert endpoint.asked == []


def test_requests_hold_no_more_texts_and_bytes_than_they_may(
    endpoint: EmbeddingServer, load: Load
) -> None:
    texts = [letter * 10 for letter in "abcdefghi"] + ["银行" * 30]
    assert is_right(load(batch_items=3, batch_bytes=25).embed(texts), texts)
    assert sorted(len(asked.texts) for asked in endpoint.asked) == [1, 1, 2, 2, 2, 2]


def test_as_many_requests_are_under_way_as_may_be_and_no_more(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load(concurrency=3, batch_items=1)
    together = threading.Barrier(3, timeout=20)

    def meet(asked: Asked) -> Answer:
        together.wait()
        return right(asked)

    endpoint.usual = meet
    assert is_right(embedder.embed(TEXTS[:9]), TEXTS[:9])
    assert endpoint.most_at_once == 3


@pytest.mark.rule("EM-09")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, 0.0, None])
def test_a_vector_without_a_direction_comes_back_empty_and_the_others_are_good(
    endpoint: EmbeddingServer, load: Load, number: float | None
) -> None:
    embedder = load()

    def bad(asked: Asked) -> Answer:
        found = server.items(asked)
        found[asked.texts.index(TEXTS[3])]["embedding"] = [number] * server.DIMENSION
        return server.embeddings(found)

    endpoint.usual = bad
    embedded = embedder.embed(TEXTS)
    assert [number for number, one in enumerate(embedded.vectors) if len(one) == 0] == [3]
    assert embedded.refused == {}


@pytest.mark.rule("EM-13")
@pytest.mark.parametrize("way", PASSING.values(), ids=PASSING)
def test_em_13_what_may_pass_is_asked_again_in_the_same_batch(
    endpoint: EmbeddingServer, load: Load, waits: list[float], way: Way
) -> None:
    embedder = load()
    endpoint.next(way, way)
    assert is_right(embedder.embed(TEXTS), TEXTS)
    assert [len(asked.texts) for asked in endpoint.asked] == [10, 10, 10]
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0


@pytest.mark.rule("EM-13")
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("asks", ["7", "7.5", "date"])
def test_as_long_is_waited_as_the_endpoint_asks_for(
    endpoint: EmbeddingServer, load: Load, waits: list[float], status: int, asks: str
) -> None:
    embedder = load()
    if asks == "date":
        asks = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    endpoint.next(complaint(status, retry_after=asks))
    assert is_right(embedder.embed(TEXTS), TEXTS)
    assert waits == [float(asks)] if asks[0] == "7" else 0 < waits[0] <= 30


@pytest.mark.rule("EM-13")
@pytest.mark.parametrize("asks", ["86400", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 400])
def test_no_longer_is_waited_than_the_budget(
    endpoint: EmbeddingServer, load: Load, waits: list[float], asks: str
) -> None:
    embedder = load(budget=50.0)
    endpoint.usual = complaint(429, retry_after=asks)
    with pytest.raises(EmbedderUnavailableError, match="HTTP 429"):
        embedder.embed(TEXTS)
    assert 40 < sum(waits) <= 50.001


@pytest.mark.rule("EM-13")
@pytest.mark.parametrize(
    "asks", ["", "0", "-3", "soon", "nan", "Fri, 31 Dec 1999 23:59:59 GMT", "²", "Mon, 99 Foo"]
)
def test_a_wait_that_is_none_is_replaced_by_one_of_our_own(
    endpoint: EmbeddingServer, load: Load, waits: list[float], asks: str
) -> None:
    embedder = load()
    endpoint.next(said(b"", 429, retry_after=asks))
    assert is_right(embedder.embed(TEXTS), TEXTS)
    assert 0.25 <= waits[0] <= 0.5


@pytest.mark.rule("EM-13")
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_batch_that_is_too_large_is_halved_and_later_ones_are_smaller(
    endpoint: EmbeddingServer, load: Load, waits: list[float], status: int
) -> None:
    embedder = load(concurrency=1, batch_items=8)
    endpoint.usual = above(3, complaint(status, "too many inputs"))
    texts = [f"text {number}" for number in range(16)]
    assert is_right(embedder.embed(texts), texts)
    assert [len(asked.texts) for asked in endpoint.asked] == [8, 4, *[2] * 8]
    assert waits == []


@pytest.mark.rule("EM-13")
def test_a_batch_with_too_many_tokens_is_halved_and_short_texts_stay_together(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load(concurrency=1, batch_items=4)
    many_tokens = complaint(400, "too many tokens")
    endpoint.usual = lambda asked: (many_tokens if sum(map(len, asked.texts)) > 200 else right)(
        asked
    )
    short, long = ["a", "b", "c", "d"], [letter * 100 for letter in "efgh"]
    requests = []
    for texts in (short, long, long, short):
        assert is_right(embedder.embed(texts), texts)
        requests.append([len(asked.texts) for asked in endpoint.asked])
        endpoint.asked.clear()
    assert requests == [[4], [4, 2, 2], [2, 2], [4]]


@pytest.mark.rule("EM-05")
@pytest.mark.parametrize(
    "way", [complaint(400), complaint(413), complaint(422), complaint(500), with_vectors(str)]
)
def test_em_05_a_text_that_is_refused_is_found_and_the_rest_of_its_batch_is_embedded(
    endpoint: EmbeddingServer, load: Load, way: Way
) -> None:
    embedder = load()
    endpoint.usual = for_poison(way)
    texts = [*TEXTS[:5], POISON, *TEXTS[5:], POISON]
    embedded = embedder.embed(texts)
    assert embedded.refused.keys() == {5, 11}
    assert [number for number, one in enumerate(embedded.vectors) if len(one) == 0] == [5, 11]
    good = [number for number in range(12) if number not in (5, 11)]
    sound = Embedded([embedded.vectors[number] for number in good])
    assert is_right(sound, [texts[number] for number in good])


@pytest.mark.rule("EM-05")
def test_a_poisoned_batch_does_not_make_later_ones_smaller(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load()
    endpoint.usual = for_poison(complaint(400))
    embedder.embed([*TEXTS, POISON])
    endpoint.asked.clear()
    embedder.embed(TEXTS)
    assert [len(asked.texts) for asked in endpoint.asked] == [10]


@pytest.mark.rule("EM-05")
@pytest.mark.rule("EM-14")
@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_endpoint_that_refuses_everything_is_at_fault_and_not_the_texts(
    endpoint: EmbeddingServer, load: Load, status: int
) -> None:
    embedder = load()
    endpoint.usual = complaint(status, "no such model")
    with pytest.raises(
        EmbedderError, match=f"refuses any text: HTTP {status}.*no such model"
    ) as found:
        embedder.embed(TEXTS)
    assert not found.value.may_retry
    assert len(endpoint.asked) < 10


@pytest.mark.rule("EM-14")
@pytest.mark.parametrize("status", PERMANENT)
def test_em_14_what_does_not_pass_ends_the_run_after_one_request(
    endpoint: EmbeddingServer, load: Load, waits: list[float], status: int
) -> None:
    embedder = load(concurrency=1, batch_items=2)
    endpoint.usual = complaint(status, "go away")
    with pytest.raises(
        EmbedderError, match=f"{endpoint.url}/embeddings answered HTTP {status}.*go away"
    ):
        embedder.embed(TEXTS)
    assert len(endpoint.asked) == 1
    assert waits == []
    with pytest.raises(EmbedderError) as found:
        load()
    assert not found.value.may_retry
    assert PERMANENT[status] in str(found.value.hint)


@pytest.mark.rule("EM-14")
def test_what_does_not_pass_is_told_although_another_request_is_only_busy(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load(concurrency=2, batch_items=5)
    endpoint.usual = complaint(503)
    first = set(TEXTS[:5])
    busy, dead = complaint(503), complaint(401)
    endpoint.usual = lambda asked: (busy if first.issuperset(asked.texts) else dead)(asked)
    with pytest.raises(EmbedderError, match="HTTP 401"):
        embedder.embed(TEXTS)


@pytest.mark.rule("EM-14")
def test_a_wrong_path_is_named(endpoint: EmbeddingServer, load: Load) -> None:
    with pytest.raises(EmbedderError, match=r"/v2/embeddings answered HTTP 404.*no such path"):
        load(url=endpoint.url.replace("v1", "v2"))


def test_an_address_may_name_the_route_itself_and_have_a_query(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load(url=f"{endpoint.url}/embeddings?api-version=1&token={KEY}")
    assert is_right(embedder.embed(TEXTS), TEXTS)
    endpoint.usual = complaint(401, f"bad token {KEY}")
    with pytest.raises(EmbedderError) as found:
        embedder.embed(TEXTS)
    assert KEY not in str(found.value)


@pytest.mark.parametrize("mute", ["hold", "trickle"])
def test_an_endpoint_that_is_too_slow_is_unavailable(
    endpoint: EmbeddingServer, load: Load, mute: str
) -> None:
    embedder = load(timeout=0.2, budget=1.0)
    endpoint.usual = lambda _: Answer(mute=mute)
    with pytest.raises(EmbedderUnavailableError, match=r"no answer within 0\.2 s.*tried"):
        embedder.embed(TEXTS[:1])


def test_an_endpoint_that_is_not_there_is_unavailable(load: Load) -> None:
    with EmbeddingServer().running() as gone:
        url = gone.url
    with pytest.raises(EmbedderUnavailableError, match=f"{url}/embeddings gives no vectors: Conn"):
        load(url=url)


def test_an_endpoint_that_cannot_be_trusted_is_asked_once(
    endpoint: EmbeddingServer, load: Load, waits: list[float]
) -> None:
    with pytest.raises(EmbedderError, match="cannot be trusted") as found:
        load(url=endpoint.url.replace("http:", "https:"))
    assert not found.value.may_retry
    assert waits == []


@pytest.mark.rule("SE-01")
@pytest.mark.parametrize("status", [400, 401, 429, 500, 200])
@pytest.mark.parametrize(
    "echo",
    [
        lambda text: json.dumps({"error": {"message": f"Bearer {KEY}: {text}"}}),
        lambda text: json.dumps({"detail": [{"msg": "bad", "input": [text], "key": KEY[:18]}]}),
        lambda text: json.dumps({"error": json.dumps({"upstream": f"{text!r} {KEY}"})}),
        lambda text: f"<p>{html.escape(text)} {KEY}</p>",
        lambda text: "x" * 4092 + f"{KEY}{text}",
        lambda text: "x" * 4090 + f"{text}{KEY}",
        lambda text: f"cannot read {text[5:30]} {text[-9:-2]}… for {KEY[:7]}***",
        lambda text: f"{KEY} {text}".encode("ascii", "backslashreplace").decode(),
    ],
)
def test_se_01_neither_key_nor_text_comes_back_in_a_message_or_a_reason(
    endpoint: EmbeddingServer, load: Load, status: int, echo: Callable[[str], str]
) -> None:
    embedder = load(api_key=KEY, passage_prefix="passage: ")
    quoting: Way = lambda asked: said(echo(asked.texts[0]), status)(asked)  # noqa: E731
    canary_too = status != 400
    endpoint.usual = lambda asked: (
        quoting if canary_too or canary.SENTENCE not in asked.texts[0] else right
    )(asked)
    words = ""
    try:
        words = str(embedder.embed([PRIVATE, "短信"]).refused)
    except EmbedderError as error:
        words = f"{error} {error!r} {error.__cause__}"
    assert f"{status}" in words or status == 200
    for secret in (
        KEY[:7],
        KEY[-7:],
        "sk-",
        "Anna",
        "pension",
        "Friday",
        "中国银行",
        "\\u4e2d",
        "短信",
    ):
        assert secret not in words
    assert len(words) < 10_000


@pytest.mark.rule("SE-01")
def test_a_short_text_and_a_key_shown_in_part_are_taken_out_of_a_reason(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load(api_key=KEY)
    endpoint.usual = for_poison(complaint(400, f"key {KEY[:5]}***{KEY[-2:]} cannot do '{POISON}'"))
    assert embedder.embed([POISON]).refused == {
        0: "HTTP 400: message: key ********** cannot do '…', type: t"
    }


@pytest.mark.rule("SE-01")
def test_a_reason_and_a_message_are_bounded(endpoint: EmbeddingServer, load: Load) -> None:
    embedder = load()
    endpoint.usual = for_poison(complaint(400, "é" * 100_000))
    (reason,) = embedder.embed([POISON]).refused.values()
    assert len(reason) == 200
    endpoint.usual = complaint(401, "é" * 100_000)
    with pytest.raises(EmbedderError) as found:
        embedder.embed([POISON])
    assert 4000 < len(found.value.message.encode()) < 4096 + 200


@pytest.mark.rule("SE-01")
def test_the_key_goes_with_every_request_and_shows_nowhere(
    endpoint: EmbeddingServer, load: Load
) -> None:
    embedder = load(api_key=KEY)
    embedder.embed(TEXTS)
    assert [asked.headers["authorization"] for asked in endpoint.asked] == [f"Bearer {KEY}"]
    spec = HttpSpec(f"https://h/v1?k={KEY}", "m", api_key=KEY)
    for thing in (spec, embedder, vars(embedder), embedder.recipe, spec.name):
        assert KEY not in repr(thing)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_but_named(
    endpoint: EmbeddingServer, load: Load, status: int
) -> None:
    with EmbeddingServer().running() as other:
        place = f"{other.url}/embeddings".replace("127.0.0.1", "localhost")
        endpoint.usual = complaint(status, location=f"{place}?key={KEY}")
        with pytest.raises(
            EmbedderError, match=f"HTTP {status}, a redirect to http://localhost"
        ) as found:
            load(api_key=KEY)
        assert other.asked == []
    assert KEY not in str(found.value)
    assert len(endpoint.asked) == 1


@pytest.mark.rule("SE-05")
@pytest.mark.parametrize(
    "host", ["api.example", "localhost.example", "127.0.0.1.example", "10.0.0.1", "[2001:db8::1]"]
)
def test_se_05_a_key_does_not_go_over_plain_http_to_another_machine(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    def look_up(*_: object) -> None:
        pytest.fail("there was traffic")

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    with pytest.raises(SettingsError, match="plain http") as found:
        HttpEmbedder.load(HttpSpec(f"http://{host}/v1", "m", api_key=KEY))
    assert KEY not in str(found.value)


@pytest.mark.rule("SE-05")
@pytest.mark.parametrize(
    "url", ["http://localhost/v1", "HTTP://127.9.9.9:80", "http://[::1]:1", "https://api.example"]
)
def test_a_key_may_stay_on_this_machine_or_go_encrypted(url: str) -> None:
    HttpSpec(url, "m", api_key=KEY).check()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"url": f"https://user:{KEY}@host/v1"}, "embed.url"),
        ({"url": "ftp://host"}, "embed.url"),
        ({"url": "https://host:99999/v1"}, "embed.url"),
        ({"url": "https://ho\nst/v1"}, "embed.url"),
        ({"url": "https://127.0.0.1\\.example/v1"}, "embed.url"),
        ({"url": "https://host/v1#x"}, "embed.url"),
        ({"url": "https://xn--/v1"}, "embed.url"),
        ({"model": " "}, "embed.model"),
        ({"api_key": f"{KEY}é"}, "embed.api_key"),
        ({"dimension": 0}, "embed.dimension"),
        ({"concurrency": 0}, "embed.concurrency"),
        ({"batch_items": 0}, "embed.batch_items"),
        ({"batch_bytes": -1}, "embed.batch_bytes"),
        ({"timeout": 0.0}, "embed.timeout"),
        ({"budget": float("nan")}, "embed.retry_budget"),
        ({"budget": -1.0}, "embed.retry_budget"),
    ],
)
def test_a_setting_that_cannot_be_is_named_without_its_secrets(
    endpoint: EmbeddingServer, load: Load, settings: dict[str, object], named: str
) -> None:
    with pytest.raises(SettingsError, match=named.replace(".", r"\.")) as found:
        load(**settings)
    assert KEY not in str(found.value)
    assert endpoint.asked == []


def test_a_proxy_of_the_environment_does_not_come_between_loopback(
    endpoint: EmbeddingServer, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddingServer().running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert is_right(load().embed(TEXTS), TEXTS)
        assert proxy.asked == []


@pytest.mark.parametrize("way", [complaint(400, "too long"), with_vectors(lambda _: [0.0] * 8)])
def test_a_question_without_a_vector_is_an_error(
    endpoint: EmbeddingServer, load: Load, way: Way
) -> None:
    embedder = load()
    endpoint.usual = way
    with pytest.raises(EmbedderError, match=r"too long|zero or not finite"):
        embedder.query("who?")


def test_a_canary_without_a_direction_is_an_error(endpoint: EmbeddingServer, load: Load) -> None:
    endpoint.usual = with_vectors(lambda _: [0.0] * 8)
    with pytest.raises(EmbedderError, match="zero or not finite"):
        load()


def test_connections_are_kept_open(endpoint: EmbeddingServer, load: Load) -> None:
    embedder = load(batch_items=1, concurrency=1)
    embedder.embed(TEXTS)
    assert len({asked.port for asked in endpoint.asked}) == 1
