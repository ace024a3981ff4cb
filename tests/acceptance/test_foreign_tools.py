"""Databases that other people's tools make are synced by settings alone, those in examples/."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from foreign_tools import Synced, Tool, installed

pytestmark = pytest.mark.timeout(600)  # seconds; a tool's first test installs it

LLM = "SELECT turn_id, prompt || char(10) || response FROM turn_search"
OLD_LLM = "SELECT id, prompt || char(10) || response FROM responses"
PEANUTS = "Bob is allergic to peanuts"
TRAINS = "Anna asked for a window seat"
COFFEE = "The coffee machine is descaled on Mondays"


def installed_in(tool: str, folder: Path, **variables: str) -> Tool:
    return Tool(installed(tool, folder), folder, variables)


def llm_in(folder: Path, tool: str = "llm") -> Tool:
    return installed_in(tool, folder, LLM_USER_PATH=str(folder), LLM_LOAD_PLUGINS="")


def ask(llm: Tool, *texts: str) -> None:
    """Have llm log a turn for each text."""
    for text in texts:
        llm.script("llm_echo.py", "--model", "echo", text)


def said(*texts: str) -> list[str]:
    """Return what llm logs for these texts."""
    return [f"{text}\nYou said: {text}" for text in texts]


def test_what_llm_logs_is_found_and_follows_every_change(tmp_path: Path) -> None:
    llm, logs = llm_in(tmp_path), Synced(tmp_path / "logs.db", "llm.toml")
    ask(llm, PEANUTS, TRAINS)
    before = logs.schema()
    logs.attach()
    assert logs.once()["embedded"] == 2
    assert logs.best("window seat") == said(TRAINS)[0]
    llm.script("llm_echo.py", "--continue", COFFEE)
    llm.command("sqlite-utils", "logs.db", "UPDATE turn_search SET response = '?' WHERE id = 1")
    llm.command("sqlite-utils", "logs.db", "DELETE FROM turn_search WHERE id = 2")
    done = logs.once()
    assert (done["embedded"], done["deleted"]) == (2, 1)
    assert logs.texts() == logs.rows(LLM)
    assert sorted(logs.texts().values()) == [f"{PEANUTS}\n?", *said(COFFEE)]
    assert COFFEE in llm.command("llm", "logs", "--query", "descaled")
    assert logs.run("detach").code == 0
    assert logs.schema() == before


def test_a_table_that_llm_s_own_library_makes_anew_loses_no_change(tmp_path: Path) -> None:
    llm, logs = llm_in(tmp_path), Synced(tmp_path / "logs.db", "llm.toml")
    ask(llm, PEANUTS, TRAINS)
    logs.attach()
    logs.once()
    llm.command("sqlite-utils", "transform", "logs.db", "turn_search")
    ask(llm, COFFEE)
    llm.command("sqlite-utils", "logs.db", "DELETE FROM turn_search WHERE id = 1")
    noticed = logs.run("once")
    assert noticed.code == 0
    assert "the change log was not whole" in noticed.err
    assert logs.texts() == logs.rows(LLM)
    assert sorted(logs.texts().values()) == sorted(said(COFFEE, TRAINS))
    ask(llm, PEANUTS)
    assert logs.once()["read"] == 1


@pytest.mark.long
def test_an_older_llm_s_responses_stay_found_when_llm_is_upgraded(tmp_path: Path) -> None:
    llm, logs = llm_in(tmp_path, "llm-before"), Synced(tmp_path / "logs.db", "llm_responses.toml")
    ask(llm, PEANUTS, TRAINS)
    logs.attach()
    assert logs.once()["embedded"] == 2
    llm.script("llm_echo.py", "--continue", COFFEE)
    ask(llm_in(tmp_path), "This migrates the database, and goes to other tables.")
    noticed = logs.run("once")
    assert noticed.code == 0
    assert "the change log was not whole" in noticed.err
    assert logs.texts() == logs.rows(OLD_LLM)
    assert sorted(logs.texts().values()) == sorted(said(PEANUTS, TRAINS, COFFEE))
    (row,) = (row for row, text in logs.texts().items() if PEANUTS in text)
    assert logs.metadata(row)["model"] == "echo"


def service_in(folder: Path) -> Tool:
    return installed_in(
        "mcp-memory-service",
        folder,
        MCP_MEMORY_STORAGE_BACKEND="sqlite_vec",
        MCP_MEMORY_SQLITE_PATH=str(folder / "sqlite_vec.db"),
        MCP_MEMORY_BASE_DIR=str(folder / "base"),
        MCP_MEMORY_ALLOW_HASH_EMBEDDINGS="1",  # its own models come from a hub
    )


def call(service: Tool, *calls: tuple[str, dict[str, object]]) -> str:
    """Call the service's tools over MCP, and return what they answer."""
    return service.script("memory_service.py", json.dumps(calls))


def key_of(memories: Synced, text: str) -> str:
    """Return the content hash of the only memory with this text."""
    (key,) = memories.rows(f"SELECT content_hash, content FROM memories WHERE content = '{text}'")
    return str(json.loads(key))


