"""The commands as their users run them: a process each, its output, its exit code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import memory
import pytest
import typer.main
from commands import Outcome, run
from memories import (
    SETTINGS,
    another_collection,
    change,
    contents,
    fresh,
    holding,
    in_sync,
    no_collection,
    settings_of,
)

import syncer
from syncer.cli.app import app
from syncer.model import Point

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture
def synced(tmp_path: Path) -> Path:
    """A memory that is in sync."""
    return in_sync(tmp_path / "memory")


def spoil(folder: Path) -> None:
    """Put a foreign point where the next row's will be, and add the row."""
    with memory.pipeline_for(settings_of(folder)) as (pipeline, _):
        pipeline.target.upsert([Point(4, {"document": "mine"}, {"hash-8": [1.0] * 8})])
    memory.execute(
        folder / "memory.db",
        "INSERT INTO memory_events (agent, scope, source, content) VALUES ('b', 's', 'x', '4')",
    )


# help


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself_and_each_of_its_options(
    tmp_path: Path, command: str
) -> None:
    shown = run(command, "--help", cwd=tmp_path)
    assert (shown.code, shown.err) == (0, "")
    words = " ".join(shown.out.split())
    assert COMMANDS[command].help.splitlines()[0] in words
    for parameter in COMMANDS[command].params:
        assert parameter.help, f"{command} {parameter.name} says nothing of itself"
        assert parameter.help in words
        assert all(name in words for name in parameter.opts if name.startswith("-"))
    assert list(tmp_path.iterdir()) == []


def test_the_help_lists_every_command_with_what_it_does(tmp_path: Path) -> None:
    shown = run("--help", cwd=tmp_path)
    assert (shown.code, shown.err) == (0, "")
    for name, command in COMMANDS.items():
        assert re.search(rf"^ +{name} +{re.escape(command.help)}$", shown.out, re.MULTILINE)


def test_the_version_is_the_package_s(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path) == Outcome(0, f"syncer {syncer.__version__}\n", "")


# init


def test_init_makes_database_and_settings_once_and_overwrites_neither(tmp_path: Path) -> None:
    first = run("init", "memory.db", cwd=tmp_path)
    assert first.code == 0
    assert "applied canonical/0001_memory_events" in first.out
    assert "wrote syncer.toml; next: syncer once" in first.out
    assert settings_of(tmp_path).source.database == tmp_path / "memory.db"
    (tmp_path / "syncer.toml").write_text(SETTINGS)
    before = contents(tmp_path)
    again = run("init", cwd=tmp_path)
    assert again == Outcome(0, f"{tmp_path / 'memory.db'} is up to date\n", "")
    assert contents(tmp_path) == before
    assert run("once", cwd=tmp_path).code == 0


def test_init_writes_the_settings_that_are_missing_beside_a_database_that_is_there(
    tmp_path: Path,
) -> None:
    memory.make_memory(tmp_path)
    done = run("init", "memory.db", cwd=tmp_path)
    assert done.out == "memory.db is up to date\nwrote syncer.toml; next: syncer once\n"


def test_init_takes_a_relative_path_to_another_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "here").mkdir()
    done = run("init", "../data/memory.db", cwd=tmp_path / "here")
    assert done.code == 0
    settings = settings_of(tmp_path / "here")
    assert settings.source.database.resolve() == tmp_path / "data" / "memory.db"
    assert run("status", cwd=tmp_path / "here").out == "memory: never synced; run `syncer once`\n"


def test_init_for_a_second_database_says_that_the_settings_name_the_first(tmp_path: Path) -> None:
    fresh(tmp_path, [])
    done = run("init", "second.db", cwd=tmp_path)
    assert done.code == 0
    assert "syncer.toml as it is; see that its source.database is second.db" in done.out
    assert (tmp_path / "syncer.toml").read_text() == SETTINGS


def test_init_writes_no_settings_where_others_are_found(tmp_path: Path) -> None:
    (tmp_path / "home" / ".config" / "syncer").mkdir(parents=True)
    (tmp_path / "home" / ".config" / "syncer" / "syncer.toml").write_text(SETTINGS)
    (tmp_path / "here").mkdir()
    home = str(tmp_path / "home")
    done = run("init", cwd=tmp_path / "here", HOME=home, XDG_CONFIG_HOME="")
    assert done.code == 0
    assert (tmp_path / "home" / ".config" / "syncer" / "memory.db").exists()
    assert list((tmp_path / "here").iterdir()) == []


def test_init_refuses_two_answers_to_the_question_which_database(tmp_path: Path) -> None:
    fresh(tmp_path, [])
    done = run("init", "other.db", "-c", "syncer.toml", cwd=tmp_path)
    assert done.code == 2
    assert "other.db was named, but source.database in syncer.toml is" in done.err
    assert not (tmp_path / "other.db").exists()


