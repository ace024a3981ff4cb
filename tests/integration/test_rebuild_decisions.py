"""What a rebuild embeds and what it copies, when it stops, and what is kept, in local mode."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import memory
import on_the_wire as wire
import pytest
from memories import holding
from qdrant_client import models
from rebuilding import equality, here

from syncer.cli import opening
from syncer.cli.planned import plan
from syncer.cli.status import status
from syncer.embed.hashing import HashEmbedder
from syncer.errors import ExitCode
from syncer.model import Phase
from syncer.settings import Settings
from syncer.target import Catalog, Succession

LONG = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron pi rho"
ROWS = 40
SECONDS = 60  # for a process on a busy machine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory of some rows, every fourth of which has several chunks."""
    rows = [f"{LONG} {n}" if n % 4 == 0 else f"memory {n}" for n in range(1, ROWS + 1)]
    memory.make_memory(tmp_path, rows)
    return tmp_path


def settings_for(folder: Path, **options: object) -> Settings:
    """Return settings without words, by which a walk takes several windows."""
    given = {"sparse.enabled": False, "sync.window_rows": 16, "embed.chunk_tokens": 12}
    given["target.check_interval"] = 0
    return memory.settings_for(folder, **{**given, **options})


@pytest.fixture
def old(folder: Path) -> Settings:
    """The settings that the generation that serves was made by."""
    settings = settings_for(folder)
    assert wire.once(settings)[0] == ExitCode.OK
    return settings


@pytest.fixture
def new(folder: Path, old: Settings) -> Settings:
    """Settings that ask for vectors of another dimension."""
    del old
    return settings_for(folder, **{"embed.dimension": 16})


def write(settings: Settings, sql: str) -> None:
    """Let the application commit a statement."""
    memory.execute(settings.source.database, sql)


@contextmanager
def counting() -> Iterator[list[str]]:
    """Note the texts that are embedded while the block runs."""
    texts: list[str] = []
    inner = HashEmbedder.embed

    def embed(self: HashEmbedder, given: list[str], counts: list[int] = ()) -> object:  # type: ignore[assignment]
        texts.extend(given)
        return inner(self, given, counts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HashEmbedder, "embed", embed)
        yield texts


def rebuilt(settings: Settings) -> wire.Told:
    """Run a rebuild that has to go well."""
    code, told = wire.rebuild(settings)
    assert code == ExitCode.OK, told
    return told


# what is embedded


def test_other_metadata_embed_nothing_again(folder: Path, old: Settings) -> None:
    mapped = settings_for(folder, **{"source.metadata": "agent,scope"})
    planned = plan(mapped)
    with counting() as texts:
        told = rebuilt(mapped)
    assert texts == []
    assert told.result is not None
    assert told.result.reused == told.result.chunks == planned.reuse > ROWS
    assert planned.embed == 0
    equality.assert_equal(mapped)
    assert equality.serving(old)


def test_words_that_are_added_embed_nothing_again(folder: Path, old: Settings) -> None:
    del old
    with_words = settings_for(folder, **{"sparse.enabled": True})
    with counting() as texts:
        rebuilt(with_words)
    assert texts == []
    equality.assert_equal(with_words)


def test_a_collection_that_was_lost_is_made_again_from_one_that_is_kept(
    folder: Path, old: Settings
) -> None:
    del folder
    rebuilt(old)
    lost = equality.serving(old)
    with memory.connect(memory.specs.target_spec(old)) as connection:
        connection.client.delete_collection(lost)
    assert wire.once(old)[0] == ExitCode.REFUSED
    with counting() as texts:
        rebuilt(old)
    assert texts == []
    assert equality.serving(old) != lost
    equality.assert_equal(old)


def test_other_chunks_embed_only_what_is_new_and_no_vector_sits_on_another_text(
    folder: Path, old: Settings
) -> None:
    longer = settings_for(folder, **{"embed.chunk_tokens": 14})
    with memory.connect(memory.specs.target_spec(old)) as connection:
        before = {
            (record.payload or {})["document"]
            for record in equality.points(connection.client, "memory")
        }
    with counting() as texts:
        told = rebuilt(longer)
    assert told.result is not None
    assert 0 < len(texts) == told.result.chunks - told.result.reused
    assert before.isdisjoint(texts)
    assert told.result.reused >= ROWS * 3 // 4
    equality.assert_equal(longer)


def test_a_rebuild_that_goes_on_embeds_no_text_twice(new: Settings) -> None:
    with counting() as texts:
        here.interrupted(new, "position", 2)
        rebuilt(new)
    alone = [text for text in texts if text.startswith("memory")]  # others share their beginning
    assert len(alone) == len(set(alone)) == ROWS * 3 // 4


# when it stops


