"""Asks an OpenAI-compatible endpoint for vectors, again where that makes sense."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Sequence
from threading import Event

import httpx

from syncer.embed.checks import Rows
from syncer.embed.http_answers import BadAnswerError, read_rows
from syncer.embed.http_faults import PassingError, TextsRefusedError, answered, failed
from syncer.embed.http_spec import MAX_DIMENSION, HttpSpec
from syncer.embed.redaction import redacted
from syncer.errors import EmbedderUnavailableError, SettingsError
from syncer.redaction import shortened

_FIRST_WAIT = 0.5  # seconds
_LONGEST_WAIT = 10.0  # seconds, where the endpoint does not ask for more
_TRIES_IN_DOUBT = 4  # then the texts may be at fault
_NUMBER = 64  # bytes; a number in JSON takes at most 25, and blanks around it
_FRAME = 2**20  # bytes of an answer around its vectors
_LONGEST_COMPLAINT = 65_536  # bytes of an answer that is no vectors
_SNIPPET = 300  # bytes of an answer that is not what it should be

Sleep = Callable[[float], None]


class Endpoint:
    """One endpoint, its connections kept open; several threads may ask at once.

    `sleep` waits for so many seconds. A proxy of the environment is used, but not for loopback.
    Raises SettingsError for an address that is none.
    """

    def __init__(self, spec: HttpSpec, sleep: Sleep = time.sleep) -> None:
        self._spec = spec
        self._sleep = sleep
        try:
            self._url = httpx.URL(spec.address)
            self._url.host  # noqa: B018 - fails for a name that IDNA cannot decode
        except (httpx.InvalidURL, UnicodeError):
            raise SettingsError("embed.url is no address that can be asked") from None
        at_once = spec.concurrency + 1  # a question may come in while texts are embedded
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if spec.api_key:
            headers["Authorization"] = f"Bearer {spec.api_key}"
        self._client = httpx.Client(
            headers=headers,
            timeout=spec.timeout,
            limits=httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once),
            follow_redirects=False,
            trust_env=not spec.is_loopback,
        )

    def ask(
        self,
        texts: Sequence[str],
        dimension: int | None,
        *,
        prefix: str = "",
        probe: str | None = None,
        stop: Event | None = None,
    ) -> Rows:
        """Return the vectors of `texts`, each sent with `prefix`, in their order.

        `dimension` None takes what comes. `probe` is a text that the endpoint is known to take:
        where an error is about the texts or the endpoint, it decides. After `stop` nothing is
        tried again. Raises TextsRefusedError, EmbedderUnavailableError when the budget for trying
        again is used up, and EmbedderError for what does not pass by itself.
        """
        spent = 0.0  # counted, not looked up: the end does not depend on who sleeps
        for tries in itertools.count(1):
            started = time.monotonic()
            try:
                return self._once(texts, dimension, prefix)
            except PassingError as error:
                fault = error
            spent += time.monotonic() - started
            in_doubt = fault.is_about_texts and tries == _TRIES_IN_DOUBT
            if in_doubt and probe is not None and self._takes(probe, dimension):
                raise TextsRefusedError(fault.what)
            if spent >= self._spec.budget or (stop is not None and stop.is_set()):
                raise self._unavailable(fault, tries, spent)
            wait = min(fault.wait or _backoff(tries), self._spec.budget - spent)
            self._sleep(wait)
            spent += wait
        raise AssertionError

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _takes(self, probe: str, dimension: int | None) -> bool:
        try:
            self._once([probe], dimension, "")
        except (PassingError, TextsRefusedError):
            return False
        return True

    def _once(self, texts: Sequence[str], dimension: int | None, prefix: str) -> Rows:
        body = _body(self._spec, [prefix + text for text in texts])
        most = _FRAME + len(texts) * (dimension or MAX_DIMENSION) * _NUMBER
        try:
            with self._client.stream("POST", self._url, content=body) as response:
                if response.status_code != httpx.codes.OK:
                    said, _ = self._read(response, _LONGEST_COMPLAINT)
                    status = response.status_code
                    raise answered(self._spec, status, response.headers, said, texts)
                said, is_whole = self._read(response, most)
        except httpx.HTTPError as error:
            raise failed(self._spec, error, texts) from None
        if not is_whole:
            raise PassingError(f"the answer is larger than {most} bytes", is_about_texts=True)
        try:
            return read_rows(said, len(texts), dimension)
        except BadAnswerError as error:
            raise self._bad_answer(error, said, texts) from None

    def _read(self, response: httpx.Response, most: int) -> tuple[bytes, bool]:
        """Return at most `most` bytes of the answer, unpacked, and whether that is all of it.

        The timeout of the client is one of each read: an answer that trickles has to end too.
        """
        end = time.monotonic() + self._spec.timeout
        data = bytearray()
        for piece in response.iter_bytes():
            data += piece
            if len(data) > most:
                return bytes(data[:most]), False
            if time.monotonic() > end:
                raise httpx.ReadTimeout("")
        return bytes(data), True

    def _bad_answer(self, error: BadAnswerError, said: bytes, texts: Sequence[str]) -> PassingError:
        """Return what is wrong with an answer, with its beginning if that is no vector."""
        what = f"the answer cannot be used: {error}"
        if b'"embedding"' not in said:
            words = redacted(said[:_LONGEST_COMPLAINT], self._spec.secrets, texts)
            what += f": {shortened(words, _SNIPPET)}"
        return PassingError(what, is_about_texts=True)

    def _unavailable(
        self, fault: PassingError, tries: int, spent: float
    ) -> EmbedderUnavailableError:
        error = EmbedderUnavailableError(
            f"{self._spec.name} gives no vectors: {fault.what}",
            hint="Is the endpoint running, and is embed.url right? Nothing is lost; run again.",
        )
        error.note_tries(tries, spent)
        return error


def _body(spec: HttpSpec, texts: Sequence[str]) -> bytes:
    asked: dict[str, object] = {
        "model": spec.model,
        "input": list(texts),
        "encoding_format": "float",
    }
    if spec.dimension is not None:
        asked["dimensions"] = spec.dimension
    return json.dumps(asked, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _backoff(tries: int) -> float:
    """Return the seconds to wait after so many tries: exponential, and half of it by chance."""
    whole = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(tries - 1, 16))
    return whole / 2 + random.uniform(0, whole / 2)  # noqa: S311 - no secret hangs on it
