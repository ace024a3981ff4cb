"""``syncer run`` as a process of its own, and what may happen to it while it runs.

One daemon serves the checks one after the other: each leaves everything as it was.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from commands import run as command
from daemons import Daemon, running, write_settings
from qdrant_http import started
from qdrant_http.program import Program

from syncer import lock
from syncer.cli.opening import lock_path
from syncer.errors import LockedError
from syncer.settings import Settings

FIRST = "the first memory"
COUNTED = {"kind": "slow", "seconds": 0, "times": None}  # a fault that does nothing is noted
INSERT = "INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', ?)"


@dataclass(frozen=True, slots=True)
class Site:
    """A memory, a Qdrant server in a process of its own, and a daemon between them."""

    folder: Path
    server: Program
    daemon: Daemon

    @property
    def database(self) -> Path:
        """The source."""
        return self.folder / "memory.db"

    @property
    def config(self) -> Path:
        """The settings file."""
        return self.folder / "syncer.toml"

    @property
    def settings(self) -> Settings:
        """What a test needs to look at the target."""
        return wire.settings(self.folder, self.server.url)

    def add(self, content: str) -> None:
        """Commit a row, as any application does."""
        memory.execute(self.database, INSERT, [content])

    def holds(self, content: str) -> bool:
        """Say whether readers find a text."""
        return content in wire.documents(self.settings).values()

    def arrives(self, content: str) -> None:
        """Wait until readers find a text."""
        self.daemon.until(lambda: self.holds(content), f"readers find {content!r}")

    def goes(self, content: str) -> None:
        """Wait until readers find a text no more."""
        self.daemon.until(lambda: not self.holds(content), f"readers lose {content!r}")

    def brings(self, content: str) -> None:
        """Commit a row and wait until readers find it: the daemon is well."""
        self.add(content)
        self.arrives(content)
        self.daemon.until(self.daemon.is_well, "it is healthy")

    def syncer(self, *words: str) -> tuple[int, str, str]:
        """Run a command beside the daemon."""
        done = command(*words, cwd=self.folder)
        return done.code, done.out, done.err

    @contextmanager
    def failing(self, kind: str, times: int = 1) -> Iterator[None]:
        """Wait, after the block, until so many runs have failed for this since it began.

        They are counted by a metric, since a log tells repeated ones once.
        """
        name = f'syncer_errors_total{{kind="{kind}"}}'
        before = self.daemon.metric(name)
        yield
        self.daemon.until(lambda: self.daemon.metric(name) >= before + times, f"{kind} failed")

    @contextmanager
    def without_database(self) -> Iterator[None]:
        """Take the database away, with what SQLite keeps beside it, and bring it back."""
        away = self.folder / "away"
        away.mkdir()
        files = [self.folder / f"memory.db{suffix}" for suffix in ("-wal", "-shm", "")]
        for file in files:
            if file.exists():
                file.rename(away / file.name)
        try:
            yield
        finally:
            for file in files:
                file.unlink(missing_ok=True)
                if (away / file.name).exists():
                    (away / file.name).rename(file)
            away.rmdir()

    def is_free(self) -> bool:
        """Say whether anybody may write now: no transaction is open, the alias is not locked."""
        try:
            with (
                closing(memory.write(self.database)) as connection,
                lock.held(lock_path(self.settings, "memory"), "the alias", named=False),
            ):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("ROLLBACK")
        except (LockedError, sqlite3.OperationalError):
            return False
        return True

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """Give a list that holds, after the block, what the target was asked."""
        asked: list[str] = []
        already = len(self.server.faults(COUNTED)["happened"])
        yield asked
        found = self.server.faults()["happened"][already:]
        asked.extend(f"{one['method']} {one['path']}" for one in found)
        self.clear()

    def clear(self) -> None:
        """Let the server do as it should again."""
        self.server.clear_faults()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server that can be killed and started again."""
    with started(tmp_path_factory.mktemp("qdrant") / "storage") as program:
        yield program


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, server: Program) -> Iterator[Site]:
    """A daemon that was started before its database and its target were there."""
    folder = tmp_path_factory.mktemp("memory")
    write_settings(folder, server.url)
    server.kill()
    with running(folder) as daemon:
        daemon.wait_for("SourceError")
        made = folder / "made"
        made.mkdir()
        memory.make_memory(made, [FIRST]).rename(folder / "memory.db")
        daemon.wait_for("TargetUnavailableError")
        ready_too_early = daemon.is_ready()
        server.start()
        daemon.until(daemon.is_ready, "it is ready")
        assert not ready_too_early
        yield Site(folder, server, daemon)


@pytest.mark.rule("SC-08")
def test_it_waits_for_source_and_target_and_is_ready_once_all_is_in(site: Site) -> None:
    assert site.holds(FIRST)
    assert site.daemon.metric("syncer_lag_rows") == 0