def test_init_names_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = run("init", "nowhere/memory.db", cwd=tmp_path)
    assert done.code == 5
    assert "nowhere" in done.err
    assert list(tmp_path.iterdir()) == []


# settings


def test_relative_paths_in_a_settings_file_belong_to_its_folder(
    synced: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    by_option = run("once", "--json", "-c", "../memory/syncer.toml", cwd=elsewhere)
    by_variable = run("status", "--json", cwd=elsewhere, SYNCER_CONFIG="../memory/syncer.toml")
    assert json.loads(by_option.out)["caught_up"] is True
    assert Path(json.loads(by_variable.out)["database"]).resolve() == synced / "memory.db"
    assert list(elsewhere.iterdir()) == []


def test_variables_override_the_file_and_options_override_variables(synced: Path) -> None:
    def collection(*options: str) -> object:
        shown = run(
            "status", "--json", *options, cwd=synced, SYNCER_TARGET__COLLECTION="by_variable"
        )
        return json.loads(shown.out)["collection"]

    assert collection() == "by_variable"
    assert collection("--set", "target.collection=by_option") == "by_option"


def test_a_relative_database_may_be_given_by_option(synced: Path) -> None:
    for command in ("once", "doctor"):
        assert run(command, "--set", "source.database=memory.db", cwd=synced).code == 0


# status


def test_status_before_the_first_run_says_so(tmp_path: Path) -> None:
    fresh(tmp_path, ["one"])
    assert run("status", cwd=tmp_path).out == "memory: never synced; run `syncer once`\n"
    shown = json.loads(run("status", "--json", cwd=tmp_path).out)
    assert (shown["generation"], shown["pending"], shown["caught_up"]) == (None, None, False)


def test_status_says_how_far_behind_the_collection_is(synced: Path) -> None:
    assert "state        caught up\n" in run("status", cwd=synced).out
    change(synced)
    behind = json.loads(run("status", "--json", cwd=synced).out)
    assert (behind["pending"], behind["caught_up"], behind["walked"]) == (4, False, True)
    assert behind["lag_seconds"] > 0
    assert "4 changes behind, the oldest for" in run("status", cwd=synced).out
    before = contents(synced)
    run("status", cwd=synced)
    assert contents(synced) == before


def test_status_shows_a_walk_that_is_under_way(synced: Path) -> None:
    memory.execute(synced / "memory.db", "UPDATE syncer_generations SET last_id = '1', walked = 0")
    assert "state        2 rows of the walk behind\n" in run("status", cwd=synced).out


def test_status_counts_expired_rows_as_behind(synced: Path) -> None:
    path = synced / "memory.db"
    memory.execute(path, "UPDATE memory_events SET expires_at = '2020-01-01' WHERE id = 1")
    memory.sync_memory(settings_of(synced))
    memory.execute(path, "UPDATE syncer_generations SET expired_to = '2019-01-01T00:00:00.000Z'")
    shown = run("status", cwd=synced).out
    assert "state        expired rows are still to be taken out, the oldest for" in shown
    assert json.loads(run("status", "--json", cwd=synced).out)["caught_up"] is False


def test_status_and_exit_code_3_tell_of_rows_that_could_not_be_indexed(synced: Path) -> None:
    spoil(synced)
    done = run("once", "--json", cwd=synced)
    assert done.code == json.loads(done.out)["exit_code"] == 3
    assert json.loads(done.out)["quarantined"] == 1
    (event,) = [event for event in done.log if event["event"] == "quarantined"]
    assert (event["row"], event["reason"]) == ("4", "foreign_point")

    shown = run("status", cwd=synced).out
    assert (
        "state        all changes are served, but the collection is not equal to the table\n"
        in shown
    )
    assert "quarantine   rows that could not be indexed: 1\n" in shown
    as_json = json.loads(run("status", "--json", cwd=synced).out)
    assert (as_json["quarantined"], as_json["pending"], as_json["caught_up"]) == (1, 0, False)
    assert run("once", cwd=synced).code == 0  # not newly


def test_status_works_beside_a_process_that_holds_the_local_folder(synced: Path) -> None:
    with holding(synced):
        assert "caught up" in run("status", cwd=synced).out
        busy = run("once", "--start-over", "--set", "target.lock_wait=0", cwd=synced)
    assert busy.code == 8
    assert f"process {os.getpid()} on" in busy.err


# search


def test_search_finds_rows_and_filters_them(synced: Path) -> None:
    change(synced)
    memory.sync_memory(settings_of(synced))
    found = run("search", "uno", cwd=synced)
    assert found.code == 0
    assert re.fullmatch(r"(-?\d\.\d{3}  row \d  \S+\n){3}", found.out)
    assert found.out.startswith("1.000  row 1  uno\n")

    assert [hit["row"] for hit in hits(synced, "-n", "1")] == ["1"]
    (hit,) = hits(synced, "--where", "agent=b", "--where", "scope=s")
    assert (hit["row"], hit["document"]) == ("4", "4")
    assert hit["metadata"]["sqlite_id"] == 4
    assert -1 <= hit["score"] <= 1


def hits(folder: Path, *options: str) -> list[dict[str, Any]]:
    """Search for "uno" and return the answer as JSON."""
    return list(json.loads(run("search", "uno", "--json", *options, cwd=folder).out))


def test_search_says_that_it_found_nothing(synced: Path, tmp_path: Path) -> None:
    nothing = run("search", "uno", "--where", "agent=nobody", cwd=synced)
    assert nothing == Outcome(0, "nothing found\n", "")
    empty = fresh(tmp_path / "empty", [])
    memory.sync_memory(settings_of(empty))
    assert hits(empty) == []


def test_search_without_a_collection_says_how_to_get_one(tmp_path: Path) -> None:
    fresh(tmp_path, ["one"])
    done = run("search", "one", cwd=tmp_path)
    assert done.code == 4
    assert "there is no collection memory at" in done.err
    assert "syncer once" in done.err
    assert not (tmp_path / "qdrant").exists()


@pytest.mark.parametrize("wrong", [("--where", "agent"), ("--where", "=b"), ("-n", "0")])
def test_search_refuses_what_it_cannot_ask(synced: Path, wrong: tuple[str, str]) -> None:
    done = run("search", "one", *wrong, cwd=synced)
    assert done.code == 2
    assert wrong[0] in done.err


# doctor


def verdicts(done: Outcome) -> dict[str, str]:
    """Return the verdicts by subject."""
    return {check["subject"]: check["verdict"] for check in json.loads(done.out)}


def test_doctor_says_that_all_is_well_and_writes_nothing(synced: Path) -> None:
    before = contents(synced)
    done = run("doctor", cwd=synced)
    assert done.code == 0
    lines = [line.split(maxsplit=2) for line in done.out.splitlines()]
    assert {verdict for verdict, _, _ in lines} == {"ok"}
    subjects = {subject for _, subject, _ in lines}
    assert subjects >= {"settings", "sqlite", "source", "model", "target", "recipe"}
    assert re.search(
        r"^ok       target    .*: memory -> memory--\S+, 3 points$", done.out, re.MULTILINE
    )
    assert contents(synced) == before


def unknown_setting(folder: Path) -> None:
    (folder / "syncer.toml").write_text(SETTINGS + "dimensions = 3\n")


def no_database(folder: Path) -> None:
    (folder / "memory.db").rename(folder / "elsewhere.db")


def missing_trigger(folder: Path) -> None:
    memory.execute(folder / "memory.db", "DROP TRIGGER syncer_changes_memory_events_update")


def another_recipe(folder: Path) -> None:
    (folder / "syncer.toml").write_text(SETTINGS.replace("8", "16"))


def no_server(folder: Path) -> None:
    settings = SETTINGS + '[target]\nurl = "http://127.0.0.1:9"\n'
    (folder / "syncer.toml").write_text(settings)


def no_model(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "syncer.toml").write_text(
        SETTINGS.replace('"hash"', '"fastembed"\nmodel_path = "model"')
    )


@pytest.mark.parametrize(
    ("damage", "subject", "code"),
    [
        (unknown_setting, "settings", 2),
        (no_database, "source", 5),
        (missing_trigger, "source", 4),
        (another_recipe, "target", 4),
        (another_collection, "target", 4),
        (no_collection, "target", 4),
        (no_server, "target", 6),
        (no_model, "model", 7),
    ],
)
def test_doctor_names_what_fails_and_ends_with_its_exit_code(
    synced: Path, damage: Callable[[Path], None], subject: str, code: int
) -> None:
    damage(synced)
    done = run("doctor", "--json", cwd=synced)
    assert done.code == code
    assert [name for name, verdict in verdicts(done).items() if verdict == "failed"] == [subject]


def test_doctor_names_who_holds_the_local_folder(synced: Path) -> None:
    with holding(synced):
        done = run("doctor", "--json", cwd=synced, SYNCER_TARGET__LOCK_WAIT="0")
    assert done.code == 8
    (failed,) = [check for check in json.loads(done.out) if check["verdict"] == "failed"]
    assert failed["subject"] == "target"
    assert f"process {os.getpid()} on" in failed["finding"]
