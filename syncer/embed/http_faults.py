"""What an endpoint's refusals and failures mean, in words that hold neither a key nor a text."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx

from syncer.embed.http_spec import HttpSpec
from syncer.embed.redaction import redacted
from syncer.errors import EmbedderError
from syncer.redaction import shortened

LONGEST_REASON = 200  # characters of a reason that is kept with a row

_REFUSED = frozenset({400, 413, 422})  # these texts, or too many of them
_PASSING = frozenset({408, 425, 429})  # and all from 500
_MOVED = range(300, 400)
_TRANSIENT_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)  # the connection was closed
_CHECK = "Check embed.url and embed.model."
_HINTS = {
    401: "The endpoint wants another API key: set embed.api_key_file or SYNCER_EMBED__API_KEY.",
    402: "The account behind the API key has to be paid for.",
    403: "The API key may not use this model: set another in embed.api_key_file or "
    "SYNCER_EMBED__API_KEY, or another embed.model.",
    404: "The path or the model is not there: check embed.url and embed.model.",
}


class TextsRefusedError(Exception):
    """The endpoint does not take these texts: one of them, or so many; says why."""

    @property
    def reason(self) -> str:
        """Why, short enough to be kept with a row."""
        words = str(self)
        return words if len(words) <= LONGEST_REASON else words[: LONGEST_REASON - 2] + " …"


@dataclass
class PassingError(Exception):
    """A failure that may pass by itself.

    `wait` is the number of seconds that the endpoint asks for. `is_about_texts` says that the
    texts may be at fault, should it not pass.
    """

    what: str
    wait: float = 0.0
    is_about_texts: bool = False


Fault = TextsRefusedError | PassingError | EmbedderError


def answered(
    spec: HttpSpec, status: int, headers: httpx.Headers, body: bytes, texts: Sequence[str]
) -> Fault:
    """Return what an answer means whose `status` is not 200; `body` may be cut off."""
    said = redacted(body, spec.secrets, texts)
    what = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    if status in _REFUSED:
        return TextsRefusedError(what)
    if status in _PASSING or status >= 500:  # noqa: PLR2004 - where HTTP's server errors begin
        # Ollama and others answer 500 to a text that their model chokes on.
        about_texts = status == httpx.codes.INTERNAL_SERVER_ERROR
        return PassingError(what, seconds_to_wait(headers), about_texts)
    if status in _MOVED:
        return _moved(spec, status, headers)
    return EmbedderError(f"{spec.name} answered {what}", hint=_HINTS.get(status, _CHECK))


def failed(spec: HttpSpec, error: httpx.HTTPError, texts: Sequence[str]) -> Fault:
    """Return what it means that a request got no answer, or only a part of one."""
    words = shortened(redacted(str(error), spec.secrets, texts), LONGEST_REASON)
    what = f"{type(error).__name__}: {words}" if words else type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return PassingError(f"no answer within {spec.timeout:g} s")
    if isinstance(error, httpx.DecodingError):
        return PassingError("the answer cannot be unpacked", is_about_texts=True)
    if _is_tls(error):
        return EmbedderError(
            f"{spec.name} cannot be trusted: {what}",
            hint="Check embed.url; SSL_CERT_FILE names the certificates of an authority of "
            "your own.",
        )
    return PassingError(what)


def seconds_to_wait(headers: httpx.Headers) -> float:
    """Return what a Retry-After asks for, by seconds or by date; 0 if it asks for nothing."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.now(UTC)).total_seconds())


def _moved(spec: HttpSpec, status: int, headers: httpx.Headers) -> EmbedderError:
    """Return the error of a redirect: followed, it would carry key and texts somewhere else."""
    try:
        parts = urlsplit(headers.get("location", ""))
        place = f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path
    except ValueError:
        place = ""
    place = redacted(place, spec.secrets, ()) or "nowhere"
    return EmbedderError(
        f"{spec.name} answered HTTP {status}, a redirect to {place}, which is not followed",
        hint="Set embed.url to the address that is meant, if you trust it.",
    )


def _is_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return not isinstance(cause, _TRANSIENT_TLS)
        cause = cause.__cause__ or cause.__context__
    return False
