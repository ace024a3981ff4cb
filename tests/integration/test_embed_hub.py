"""Fetching a model, against a small hub on the loopback interface."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from syncer.embed import offline

MODEL = "BAAI/bge-small-en-v1.5"
REPOSITORY = "Qdrant/bge-small-en-v1.5-onnx-Q"
REVISION = "0123456789abcdef0123456789abcdef01234567"

PROGRAM = """
import sys
from pathlib import Path
from syncer.embed import EmbedSpec, build
from syncer.errors import EmbedderError
try:
    embedder = build(EmbedSpec(model=sys.argv[1], cache_dir=Path(sys.argv[2])), {})
except EmbedderError as error:
    print(error)
    sys.exit(error.exit_code)
print(len(embedder.query("a boat")))
"""


class Hub(ThreadingHTTPServer):
    """Serves `files` as one revision of one repository, and notes which were asked for."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.fetched: list[str] = []

    def tree(self) -> list[dict[str, object]]:
        """Return the files as the hub's API lists them."""
        return [
            {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
            for name, data in self.files.items()
        ]

    @property
    def url(self) -> str:
        """The hub's address."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers what the hub's client asks when it fetches a snapshot."""

    server: Hub

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""

    def do_HEAD(self) -> None:
        """Answer as GET does, without the content."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer with the list of files, or one of them."""
        name = self.path.rsplit("/", maxsplit=1)[-1]
        if self.path.startswith(f"/api/models/{REPOSITORY}/tree/"):
            self.answer(json.dumps(self.server.tree()).encode())
        elif self.path.startswith(f"/api/models/{REPOSITORY}"):
            siblings = [{"rfilename": file} for file in self.server.files]
            info = {"id": REPOSITORY, "sha": REVISION, "siblings": siblings}
            self.answer(json.dumps(info).encode())
        elif name in self.server.files:
            self.answer(self.server.files[name])
            if self.command == "GET":
                self.server.fetched.append(name)
        else:
            self.send_error(404)

    def answer(self, content: bytes) -> None:
        """Send `content` with the headers that the client needs."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    folder = offline.assemble(tmp_path / "source")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    files["model_optimized.onnx"] = files.pop("model.onnx")
    with Hub(files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def load(models: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    environment = {
        key: value for key, value in os.environ.items() if not key.upper().endswith("_PROXY")
    }
    environment |= {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, MODEL, str(models)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_a_model_is_fetched_once_and_quietly(tmp_path: Path, hub: Hub) -> None:
    first = load(tmp_path / "models", hub.url)
    fetched = len(hub.fetched)
    second = load(tmp_path / "models", hub.url)
    for done in (first, second):
        assert (done.returncode, done.stdout, done.stderr) == (0, "384\n", "")
    assert "model_optimized.onnx" in hub.fetched
    assert len(hub.fetched) == fetched


@pytest.mark.rule("EM-02")
def test_a_damaged_cached_model_is_fetched_once_more(tmp_path: Path, hub: Hub) -> None:
    load(tmp_path / "models", hub.url)
    (weights,) = (tmp_path / "models").rglob("model_optimized.onnx")
    weights.resolve().write_bytes(b"cut off")
    other = tmp_path / "models" / "models--somebody--else" / "blobs" / "weights"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"cut off too")
    hub.fetched.clear()
    done = load(tmp_path / "models", hub.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "384\n", "")
    assert hub.fetched.count("model_optimized.onnx") == 1
    assert other.read_bytes() == b"cut off too"


def test_a_hub_without_a_needed_file_is_refused_with_that_file(tmp_path: Path, hub: Hub) -> None:
    del hub.files["tokenizer.json"]
    done = load(tmp_path / "models", hub.url)
    assert (done.returncode, done.stderr) == (7, "")
    assert f"the hub's {REPOSITORY} does not have them" in done.stdout
    assert "missing: tokenizer.json\n" in done.stdout


def test_a_hub_that_cannot_be_reached_is_refused_with_the_files_that_are_missing(
    tmp_path: Path, hub: Hub
) -> None:
    hub.shutdown()
    hub.server_close()
    done = load(tmp_path / "models", hub.url)
    assert (done.returncode, done.stderr) == (7, "")
    assert f"fetching {REPOSITORY} failed" in done.stdout
    assert "missing: model_optimized.onnx, tokenizer.json, tokenizer_config.json\n" in done.stdout
