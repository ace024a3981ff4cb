"""SIGTERM and SIGINT to ``syncer run``, in whatever it is doing; and two of them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from daemons import Daemon, running, write_settings
from embedding_server import Answer, Asked, EmbeddingServer, right
from qdrant_http import started
from qdrant_http.program import Program

from syncer import lock
from syncer.state import StateStore

ROWS = 60
SIGNALS = [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
SLOW_READS = {"kind": "slow", "seconds": 60, "times": None, "method": "POST", "path": "*/scroll"}
SLOW_WRITES = {"kind": "slow", "seconds": 0.5, "times": None, "method": "PUT", "path": "*/points"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A Qdrant server in a process of its own."""
    with started(tmp_path_factory.mktemp("qdrant") / "storage") as program:
        yield program


@pytest.fixture
def endpoint() -> Iterator[EmbeddingServer]:
    """An embedding endpoint."""
    with EmbeddingServer().running() as found:
        yield found


def slowly(seconds: float) -> Callable[[Asked], Answer]:
    """Answer as one should, after so many seconds."""

    def answer(asked: Asked) -> Answer:
        time.sleep(seconds)
        return right(asked)

    return answer


def make(folder: Path, url: str, alias: str, more: str = "") -> None:
    """Make a memory of some rows and its settings."""
    memory.make_memory(folder, [f"memory {number}" for number in range(ROWS)])
    write_settings(folder, url, alias, "[sync]\nwindow_rows = 5\n" + more)


def embedding_at(endpoint: EmbeddingServer) -> str:
    """Return the settings for an endpoint."""
    return (
        f'[embed]\nprovider = "openai"\nurl = "{endpoint.url}"\nmodel = "m"\n'
        "dimension = 8\nchunk_tokens = 100\n"
    )


def slowed(server: Program, alias: str, method: str) -> int:
    """Return how many requests of this kind were slowed down."""
    happened = server.faults()["happened"]
    return sum(one["method"] == method and alias in str(one["path"]) for one in happened)


def ends_well(folder: Path, daemon: Daemon, number: signal.Signals) -> None:
    """Send the signal; see how it ends, that nothing stays locked, and that all follows."""
    assert daemon.end(number) == {signal.SIGTERM: 143, signal.SIGINT: 130}[number], daemon.lines
    for path in folder.glob("*.lock"):
        with lock.held(path, "it"):
            pass
    assert [one for one in daemon.log if one["event"] == "failed" and one["exit_code"] == 1] == []


def all_follows(folder: Path, url: str, alias: str, **options: object) -> None:
    """Assert that the next run goes on where the daemon was, and that no row is missing then."""
    settings = wire.settings(folder, url, **{"target.collection": alias, **options})
    code, told = wire.once(settings)
    assert code == 0, told.error
    assert len(wire.documents(settings)) == ROWS


@pytest.mark.rule("SC-05")
@pytest.mark.parametrize("number", SIGNALS)
def test_it_ends_while_it_waits_after_a_failure(
    tmp_path: Path, server: Program, number: signal.Signals
) -> None:
    make(tmp_path, server.url, "waiting")
    with running(tmp_path, environment={"SYNCER_TARGET__URL": "http://127.0.0.1:9"}) as daemon:
        daemon.wait_for('"failed"')
        ends_well(tmp_path, daemon, number)


@pytest.mark.rule("SC-05")
def test_it_ends_out_of_a_sleep_before_another_try(tmp_path: Path, server: Program) -> None:
    make(tmp_path, server.url, "sleeping", "[target]\nretry_budget = 3600\n")
    with running(tmp_path, environment={"SYNCER_TARGET__URL": "http://127.0.0.1:9"}) as daemon:
        daemon.wait_for('"trying again"')
        ends_well(tmp_path, daemon, signal.SIGTERM)


@pytest.mark.rule("SC-05")
@pytest.mark.parametrize("number", SIGNALS)
def test_it_ends_while_it_loads(tmp_path: Path, server: Program, number: signal.Signals) -> None:
    alias = f"loading-{number.name}"
    make(tmp_path, server.url, alias)
    with running(tmp_path) as daemon:
        daemon.wait_for("syncer runs for")  # the client's import is next
        ends_well(tmp_path, daemon, number)
    all_follows(tmp_path, server.url, alias)