@pytest.mark.parametrize("where", ["1", "id > 12"])
def test_a_source_that_was_emptied_does_not_take_over_until_that_is_confirmed(
    new: Settings, where: str
) -> None:
    blue = equality.serving(new)
    write(new, f"DELETE FROM memory_events WHERE {where}")
    code, told = wire.rebuild(new)
    assert code == ExitCode.WITHHELD
    assert "so many fewer may be a mistake" in str(told.error)
    assert equality.serving(new) == blue
    code, _ = wire.rebuild(new)
    assert (code, equality.serving(new)) == (ExitCode.WITHHELD, blue)
    assert here.confirm_deletes(new)[0] == ExitCode.OK
    rebuilt(new)
    equality.assert_equal(new)


def test_what_is_confirmed_holds_for_no_fewer_rows_than_there_were(new: Settings) -> None:
    write(new, "DELETE FROM memory_events WHERE id > 15")
    write(
        new,
        "INSERT INTO memory_events (agent, scope, source, content) "
        "SELECT 'a', 's', 'x', content || value FROM memory_events, json_each('[1,2]')",
    )
    write(new, "DELETE FROM memory_events WHERE id IN (1, 2, 3)")
    write(new, "DELETE FROM memory_events WHERE id > 18 AND id < 66")
    code, _ = wire.rebuild(new)
    assert code == ExitCode.WITHHELD
    here.confirm_deletes(new)
    rebuilt(new)
    equality.assert_equal(new)


def test_a_rebuild_that_is_confirmed_also_where_the_old_collection_is_lost(new: Settings) -> None:
    with memory.connect(memory.specs.target_spec(new)) as connection:
        for each in connection.client.get_collections().collections:
            connection.client.delete_collection(each.name)
    write(new, "DELETE FROM memory_events WHERE id > 2")
    assert wire.rebuild(new)[0] == ExitCode.WITHHELD
    here.confirm_deletes(new)
    rebuilt(new)
    equality.assert_equal(new)


def test_a_rebuild_that_is_asked_to_stop_says_so_and_the_next_goes_on(
    folder: Path, new: Settings
) -> None:
    (folder / "syncer.toml").write_text(
        '[source]\ndatabase = "memory.db"\n[target]\npath = "qdrant"\n'
        '[embed]\nprovider = "hash"\ndimension = 16\nchunk_tokens = 12\n'
        "[sparse]\nenabled = false\nb = 0.0\n[sync]\nwindow_rows = 1\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "syncer", "rebuild", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if '"window"' in line:
                break
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 143, err
    found = json.loads(out)
    assert (found["exit_code"], found["caught_up"]) == (143, False)
    told = rebuilt(new)
    assert told.result is not None
    assert told.result.read <= ROWS - found["read"] + 16
    equality.assert_equal(new)


@pytest.mark.parametrize("command", ["rebuild", "rollback"])
def test_a_folder_that_another_process_holds_is_told_with_what_to_do(
    folder: Path, new: Settings, command: str
) -> None:
    (folder / "syncer.toml").write_text('[source]\ndatabase = "memory.db"\n')
    with holding(folder):
        code, told = wire.rebuild(new) if command == "rebuild" else here.rollback(new)
    assert code == ExitCode.LOCKED
    assert told.error is not None
    assert "stop the daemon for the rebuild" in str(told.error.hint)


# what is kept


def test_going_back_after_the_log_was_pruned_compares_row_by_row(folder: Path) -> None:
    old = settings_for(folder, **{"target.keep_old": 0})
    new = settings_for(folder, **{"target.keep_old": 0, "embed.dimension": 16})
    assert wire.once(old)[0] == ExitCode.OK
    first = equality.serving(old)
    rebuilt(new)
    an_hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="milliseconds")
    write(
        new, f"UPDATE syncer_generations SET kept_since = '{an_hour_ago[:-6]}Z' WHERE NOT serving"
    )
    write(new, "UPDATE memory_events SET content = 'edited' WHERE id IN (1, 8)")
    write(new, "DELETE FROM memory_events WHERE id IN (2, 12)")
    assert wire.once(new)[0] == ExitCode.OK
    with memory.sqlite3.connect(new.source.database) as connection:
        (left,) = connection.execute("SELECT count(*) FROM syncer_changes_memory_events").fetchone()
    connection.close()
    assert left == 0
    code, told = here.rollback(old)
    assert code == ExitCode.OK, told
    assert equality.serving(old) == first
    equality.assert_equal(old)


def test_after_going_back_a_run_by_the_other_settings_is_refused_even_if_it_has_nothing_to_do(
    old: Settings, new: Settings
) -> None:
    here.interrupted(new, "position", 2)
    assert wire.once(new)[0] == ExitCode.OK  # blue goes on by its own recipe
    rebuilt(new)
    assert here.rollback(old)[0] == ExitCode.OK
    assert wire.once(old)[0] == ExitCode.OK
    assert wire.once(new)[0] == ExitCode.REFUSED


def test_there_is_nothing_to_go_back_to_before_the_first_rebuild(old: Settings) -> None:
    code, told = here.rollback(old)
    assert code == ExitCode.REFUSED
    assert "nothing to go back to" in str(told.error)


