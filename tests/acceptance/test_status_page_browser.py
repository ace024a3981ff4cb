"""The status page in a browser: it is drawn, fits a phone, is light or dark, and asks nobody."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaged_tools import ran
from status_pages import pages

from syncer.web import WebServer

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-default-apps", "--disable-extensions", "--no-pings", "--no-proxy-server",
    "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
DARK = "--blink-settings=preferredColorScheme=0"
PHONE = "--window-size=390,1800"


@pytest.fixture
def server() -> Iterator[WebServer]:
    """A server that shows the page."""
    found = WebServer("127.0.0.1:0", pages())
    found.start()
    yield found
    found.stop()


def browse(server: WebServer, folder: Path, *arguments: str) -> str:
    """Let the browser load the page; return what it prints."""
    profile = f"--user-data-dir={folder / 'profile'}"
    done = ran("chromium", *QUIET, profile, *arguments, f"http://{server.address}/")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def requests_of_the_page(log: Path) -> list[str]:
    """Return what the page asked for; what the browser asks for of itself has another origin."""
    written = json.loads(log.read_text())
    begun = written["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    events = (event for event in written["events"] if event["type"] == begun)
    asked = (event["params"] for event in events if "params" in event)  # those that end have none
    return [
        one["url"]
        for one in asked
        if "http://127.0.0.1" in f"{one.get('initiator')} {one.get('network_isolation_key')}"
    ]


def corner(image: Path) -> tuple[int, int, int]:
    """Return the colour of a PNG's first pixel: its first row has a filter that leaves it alone."""
    data = image.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    packed, place = b"", 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        if data[place + 4 : place + 8] == b"IDAT":
            packed += data[place + 8 : place + 8 + length]
        place += length + 12
    red, green, blue = zlib.decompress(packed)[1:4]
    return red, green, blue


def test_the_page_is_drawn_and_no_request_leaves_it(server: WebServer, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    document = browse(server, tmp_path, "--dump-dom", f"--log-net-log={log}")
    assert "12,840 rows behind" in document
    assert document.count("<svg") == 2
    assert requests_of_the_page(log) == [f"http://{server.address}/"]


def test_the_page_is_light_or_dark_as_its_reader_likes(server: WebServer, tmp_path: Path) -> None:
    light, dark = tmp_path / "light.png", tmp_path / "dark.png"
    browse(server, tmp_path, PHONE, f"--screenshot={light}")
    browse(server, tmp_path, PHONE, DARK, f"--screenshot={dark}")
    assert min(corner(light)) > 200
    assert max(corner(dark)) < 60