@pytest.mark.rule("SC-05")
@pytest.mark.parametrize("number", SIGNALS)
def test_it_ends_at_once_while_the_model_is_loaded(
    tmp_path: Path, server: Program, endpoint: EmbeddingServer, number: signal.Signals
) -> None:
    long = "batch_timeout = 600\ntimeout = 300\n[daemon]\nshutdown_timeout = 80\n"
    make(tmp_path, server.url, f"model-{number.name}", embedding_at(endpoint) + long)
    endpoint.usual = lambda _: Answer(mute="hold")
    with running(tmp_path) as daemon:
        daemon.until(lambda: len(endpoint.asked) > 0, "the canary is asked for")
        ends_well(tmp_path, daemon, number)
    with closing(StateStore(tmp_path / "memory.db")) as store:
        assert store.generations(f"model-{number.name}") == []


@pytest.mark.rule("SC-05")
@pytest.mark.parametrize("number", SIGNALS)
def test_it_ends_while_it_compares(tmp_path: Path, server: Program, number: signal.Signals) -> None:
    alias = f"comparing-{number.name}"
    make(tmp_path, server.url, alias, "[daemon]\nverify_interval = 1\nshutdown_timeout = 80\n")
    all_follows(tmp_path, server.url, alias)
    server.faults(SLOW_READS)
    with running(tmp_path) as daemon:
        daemon.until(lambda: slowed(server, alias, "POST") > 0, "it compares")
        ends_well(tmp_path, daemon, number)
    server.clear_faults()
    with closing(StateStore(tmp_path / "memory.db")) as store:
        (known,) = store.generations(alias)
        assert store.verified(known.generation) is None
    all_follows(tmp_path, server.url, alias)


def rebuilds(folder: Path, server: Program, alias: str) -> None:
    """Make a memory whose daemon has a rebuild before it, of slow windows."""
    make(folder, server.url, alias)
    all_follows(folder, server.url, alias)
    more = '[embed]\ndimension = 16\n[daemon]\non_recipe_change = "rebuild"\n'
    write_settings(folder, server.url, alias, "[sync]\nwindow_rows = 5\n" + more)
    server.faults(SLOW_WRITES)


def the_rebuild_goes_on(folder: Path, server: Program, alias: str, green: str) -> None:
    """Assert that the next daemon goes on with the rebuild and ends it, and that all is there."""
    with running(folder) as daemon:
        daemon.until(daemon.is_ready, "the rebuild is done")
        windows = [one for one in daemon.log if one["event"] == "window"]
        assert daemon.end() == 143
    settings = wire.settings(folder, server.url, **{"target.collection": alias})
    assert len(wire.documents(settings)) == ROWS
    assert {one["generation"] for one in windows} == {green}
    assert sum(int(str(one["read"])) for one in windows) < 2 * ROWS
    with closing(StateStore(folder / "memory.db")) as store:
        (serving,) = [each for each in store.generations(alias) if each.serving]
    assert serving.generation == green


def green_of(folder: Path, alias: str) -> str:
    """Return the one generation that is being built, of which some rows are in."""
    with closing(StateStore(folder / "memory.db")) as store:
        (green,) = [each for each in store.generations(alias) if each.phase.is_green]
    assert green.position.last_id is not None
    assert 0 < int(green.position.last_id) < ROWS
    return green.generation


@pytest.mark.rule("SC-05")
@pytest.mark.parametrize("number", SIGNALS)
def test_it_ends_in_a_rebuild_of_its_own_between_two_windows(
    tmp_path: Path, server: Program, number: signal.Signals
) -> None:
    alias = f"rebuilding-{number.name}"
    rebuilds(tmp_path, server, alias)
    with running(tmp_path) as daemon:
        daemon.wait_for('"window"')
        ends_well(tmp_path, daemon, number)
    server.clear_faults()
    the_rebuild_goes_on(tmp_path, server, alias, green_of(tmp_path, alias))


