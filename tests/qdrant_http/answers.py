"""What goes back: results in the server's envelope, and refusals in its words."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic_core import to_json


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished answer, not yet sent."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


class RefusedError(Exception):
    """The server refuses the request, with a status and a sentence."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


def wrong_input(said: str) -> RefusedError:
    """Return the refusal of a request whose values do not fit the collection."""
    return RefusedError(400, f"Wrong input: {said}")


def bad_request(said: str) -> RefusedError:
    """Return the refusal of a request that is not allowed as it is."""
    return RefusedError(400, f"Bad request: {said}")


def not_found(said: str) -> RefusedError:
    """Return the refusal of a request for something that is not there."""
    return RefusedError(404, f"Not found: {said}")


def no_collection(name: str) -> RefusedError:
    """Return the refusal of a request to a collection that is not there."""
    return not_found(f"Collection `{name}` doesn't exist!")


def already_there(name: str) -> RefusedError:
    """Return the refusal of a name that a collection has."""
    return RefusedError(409, f"Wrong input: Collection `{name}` already exists!")


def malformed(said: str) -> RefusedError:
    """Return the refusal of a body that does not have the form it should have."""
    return RefusedError(400, f"Format error in JSON body: {said}")


def invalid(said: str, where: str = "JSON body") -> RefusedError:
    """Return the refusal of a request of the right form with values out of bounds."""
    return RefusedError(422, f"Validation error in {where}: [{said}]")


def internal(said: str) -> RefusedError:
    """Return the answer to a request that the server could not do."""
    return RefusedError(500, f"Service internal error: {said}")


def not_offered(what: str) -> RefusedError:
    """Return the answer to what a real server can do and this one cannot."""
    return RefusedError(501, f"The test server does not offer {what}")


def result(value: object, begun: float) -> Reply:
    """Return a result in its envelope; `begun` is a time of ``time.perf_counter``."""
    spent = time.perf_counter() - begun
    return Reply(200, to_json({"result": value, "status": "ok", "time": spent}))


def refusal(error: RefusedError, begun: float) -> Reply:
    """Return a refusal in its envelope."""
    return refused(error.status, error.said, time.perf_counter() - begun)


def refused(
    status: int, said: str, spent: float = 0.0, headers: Mapping[str, str] | None = None
) -> Reply:
    """Return a refusal in its envelope, made from its parts."""
    body = to_json({"status": {"error": said}, "time": spent})
    return Reply(status, body, headers or {})