def test_a_row_that_another_process_commits_is_found_through_the_alias(site: Site) -> None:
    site.brings("a row of another process")


def test_neither_other_tables_nor_its_own_commits_make_it_ask_the_target(site: Site) -> None:
    site.brings("a row before the silence")
    memory.execute(site.database, "CREATE TABLE IF NOT EXISTS elsewhere (x)")
    with site.counted() as asked:
        runs = site.daemon.metric("syncer_last_run_timestamp_seconds")
        for number in range(20):
            memory.execute(site.database, "INSERT INTO elsewhere VALUES (?)", [number])
        site.daemon.until(
            lambda: site.daemon.metric("syncer_last_run_timestamp_seconds") > runs + 1.5,
            "two ticks are over",
        )
    assert asked == []
    memory.execute(site.database, "DROP TABLE elsewhere")


def test_an_expiry_wakes_it(site: Site) -> None:
    before = len(site.daemon.lines)
    soon = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+2 seconds')"
    memory.execute(site.database, INSERT, ["short-lived"])
    site.arrives("short-lived")
    memory.execute(
        site.database,
        f"UPDATE memory_events SET expires_at = {soon} WHERE content = 'short-lived'",
    )
    site.goes("short-lived")
    assert not site.daemon.says('"error"', before)


def test_commands_beside_it_answer(site: Site) -> None:
    assert site.syncer("once")[0] == 0
    code, out, _ = site.syncer("status", "--json")
    assert (code, json.loads(out)["pending"]) == (0, 0)
    assert site.syncer("quarantine", "list")[0] == 0
    code, out, err = site.syncer("verify", "--json")
    assert code == 0, (out, err)
    site.brings("a row after the commands")


@pytest.mark.rule("SC-05")
def test_a_second_daemon_ends_and_names_the_first(site: Site) -> None:
    code, _, err = site.syncer("run")
    assert code == 8
    assert str(site.daemon.process.pid) in err


@pytest.mark.rule("OP-01")
def test_a_port_that_is_taken_ends_it_with_the_address(site: Site, tmp_path: Path) -> None:
    memory.make_memory(tmp_path)
    write_settings(tmp_path, site.server.url, "other")
    address = site.daemon.url.removeprefix("http://")
    done = command("run", cwd=tmp_path, SYNCER_METRICS__LISTEN=address)
    assert done.code == 2
    assert address in done.err


def health_by_failures(site: Site) -> None:
    """Wait until it calls itself ill, and see that it says why."""
    site.daemon.until(lambda: not site.daemon.is_well(), "it is ill")
    assert "runs failed" in site.daemon.get("/healthz").text


@pytest.mark.rule("SC-06")
@pytest.mark.rule("OP-03")
def test_it_outlives_a_target_that_is_down_and_its_health_tells(site: Site) -> None:
    try:
        with site.failing("target", 3):
            site.server.kill()
            site.add("written while the target is down")
        health_by_failures(site)
        assert site.daemon.metric("syncer_lag_rows") == 1
    finally:
        site.server.start()
    site.arrives("written while the target is down")
    site.brings("a row after the target's return")


def test_it_outlives_a_source_that_is_locked(site: Site) -> None:
    site.add("written before the lock")
    with closing(memory.write(site.database)) as connection:
        with site.failing("source"):
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute(INSERT, ["written under the lock"])
        connection.commit()
    site.arrives("written under the lock")
    site.brings("a row after the lock")


def test_it_outlives_a_source_that_is_moved_away_and_back(site: Site) -> None:
    with site.without_database(), site.failing("source", 2):
        assert not site.database.exists()
    site.brings("a row after the return")
    assert site.holds(FIRST)


@pytest.mark.rule("SR-05")
def test_another_file_at_the_path_is_refused_until_the_right_one_is_back(
    site: Site, tmp_path: Path
) -> None:
    other = memory.make_memory(tmp_path, ["of another database"])
    with site.without_database():
        with site.failing("refused"):
            shutil.copy(other, site.database)
        assert not site.holds("of another database")
    site.brings("a row after the swap")
    assert site.holds(FIRST)


