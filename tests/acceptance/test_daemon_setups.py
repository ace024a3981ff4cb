"""``syncer run`` in local mode, under systemd, or at an endpoint that refuses the key."""

from __future__ import annotations

import configparser
import os
import shlex
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import memory
import pytest
from commands import run as command
from daemons import Daemon, running, write_settings
from embedding_server import Asked, EmbeddingServer, complaint, right

KEY = "sk-never-to-be-seen-anywhere"
LOCAL = '[target]\nurl = \npath = "qdrant"\nlock_wait = 0\n'
UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "syncer@.service"


@pytest.fixture
def endpoint() -> Iterator[EmbeddingServer]:
    """An embedding endpoint."""
    with EmbeddingServer().running() as found:
        yield found


def at_endpoint(endpoint: EmbeddingServer) -> str:
    """Return the settings for an endpoint."""
    return (
        f'[embed]\nprovider = "openai"\nurl = "{endpoint.url}"\nmodel = "m"\n'
        "dimension = 8\nchunk_tokens = 100\n"
    )


def make(folder: Path, more: str = "", rows: int = 3) -> Path:
    """Make a memory in local mode; return its settings file."""
    memory.make_memory(folder, [f"memory {number}" for number in range(rows)])
    return write_settings(folder, "", more=LOCAL + more)


def test_in_local_mode_it_has_the_folder_to_itself_and_rebuilds_by_itself(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        more = f'[metrics]\nlisten = "{address}"\nport_in_use = "warn"\n'
        config = make(tmp_path, more)
        with running(tmp_path) as daemon:
            daemon.wait_for('"event": "run"')
            assert daemon.says(address)
            has_the_folder_to_itself(tmp_path, daemon)
            text = config.read_text().replace("dimension = 8", "dimension = 16")
            config.write_text(f'{text}\non_recipe_change = "rebuild"\n')
            memory.execute(tmp_path / "memory.db", "UPDATE memory_events SET agent = 'b'")
            daemon.wait_for("memory is memory--")
            assert daemon.end() == 143
    assert command("search", "memory 1", cwd=tmp_path).code == 0
    done = command("verify", "--json", cwd=tmp_path)
    assert done.code == 0, done


def has_the_folder_to_itself(folder: Path, daemon: Daemon) -> None:
    """Assert that others are told who has the local folder, and what to do for a rebuild."""
    for words in (("search", "memory 1"), ("rebuild",)):
        done = command(*words, cwd=folder)
        assert done.code == 8
        assert str(daemon.process.pid) in done.err
    assert 'daemon.on_recipe_change = "rebuild"' in str(done.log[-1]["hint"])
    assert command("status", cwd=folder).code == 0


@pytest.mark.rule("EM-14")
def test_an_endpoint_that_refuses_the_key_is_left_alone_until_something_changes(
    tmp_path: Path, endpoint: EmbeddingServer
) -> None:
    endpoint.usual = complaint(401, f"Incorrect API key provided: {KEY}")
    config = make(tmp_path, at_endpoint(endpoint))
    (tmp_path / "key").write_text(KEY)
    environment = {"SYNCER_EMBED__API_KEY_FILE": str(tmp_path / "key")}
    with running(tmp_path, environment=environment) as daemon:
        daemon.wait_for('"failed"')
        asked = len(endpoint.asked)
        assert 1 <= asked <= 2
        memory.execute(tmp_path / "memory.db", "UPDATE memory_events SET agent = 'b'")
        skipped = daemon.metric('syncer_skipped_ticks_total{why="busy"}')
        daemon.until(
            lambda: daemon.metric('syncer_skipped_ticks_total{why="busy"}') >= skipped + 2,
            "two ticks have passed it by",
        )
        assert len(endpoint.asked) == asked
        assert daemon.metric("syncer_quarantined_rows") == 0
        endpoint.usual = right
        config.write_text(config.read_text() + "\n# the key was mended\n")
        daemon.until(daemon.is_ready, "it is ready")
        shown = "\n".join([*daemon.lines, daemon.get("/metrics").text, daemon.get("/").text])
        assert KEY not in shown
        assert daemon.end() == 143


@contextmanager
def manager() -> Iterator[tuple[str, list[str]]]:
    """Be the service manager: give its address, and what the service has told so far."""
    told: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0syncer-test-" + os.urandom(8).hex())
        name = listening.getsockname().decode()

        def listen() -> None:
            while (message := listening.recv(4096).decode()) != "END":
                told.append(message)

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield "@" + name[1:], told
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
                last.sendto(b"END", name)
            thread.join()


def words_of_the_unit(config: Path) -> list[str]:
    """Return what the shipped unit starts, after the program's name, for these settings."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read_string(UNIT.read_text())
    assert unit["Service"]["Type"] == "notify"
    words = shlex.split(unit["Service"]["ExecStart"])
    return [word.replace("/etc/syncer/%i.toml", str(config)) for word in words[1:]]


def test_the_unit_starts_it_and_the_watchdog_is_fed_through_a_long_embedding(
    tmp_path: Path, endpoint: EmbeddingServer
) -> None:
    config = make(tmp_path, at_endpoint(endpoint))
    go_on = threading.Event()
    held: list[Asked] = []

    def hold(asked: Asked) -> object:
        if len(asked.texts) == 3:
            held.append(asked)
            go_on.wait(60)
        return right(asked)

    endpoint.usual = hold  # type: ignore[assignment]
    (tmp_path / "qdrant.key").write_text("unit-key")
    with manager() as (address, told):
        environment = {
            "NOTIFY_SOCKET": address,
            "WATCHDOG_USEC": "600000",
            "SYNCER_TARGET__API_KEY_FILE": str(tmp_path / "qdrant.key"),
        }
        words = ("-m", "syncer", *words_of_the_unit(config))
        with running(tmp_path, command=words, environment=environment) as daemon:
            daemon.until(lambda: bool(held), "it embeds")
            fed = told.count("WATCHDOG=1")
            daemon.until(lambda: told.count("WATCHDOG=1") >= fed + 3, "the watchdog is fed")
            go_on.set()
            daemon.until(lambda: "STATUS=in step" in told, "it says that all is in")
            assert daemon.end() == 143
    assert told.index("READY=1") < told.index("STATUS=in step")
    assert told[-1] == "STOPPING=1"