def test_a_way_back_that_stops_leaves_a_generation_that_is_kept(
    old: Settings, new: Settings
) -> None:
    rebuilt(new)
    with here.before("compared", lambda _: 1 / 0), pytest.raises(ZeroDivisionError):
        here.rollback(old)
    assert [each.phase for each in equality.generations(old)] == [Phase.SERVING, Phase.KEPT]


def test_status_lists_all_generations(old: Settings, new: Settings) -> None:
    first = equality.serving(old)
    rebuilt(new)
    here.interrupted(old, "position", 2)
    found = {each.generation: each.phase for each in status(new).generations}
    (green,) = [each.generation for each in equality.generations(new) if each.phase.is_green]
    assert found == {first: "kept", green: "building"}
    assert green in status(new).in_words()


def test_tidying_up_leaves_what_is_needed_and_nothing_else(old: Settings, new: Settings) -> None:
    first = equality.serving(old)
    rebuilt(new)
    second = equality.serving(new)
    rebuilt(old)
    third = equality.serving(old)
    here.interrupted(new, "position", 2)
    (green,) = [each.generation for each in equality.generations(new) if each.phase.is_green]
    before = equality.collections(new)
    dry = here.gc(new, dry_run=True)
    assert {name for name, fate in dry.items() if fate.removed} == {first}
    assert equality.collections(new) == before
    fates = here.gc(new)
    assert {name for name, fate in fates.items() if fate.removed} == {first}
    assert fates[green].why == "is in the making (building)"
    assert equality.collections(new) == {second, third, green}
    assert not opening.lock_path(new, first).exists()
    assert opening.lock_path(new, second).exists()
    assert here.gc(new, 0)[second].removed
    rebuilt(new)
    equality.assert_equal(new)


def test_tidying_up_leaves_foreign_points_alone_and_other_aliases_generations(
    old: Settings, new: Settings, folder: Path
) -> None:
    first = equality.serving(old)
    rebuilt(new)
    with memory.connect(memory.specs.target_spec(new)) as connection:
        point = models.PointStruct(id=10**6, vector={}, payload={"document": "theirs"})
        connection.client.upsert(first, [point])
        description = Catalog(connection).describe(first)
        theirs = "memory--x--20260101t000000-abcd"
        Catalog(connection).make(theirs, description, [])
        mine = "memory--20260101t000000-abcd"
        Catalog(connection).make(mine, description, [])
        assert Succession(connection).of_source("memory", description.source_id) == sorted(
            {mine, first, equality_of(new)}
        )
    fates = here.gc(new, 0)
    assert "holds 1 points that syncer did not write" in fates[first].why
    assert {name for name, fate in fates.items() if fate.removed} == {mine}
    assert {first, theirs} <= equality.collections(new)


def equality_of(settings: Settings) -> str:
    """Return the generation that serves, by the state's word."""
    return next(each.generation for each in equality.generations(settings) if each.serving)


def test_a_generation_with_foreign_points_can_serve_again(old: Settings, new: Settings) -> None:
    first = equality.serving(old)
    rebuilt(new)
    with memory.connect(memory.specs.target_spec(new)) as connection:
        point = models.PointStruct(id=10**6, vector={}, payload={"document": "theirs"})
        connection.client.upsert(first, [point])
    code, told = here.rollback(old)
    assert code == ExitCode.OK, told
    assert any("holds 1 points that syncer did not write" in each for each in told.warnings)
    assert equality.serving(old) == first


# what is shown


def test_a_terminal_shows_rate_and_time_left_for_building_and_for_comparing(
    folder: Path, new: Settings
) -> None:
    assert new.source.database.exists()
    (folder / "syncer.toml").write_text(
        '[source]\ndatabase = "memory.db"\n[target]\npath = "qdrant"\n'
        '[embed]\nprovider = "hash"\ndimension = 16\nchunk_tokens = 12\n'
        "[sparse]\nenabled = false\nb = 0.0\n[sync]\nwindow_rows = 4\n"
    )
    code, shown = on_a_terminal(folder, "rebuild")
    assert code == 0, shown
    assert re.search(r"syncing .*\d+/40", shown)
    assert re.search(r"comparing .*\d+/\d+", shown)
    assert re.search(r"\d+ rows/s", shown)
    assert re.search(r"\d:\d\d:\d\d", shown)
    assert "goes on serving" in shown
    assert "is kept for `syncer rollback`" in shown


def on_a_terminal(folder: Path, command: str) -> tuple[int, str]:
    """Run a command on a terminal of its own; return its exit code and all that it showed."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "syncer", command],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            ready, _, _ = select.select([ours], [], [], 1.0)
            try:
                found = os.read(ours, 65_536) if ready else b""
            except OSError:  # the other end is closed
                break
            if ready and not found:
                break
            shown += found
        os.close(ours)
        return process.wait(timeout=SECONDS), shown.decode("utf-8", "replace")
