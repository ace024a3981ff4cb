"""An OpenAI-compatible embedding server on loopback that misbehaves on command."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

DIMENSION = 8
HELD = 30.0  # seconds, should a test never end


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: its headers in lower case, its JSON, and the port it came from."""

    headers: Mapping[str, str]
    body: dict[str, Any]
    port: int

    @property
    def texts(self) -> list[str]:
        """The texts to be embedded."""
        texts: list[str] = self.body["input"]
        return texts


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back; `cut` closes the connection after so many bytes of the body.

    `mute` sends nothing that helps: it closes the connection ("close"), holds it until the test is
    over ("hold"), or sends a blank now and then for as long ("trickle").
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    mute: str = ""


Way = Callable[[Asked], Answer]
"""How a request is answered."""


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return a text's vector: of length one, and the same on every machine."""
    chance = random.Random(hashlib.sha256(text.encode()).digest())  # noqa: S311 - no secret
    numbers = [chance.uniform(-1, 1) for _ in range(dimension)]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


def items(asked: Asked) -> list[dict[str, object]]:
    """Return the right items for a request."""
    dimension = asked.body.get("dimensions", DIMENSION)
    return [
        {"object": "embedding", "index": index, "embedding": vector(text, dimension)}
        for index, text in enumerate(asked.texts)
    ]


def embeddings(found: Sequence[object]) -> Answer:
    """Return an answer that holds these items."""
    return Answer(json.dumps({"object": "list", "data": list(found)}).encode())


def right(asked: Asked) -> Answer:
    """Answer as one should."""
    return embeddings(items(asked))


def complaint(status: int, message: str = "no", **headers: str) -> Way:
    """Answer with an error in OpenAI's form, and with `headers`."""
    body = json.dumps({"error": {"message": message, "type": "t", "code": None}}).encode()
    return lambda _: Answer(body, status, named(headers))


def named(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers whose names were written as Python's names."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def packed(asked: Asked) -> Answer:
    """Answer as one should, gzipped."""
    return Answer(gzip.compress(right(asked).body), headers={"Content-Encoding": "gzip"})


def shuffled(asked: Asked) -> Answer:
    """Answer with the last item first."""
    return embeddings(items(asked)[::-1])


def without_index(asked: Asked) -> Answer:
    """Answer without saying which item is whose."""
    return embeddings([{"embedding": item["embedding"]} for item in items(asked)])


def with_indices(change: Callable[[int], object]) -> Way:
    """Answer with other indices: `change` gets the right one."""
    return lambda asked: embeddings(
        [{**item, "index": change(place)} for place, item in enumerate(items(asked))]
    )


def with_vectors(change: Callable[[list[float]], object]) -> Way:
    """Answer with other vectors: `change` gets one."""
    return lambda asked: embeddings(
        [{**item, "embedding": change(vector("x"))} for item in items(asked)]
    )


def only(keep: slice) -> Way:
    """Answer with some of the items."""
    return lambda asked: embeddings(items(asked)[keep])


def doubled(asked: Asked) -> Answer:
    """Answer with every item twice."""
    return embeddings(items(asked) * 2)


def said(body: bytes | str, status: int = 200, **headers: str) -> Way:
    """Answer with these bytes."""
    data = body if isinstance(body, bytes) else body.encode()
    return lambda _: Answer(data, status, named(headers))


BAD: dict[str, Way] = {
    "a duplicate index": with_indices(lambda place: max(place, 1)),
    "an index out of range": with_indices(lambda place: place + 1),
    "an index on some": with_indices(lambda place: place or None),
    "an index that is a text": with_indices(str),
    "a missing item": only(slice(1, None)),
    "no items": only(slice(0)),
    "extra items": doubled,
    "another dimension": with_vectors(lambda vector: vector[1:]),
    "an empty vector": with_vectors(lambda _: []),
    "a vector of texts": with_vectors(lambda vector: [str(number) for number in vector]),
    "a vector in base64": with_vectors(lambda _: "AAAA"),
    "a vector of vectors": with_vectors(lambda vector: [vector]),
    "ragged vectors": with_vectors(lambda vector: [vector, 1.0]),
    "HTML": said("<html><body>Welcome</body></html>"),
    "truncated JSON": lambda asked: Answer(right(asked).body[:-9]),
    "deep JSON": said("[" * 100_000),
    "an error in a 200": said('{"error": {"message": "overloaded"}}'),
    "gzip that is none": said(b"no gzip", content_encoding="gzip"),
    "too much": lambda asked: Answer(right(asked).body + b" " * (2**20 + 10 * DIMENSION * 64)),
}
PASSING: dict[str, Way] = {
    "429": complaint(429),
    "500": complaint(500),
    "502 in HTML": said("<html>Bad gateway</html>", 502),
    "503": complaint(503),
    "408": complaint(408),
    "a connection closed at once": lambda _: Answer(mute="close"),
    "a connection closed within the answer": lambda asked: Answer(right(asked).body, cut=99),
}


class EmbeddingServer:
    """Answers requests, each in the next of the ways it was told, afterwards in its usual one."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.usual: Way = right
        self.most_at_once = 0
        self._ways: deque[Way] = deque()
        self._at_once = 0
        self._lock = Lock()
        self._closing = Event()
        self._http = _Server(self)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def next(self, *ways: Way) -> None:
        """Answer the next requests in these ways."""
        self._ways.extend(ways)

    def answer(self, asked: Asked) -> Answer:
        """Return the answer to a request, and count how many are answered at the same time."""
        with self._lock:
            self.asked.append(asked)
            way = self._ways.popleft() if self._ways else self.usual
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return way(asked)
        finally:
            with self._lock:
                self._at_once -= 1

    def hold(self, seconds: float = HELD) -> bool:
        """Wait until the server is closed; return whether it is."""
        return self._closing.wait(seconds)

    @contextmanager
    def running(self) -> Iterator[EmbeddingServer]:
        """Serve while the block runs."""
        thread = Thread(target=self._http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._closing.set()
            self._http.shutdown()
            thread.join()
            self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: EmbeddingServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: in two, the client's acknowledgement is late
    server: _Server

    def do_POST(self) -> None:
        """Answer a request for embeddings."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(headers, body, self.client_address[1])
        is_known = self.path.partition("?")[0] == "/v1/embeddings"
        way = self.server.owner.answer if is_known else complaint(404, "no such path")
        self._send(way(asked))

    def _send(self, answer: Answer) -> None:
        if answer.mute:
            self.close_connection = True
            if answer.mute == "hold":
                self.server.owner.hold()
            elif answer.mute == "trickle":
                self._trickle()
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut])
        self.close_connection = self.close_connection or answer.cut is not None

    def _trickle(self) -> None:
        """Send blanks until the client has had enough."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n")
        with suppress(ConnectionError):
            while not self.server.owner.hold(0.01):
                self.wfile.write(b" ")
                self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing."""