@pytest.mark.rule("SC-05")
def test_a_second_signal_ends_a_rebuild_at_once(tmp_path: Path, server: Program) -> None:
    alias = "rebuilding-twice"
    rebuilds(tmp_path, server, alias)
    with running(tmp_path) as daemon:
        daemon.wait_for('"window"')
        server.clear_faults()
        before = slowed(server, alias, "PUT")
        server.faults({**SLOW_WRITES, "seconds": 600})
        daemon.until(lambda: slowed(server, alias, "PUT") > before, "it writes")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.until(lambda: _has_no_handler(daemon), "the first signal is taken")
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.ended() == -signal.SIGINT
    server.kill()
    server.start()
    the_rebuild_goes_on(tmp_path, server, alias, green_of(tmp_path, alias))


@pytest.mark.rule("SC-05")
def test_the_window_that_is_being_written_is_finished(tmp_path: Path, server: Program) -> None:
    make(tmp_path, server.url, "writing")
    server.faults(SLOW_WRITES)
    with running(tmp_path) as daemon:
        daemon.wait_for('"window"')
        ends_well(tmp_path, daemon, signal.SIGTERM)
    server.clear_faults()
    windows = sum(one["event"] == "window" for one in daemon.log)
    settings = wire.settings(tmp_path, server.url, **{"target.collection": "writing"})
    with closing(StateStore(tmp_path / "memory.db")) as store:
        (known,) = store.generations("writing")
    assert known.position.last_id == str(5 * windows)
    assert len(wire.documents(settings)) == 5 * windows < ROWS
    all_follows(tmp_path, server.url, "writing")


@pytest.mark.rule("SC-05")
def test_a_long_embedding_is_waited_for(
    tmp_path: Path, server: Program, endpoint: EmbeddingServer
) -> None:
    make(tmp_path, server.url, "embedding", embedding_at(endpoint))
    with running(tmp_path) as daemon:
        daemon.until(lambda: len(endpoint.asked) > 0, "the canary is asked for")
        endpoint.usual = slowly(1.0)
        asked = len(endpoint.asked)
        daemon.until(lambda: len(endpoint.asked) > asked + 1, "it embeds")
        ends_well(tmp_path, daemon, signal.SIGTERM)
    with closing(StateStore(tmp_path / "memory.db")) as store:
        (known,) = store.generations("embedding")
    assert known.position.last_id is not None
    assert 0 < int(known.position.last_id) < ROWS


@pytest.mark.rule("SC-05")
def test_what_takes_longer_than_the_time_for_it_is_left_to_the_next_start(
    tmp_path: Path, server: Program, endpoint: EmbeddingServer
) -> None:
    more = embedding_at(endpoint) + "batch_timeout = 600\ntimeout = 300\n"
    make(tmp_path, server.url, "stuck", more + "[daemon]\nshutdown_timeout = 1\n")
    with running(tmp_path) as daemon:
        daemon.until(lambda: len(endpoint.asked) > 0, "the canary is asked for")
        endpoint.usual = lambda _: Answer(mute="hold")
        asked = len(endpoint.asked)
        daemon.until(lambda: len(endpoint.asked) > asked, "it embeds")
        ends_well(tmp_path, daemon, signal.SIGTERM)
        endpoint.usual = right
    with running(tmp_path) as daemon:
        daemon.until(daemon.is_ready, "the next start is well")
        daemon.until(lambda: daemon.metric("syncer_lag_rows") == 0, "all is in")


@pytest.mark.rule("SC-05")
def test_a_second_signal_ends_it_at_once_and_the_next_start_is_well(
    tmp_path: Path, server: Program
) -> None:
    make(tmp_path, server.url, "twice")
    server.faults({**SLOW_WRITES, "seconds": 600})
    with running(tmp_path) as daemon:
        daemon.until(lambda: bool(server.faults()["happened"]), "it writes")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.until(lambda: _has_no_handler(daemon), "the first signal is taken")
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.ended() == -signal.SIGTERM
    server.kill()
    server.start()
    all_follows(tmp_path, server.url, "twice")


def _has_no_handler(daemon: Daemon) -> bool:
    """Say whether SIGTERM ends the process by itself again."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return not int(caught, 16) >> (signal.SIGTERM - 1) & 1