@pytest.mark.rule("CT-05")
def test_a_database_that_was_restored_is_refused(site: Site, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with (
        closing(memory.write(site.database)) as one,
        closing(memory.write(backup)) as two,
    ):
        one.backup(two)
    site.brings("a row that the backup has not")
    with site.without_database():
        with site.failing("refused"):
            shutil.copy(backup, site.database)
        assert site.holds("a row that the backup has not")
    site.brings("a row after the restored one was taken away")


@pytest.mark.rule("SR-17")
def test_a_mapped_column_that_goes_is_refused_and_its_return_mends_it(site: Site) -> None:
    with site.counted() as asked, site.failing("refused"):
        memory.execute(site.database, "ALTER TABLE memory_events RENAME COLUMN agent TO actor")
    assert [one for one in asked if not one.startswith("GET")] == []
    memory.execute(site.database, "ALTER TABLE memory_events RENAME COLUMN actor TO agent")
    site.brings("a row after the column's return")
    assert site.holds(FIRST)


@pytest.mark.rule("SC-02")
def test_a_clock_that_stood_still_is_told_counted_and_made_good(site: Site) -> None:
    skipped = site.daemon.metric('syncer_skipped_ticks_total{why="late"}')
    before = len(site.daemon.lines)
    site.daemon.pause(site.is_free)
    try:
        site.add("written while it slept")
        time.sleep(7)
    finally:
        site.daemon.resume()
    site.arrives("written while it slept")
    site.daemon.wait_for("s late", before)
    assert site.daemon.metric('syncer_skipped_ticks_total{why="late"}') > skipped


def test_settings_that_cannot_be_used_are_told_and_the_old_stay_in_force(site: Site) -> None:
    good = site.config.read_text()
    before = len(site.daemon.lines)
    site.config.write_text(good + "\n[nonsense]\nx = 1\n")
    site.daemon.wait_for("the settings in force stay", before)
    site.brings("a row under the old settings")
    site.config.write_text(good.replace("check_interval = 3600", "check_interval = 3599"))
    site.daemon.wait_for("the settings have changed", before)
    site.brings("a row under the new settings")


def test_withheld_deletes_do_not_make_it_ask_again_and_again(site: Site) -> None:
    for number in range(30):
        site.add(f"to be deleted {number}")
    site.arrives("to be deleted 29")
    memory.execute(site.database, "DELETE FROM memory_events WHERE content LIKE 'to be del%'")
    site.daemon.until(lambda: site.daemon.metric("syncer_withheld_deletes") == 30)
    with site.counted() as asked:
        runs = site.daemon.metric("syncer_last_run_timestamp_seconds")
        site.daemon.until(
            lambda: site.daemon.metric("syncer_last_run_timestamp_seconds") > runs + 1.5,
            "two ticks are over",
        )
    assert asked == []
    assert site.syncer("once")[0] == 9
    assert site.syncer("confirm-deletes")[0] == 0
    site.brings("a row after the deletes")


def test_beside_a_rebuild_it_keeps_the_old_generation_in_step_and_then_the_new_one(
    site: Site,
) -> None:
    before = len(site.daemon.lines)
    text = site.config.read_text()
    site.config.write_text(text.replace("dimension = 8", "dimension = 16"))
    site.add("written before the rebuild")
    site.daemon.wait_for("RecipeError", before)
    site.server.faults({"kind": "slow", "seconds": 1, "path": "*/points", "times": None})
    with running(site.folder, command=("-m", "syncer", "rebuild")) as rebuild:
        rebuild.wait_for("which goes on serving")
        rebuild.pause(site.is_free)
        site.clear()
        site.arrives("written before the rebuild")
        site.brings("written during the rebuild")
        rebuild.resume()
        assert rebuild.ended() == 0, rebuild.lines
    assert site.holds("written during the rebuild")
    site.brings("a row for green")
    code, out, err = site.syncer("verify", "--json")
    assert code == 0, (out, err)


def test_a_rollback_beside_it_needs_no_restart(site: Site) -> None:
    text = site.config.read_text()
    site.config.write_text(text.replace("dimension = 16", "dimension = 8"))
    code, _, err = site.syncer("rollback")
    assert code == 0, err
    site.brings("a row after the rollback")
    assert site.holds("a row for green")


@pytest.mark.rule("SC-05")
def test_sigterm_ends_it_when_idle_and_the_port_is_free_again(site: Site) -> None:
    pid = site.daemon.process.pid
    assert site.daemon.end() == 143
    events = [one["event"] for one in site.daemon.log]
    assert "bug" not in " ".join(str(event) for event in events)
    assert not Path(f"/proc/{pid}").exists()
    assert site.syncer("once")[0] == 0
    with wire.anywhere_else(site.server.url) as other:
        points = memory.points_in(site.settings)
        (lost,) = [key for key, (payload, _) in points.items() if FIRST in str(payload)]
        other.delete("memory", points_selector=[lost])  # type: ignore[list-item]


def test_the_next_start_makes_up_for_a_comparison_and_mends_what_it_finds(site: Site) -> None:
    assert not site.holds(FIRST)
    began = time.time()
    environment = {"SYNCER_DAEMON__VERIFY_INTERVAL": "3600", "SYNCER_DAEMON__REPAIR": "true"}
    memory.execute(site.database, "UPDATE syncer_verify SET at = '2020-01-01T00:00:00.000Z'")
    with running(site.folder, environment=environment) as again:
        again.until(again.is_ready, "the next start is ready")
        again.until(
            lambda: again.metric("syncer_last_verify_timestamp_seconds") > began, "it has compared"
        )
        again.until(lambda: site.holds(FIRST), "it has mended")
        assert again.end(signal.SIGINT) == 130
