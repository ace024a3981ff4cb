"""No line of the log holds a secret or a row's text, none is endless, and floods are bounded."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog

from syncer import telemetry
from syncer.cli.endings import show_error
from syncer.cli.terminal_report import TerminalReport
from syncer.errors import EmbedderUnavailableError, TargetUnavailableError
from syncer.redaction import LONGEST, without_secrets
from syncer.telemetry import Flood
from syncer.telemetry.lines import Redaction

KEY = 'k"7/+secret'
HIDDEN = "**********"

Lines = Callable[[], list[dict[str, object]]]


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leave structlog and logging as they were."""
    handlers = list(logging.getLogger().handlers)
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def flood(clock: Clock) -> Flood:
    return Flood(clock)


@pytest.fixture
def lines(flood: Flood) -> Lines:
    """What was logged, as JSON lines."""
    stream = io.StringIO()
    telemetry.configure(as_json=True, level="info", stream=stream, secrets=[KEY], flood=flood)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.rule("SE-01")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("GET https://me:pass@host:6333/x failed", f"GET https://{HIDDEN}@host:6333/x failed"),
        ("https://me:pa/?#ss@host", f"https://{HIDDEN}@host"),
        ("http://h/?api_key=abc&limit=3", f"http://h/?api_key={HIDDEN}&limit=3"),
        ("http://h/?x=1&token=abc", f"http://h/?x=1&token={HIDDEN}"),
        ("api-key: abc, content-type: json", f"api-key: {HIDDEN}, content-type: json"),
        ("{'Authorization': 'Bearer abc.def'}", f"{{'Authorization': 'Bearer {HIDDEN}'}}"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {HIDDEN}"),
        ("incorrect key sk-abcdefgh12345678 given", f"incorrect key {HIDDEN} given"),
        ("jwt eyJhbGciOi.eyJzdWIi.abc-_9 expired", f"jwt {HIDDEN} expired"),
        (f"refused: {KEY}", f"refused: {HIDDEN}"),
        ("at /?k=k%227%2F%2Bsecret", f"at /?k={HIDDEN}"),
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(words: str, shown: str) -> None:
    assert without_secrets(words, [KEY]) == shown


@pytest.mark.parametrize(
    "words",
    [
        "the row with key 42 is quarantined: a key of type bytes cannot have a point",
        "http://localhost:6333/collections/memory does not answer",
        "3 tokens, 12 bytes; the basic check failed at 12:30",
        "The server wants an API key: set target.api_key_file or SYNCER_TARGET__API_KEY.",
    ],
)
def test_plain_words_stay_as_they_are(words: str) -> None:
    assert without_secrets(words) == words


@pytest.mark.rule("SE-01")
def test_secrets_are_hidden_at_every_depth_of_an_event() -> None:
    event = Redaction([KEY])(
        None, "info",
        {"event": "x", "api_key": "plain", "nested": {"a": [("b", f"see {KEY}")], "token": 5}},
    )  # fmt: skip
    assert event == {
        "event": "x",
        "api_key": HIDDEN,
        "nested": {"a": [["b", f"see {HIDDEN}"]], "token": HIDDEN},
    }


@pytest.mark.rule("SE-01")
def test_a_secret_is_hidden_before_a_line_is_cut() -> None:
    redaction = Redaction([KEY])
    for before in range(LONGEST - 2 * len(KEY), LONGEST + 1):
        message = str(redaction(None, "info", {"event": "x" * before + KEY})["event"])
        assert len(message.encode()) <= LONGEST
        assert "secret" not in message
        assert 'k"7' not in message


@pytest.mark.rule("SE-01")
def test_an_exception_and_its_causes_are_shown_as_kinds_and_places(lines: Lines) -> None:
    try:
        try:
            try:
                raise ValueError(f"the text of a row, and {KEY}")  # noqa: TRY301
            except ValueError as error:
                raise TargetUnavailableError(f"no answer for {KEY}") from error
        except TargetUnavailableError:
            raise RuntimeError("the text of a row")  # noqa: B904 - its context is the point
    except RuntimeError as error:
        telemetry.bug(error)
    (line,) = lines()
    chain = line["exception"]
    assert isinstance(chain, list)
    last, middle, first = chain
    assert last.startswith("RuntimeError (test_log_lines.py:")
    assert middle.startswith(f"TargetUnavailableError: no answer for {HIDDEN} (")
    assert first.startswith("ValueError (")
    assert "text of a row" not in json.dumps(line)
    assert "secret" not in json.dumps(line)


@pytest.mark.rule("SE-01")
@pytest.mark.parametrize("as_json", [False, True])
def test_what_a_terminal_shows_holds_no_secret_either(
    capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    address = "http://me:secret@host"
    error = TargetUnavailableError(f"{address} does not answer", hint=f"See {address}.")
    show_error(error, as_json=as_json)
    report = TerminalReport()
    report.retrying(error)
    report.warn(f"{address} is slow")
    shown = "".join(capsys.readouterr())
    assert "secret" not in shown
    assert shown.count(f"http://{HIDDEN}@host") == 4


@pytest.mark.rule("OP-06")
def test_the_same_error_is_said_at_once_and_then_once_a_minute_with_its_number(
    lines: Lines, clock: Clock
) -> None:
    for second in range(150):
        clock.now = 100.0 + second
        telemetry.failed(TargetUnavailableError(f"no answer (tried {second} times)"))
    assert [line.get("repeated") for line in lines()] == [None, 59, 59]


@pytest.mark.rule("OP-06")
def test_what_is_no_repetition_is_said(lines: Lines) -> None:
    telemetry.failed(TargetUnavailableError("no answer"))
    telemetry.failed(TargetUnavailableError("another answer"))
    telemetry.failed(EmbedderUnavailableError("no answer"))
    telemetry.retrying(TargetUnavailableError("no answer"))
    assert len(lines()) == 4


@pytest.mark.rule("OP-06")
def test_what_was_held_back_last_is_said_when_its_minute_is_over(
    lines: Lines, clock: Clock, flood: Flood
) -> None:
    for _ in range(3):
        telemetry.failed(TargetUnavailableError("no answer"))
    telemetry.summarise(flood)
    assert len(lines()) == 1
    clock.now += 60
    telemetry.summarise(flood)
    telemetry.summarise(flood)
    *_, summary = lines()
    assert len(lines()) == 2
    assert (summary["event"], summary["what"], summary["repeated"]) == ("repeated", "failed", 2)


def test_a_flood_of_different_errors_fills_no_memory(lines: Lines, flood: Flood) -> None:
    for number in range(1000):
        telemetry.warn("a" * number)
    assert len(flood._kinds) == 256  # noqa: SLF001 - it has no other outside


def test_what_libraries_log_becomes_an_event_without_its_arguments(lines: Lines) -> None:
    telemetry.capture_logging()
    telemetry.capture_logging()
    logging.getLogger("qdrant_client").warning("could not send %s", "the text of a row")
    logging.getLogger("apscheduler.scheduler").warning("Run time of job %s was missed", "sync")
    logging.getLogger("httpx").info("HTTP Request: GET http://localhost")
    first, second = lines()
    assert (first["logger"], first["message"]) == ("qdrant_client", "could not send %s")
    assert second["message"] == "Run time of job sync was missed"
    assert second["level"] == "warning"