@pytest.mark.long
def test_the_memories_of_mcp_memory_service_follow_every_call_of_its_tools(tmp_path: Path) -> None:
    service = service_in(tmp_path)
    memories = Synced(tmp_path / "sqlite_vec.db", "mcp_memory_service.toml")
    tagged: dict[str, object] = {"content": TRAINS, "metadata": {"tags": "people,travel"}}
    call(service, ("memory_store", tagged), ("memory_store", {"content": PEANUTS}))
    before = memories.schema()
    memories.attach()
    assert memories.once()["embedded"] == 2
    assert memories.best("window seat") == TRAINS
    peanuts, trains = key_of(memories, PEANUTS), key_of(memories, TRAINS)
    assert memories.metadata(json.dumps(trains))["tags"] == "people,travel"

    call(service, ("memory_search", {"query": "peanuts"}))
    assert memories.once()["event"] == "nothing to do"

    retagged: dict[str, object] = {"content_hash": trains, "updates": {"tags": ["seats"]}}
    call(service, ("memory_update", retagged))
    done = memories.once()
    assert (done["payload_only"], done["embedded"]) == (1, 0)
    assert memories.metadata(json.dumps(trains))["tags"] == "seats"

    nuts = "Bob is allergic to all nuts"
    newer: dict[str, object] = {
        "content_hash": peanuts,
        "updates": {"content": nuts},
        "versioned": True,
    }
    call(service, ("memory_update", newer), ("memory_delete", {"content_hash": trains}))
    done = memories.once()
    assert (done["embedded"], done["deleted"]) == (1, 2)
    assert list(memories.texts().values()) == [nuts]

    call(service, ("memory_store", {"content": TRAINS}), ("memory_store", {"content": COFFEE}))
    assert memories.once()["embedded"] == 2
    assert sorted(memories.texts().values()) == sorted([TRAINS, nuts, COFFEE])
    assert COFFEE in call(service, ("memory_search", {"query": "coffee"}))
    assert memories.run("detach").code == 0
    assert memories.schema() == before


def anki(tool: Tool, *steps: tuple[str, ...]) -> str:
    """Do this to the collection in the tool's folder, opening it once."""
    return tool.script("anki_collection.py", str(tool.folder), json.dumps(steps))


@pytest.mark.long
def test_the_notes_of_anki_follow_every_change(tmp_path: Path) -> None:
    tool = installed_in("anki", tmp_path)
    notes = Synced(tmp_path / "collection.anki2", "anki.toml")
    anki(tool, ("add", "What is Bob allergic to?", "Peanuts"), ("add", "Anna's seat?", "Window"))
    before = notes.schema()
    notes.attach()
    assert notes.once()["embedded"] == 2
    assert notes.best("allergic peanuts") == "What is Bob allergic to?\nPeanuts"

    anki(tool, ("review",))
    assert len(notes.rows("SELECT id, ease FROM revlog")) == 1
    assert notes.once()["event"] == "nothing to do"

    anki(tool, ("edit", "allergic", "Nuts"), ("delete", "seat"), ("add", "Coffee?", "Mondays"))
    done = notes.once()
    assert (done["embedded"], done["deleted"]) == (2, 1)
    assert sorted(notes.texts().values()) == ["Coffee?\nMondays", "What is Bob allergic to?\nNuts"]

    anki(tool, ("delete", "coffee"), ("undo",), ("check",))
    assert notes.once()["unchanged"] == 1
    assert notes.texts() == notes.rows("SELECT id, replace(flds, char(31), char(10)) FROM notes")
    assert notes.run("detach").code == 0
    assert notes.schema() == before


@pytest.mark.long
def test_a_run_while_anki_is_open_changes_nothing_and_says_so(tmp_path: Path) -> None:
    tool = installed_in("anki", tmp_path)
    notes = Synced(tmp_path / "collection.anki2", "anki.toml")
    anki(tool, ("add", "What is Bob allergic to?", "Peanuts"))
    notes.attach()
    variables = [f"{name}={text}" for name, text in notes.variables.items()]
    once = (sys.executable, "-m", "syncer", "once", "--set", "source.busy_timeout=0.5")
    open_meanwhile = ("run", "env", *variables, *once)
    assert anki(tool, open_meanwhile).strip() == "5"
    assert notes.once()["embedded"] == 1


@pytest.mark.long
def test_a_collection_that_anki_puts_in_the_place_of_this_one_is_refused(tmp_path: Path) -> None:
    tool = installed_in("anki", tmp_path)
    notes = Synced(tmp_path / "collection.anki2", "anki.toml")
    package = str(tmp_path / "backup.colpkg")
    anki(tool, ("add", "What is Bob allergic to?", "Peanuts"), ("export", package))
    notes.attach()
    anki(tool, ("add", "Coffee?", "Mondays"))
    notes.once()
    anki(tool, ("replace", package))
    assert notes.run("once").code == 4
    notes.attach()
    assert notes.run("once").code == 4
    notes.once("--start-over")
    assert list(notes.texts().values()) == ["What is Bob allergic to?\nPeanuts"]
