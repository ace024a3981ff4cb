"""``syncer rebuild --adopt``: another tool's collection of the alias's own name is taken over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import commands
import dying
import foreigners
import memory
import on_the_wire
import pytest
from acceptance.adopt_child import MOMENTS
from foreigners import UUID
from qdrant_client import models
from qdrant_http import Options, Server, running

from syncer.cli.adopt import adopt as run_adopt
from syncer.errors import ExitCode
from syncer.model import SYNC_KEY
from syncer.settings import Settings
from syncer.target import Catalog, Plain

THEIRS: foreigners.Payloads = {
    UUID: {"document": "theirs by uuid", "metadata": {"agent": "m", "k": 1}},
    1: {"document": "theirs with the id of a row", "metadata": None},
    2: {"document": "theirs with another row's"},
}
GONE = "it is gone, and the alias is not there"
KILLS = [
    *((moment, False) for moment in MOMENTS),
    *((moment, True) for moment in ("verified", "before it goes", GONE)),
]
"""Moments, and whether what is there is exported."""
LONG = {
    *((moment, False) for moment in ("noted", "made", "rows are about to be made", "verified")),
    *((moment, True) for moment in ("verified", "before it goes")),
}
"""Some of those at which nothing of theirs is gone yet."""
TEXTS = sorted(["one", "two", *(str(each["document"]) for each in THEIRS.values())])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Qdrant over HTTP."""
    with running(Options(folder=tmp_path_factory.mktemp("qdrant") / "storage")) as found:
        yield found


@pytest.fixture(params=["local", "http"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> Settings:
    """A memory of two rows that was never synced, and a collection of somebody's in its way."""
    memory.make_memory(tmp_path, ["one", "two"])
    found = foreigners.settings_on(request.param, tmp_path, server.url)
    foreigners.make_plain(found, THEIRS, found.target.collection)
    return found


@pytest.fixture
def local(tmp_path: Path) -> Settings:
    """The same in local mode alone, for what does not depend on it."""
    memory.make_memory(tmp_path, ["one", "two"])
    found = memory.settings_for(tmp_path, **{"sparse.enabled": False})
    foreigners.make_plain(found, THEIRS)
    return found


def adopt(
    settings: Settings, export: Path | None = None, *, with_vectors: bool = False
) -> tuple[ExitCode, on_the_wire.Told]:
    told = on_the_wire.Told()
    return run_adopt(settings, told, export, with_vectors=with_vectors), told


def is_plain(settings: Settings) -> bool:
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        return Plain(connection, settings.target.collection).exists()


def held(settings: Settings) -> list[str]:
    """Return the texts of all points that readers find."""
    points = memory.points_in(settings).values()
    return foreigners.sorted_texts(payload["document"] for payload, _ in points)  # type: ignore[index]


@pytest.mark.rule("RB-01")
def test_a_collection_in_the_alias_s_place_is_refused_with_the_way_out(settings: Settings) -> None:
    for run in (on_the_wire.once, on_the_wire.rebuild):
        code, told = run(settings)
        assert code is ExitCode.REFUSED
        assert told.error is not None
        assert "syncer rebuild --adopt" in str(told.error.hint)
    assert is_plain(settings)
    assert memory.points_in(settings).keys() == THEIRS.keys()


@pytest.mark.rule("RB-01")
def test_its_points_become_rows_and_the_alias_takes_its_name(settings: Settings) -> None:
    code, told = adopt(settings)
    assert code is ExitCode.OK, told.error
    assert not is_plain(settings)
    assert foreigners.texts(settings.source.database) == held(settings) == TEXTS
    assert all(SYNC_KEY in payload for payload, _ in memory.points_in(settings).values())  # type: ignore[operator]
    assert on_the_wire.once(settings)[0] is ExitCode.OK
    assert on_the_wire.rebuild(settings)[0] is ExitCode.OK
    assert held(settings) == TEXTS


def test_a_second_adoption_is_a_rebuild(local: Settings) -> None:
    adopt(local)
    assert adopt(local)[0] is ExitCode.OK
    assert foreigners.texts(local.source.database) == held(local) == TEXTS


@pytest.mark.parametrize("with_vectors", [False, True])
def test_its_points_go_into_a_file_where_that_is_asked_for(
    settings: Settings, tmp_path: Path, with_vectors: bool
) -> None:
    foreigners.put(settings, {9: {"no": "text"}}, settings.target.collection)
    file = tmp_path / "theirs.jsonl"
    code, told = adopt(settings, file, with_vectors=with_vectors)
    assert code is ExitCode.OK, told.error
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["id"]: line["payload"] for line in lines} == {**THEIRS, 9: {"no": "text"}}
    vectors = [line.get("vectors") for line in lines if line["id"] != 9]
    assert vectors == [{"theirs": [1.0, 0.0, 0.0]} if with_vectors else None] * 3
    assert held(settings) == ["one", "two"]


def test_nothing_is_touched_if_one_of_its_points_cannot_become_a_row(local: Settings) -> None:
    foreigners.put(local, {9: {"no": "text"}}, local.target.collection)
    code, told = adopt(local)
    assert code is ExitCode.REFUSED
    assert told.error is not None
    assert "point 9: it has no text" in told.error.message
    assert "--export" in str(told.error.hint)
    assert memory.points_in(local).keys() == {*THEIRS, 9}
    assert foreigners.texts(local.source.database) == ["one", "two"]


def test_points_that_syncer_wrote_are_no_memories(local: Settings) -> None:
    ours: foreigners.Payloads = {
        9: {"document": "t", SYNC_KEY: {"row": "9", "chunk": 0, "chunks": 1}}
    }
    foreigners.put(local, ours, local.target.collection)
    code, told = adopt(local)
    assert code is ExitCode.REFUSED
    assert "syncer wrote it" in str(told.error)
    assert 9 in memory.points_in(local)


def test_a_collection_that_somebody_reads_through_an_alias_stays(settings: Settings) -> None:
    name = settings.target.collection
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        alias = models.CreateAlias(collection_name=name, alias_name=f"of_{name}")
        connection.client.update_collection_aliases(
            [models.CreateAliasOperation(create_alias=alias)]
        )
    code, told = adopt(settings)
    assert code is ExitCode.REFUSED
    assert f"of_{name}" in str(told.error)
    assert is_plain(settings)


def test_a_generation_that_served_before_is_kept(local: Settings) -> None:
    name = local.target.collection
    adopt(local)
    with memory.connect(memory.specs.target_spec(local)) as connection:
        before = Catalog(connection).resolve(name)
        gone = models.DeleteAlias(alias_name=name)
        connection.client.update_collection_aliases(
            [models.DeleteAliasOperation(delete_alias=gone)]
        )
    foreigners.make_plain(local, {77: {"document": "theirs again"}}, name)
    code, told = adopt(local)
    assert code is ExitCode.OK, told.error
    assert held(local) == sorted([*TEXTS, "theirs again"])
    with memory.opening.opened(local) as sides:
        phases = {each.generation: each.phase.value for each in sides.store.generations(name)}
    assert phases.pop(str(before)) == "kept"
    assert list(phases.values()) == ["serving"]


def arriving(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, times: int
) -> Callable[[], list[str]]:
    """Let somebody write to the collection whenever it is about to go; return their texts."""
    name, exists = settings.target.collection, Plain.exists
    calls = 0
    texts: list[str] = []

    def busy(self: Plain) -> bool:
        nonlocal calls
        calls += 1
        there = exists(self)
        if there and calls > 2 and len(texts) < times:  # before that nothing is about to go
            texts.append(f"late {len(texts)}")
            payload = {"document": texts[-1]}
            point = models.PointStruct(id=500 + len(texts), payload=payload, vector={})
            self._client.upsert(name, [point])
        return there

    monkeypatch.setattr(Plain, "exists", busy)
    return lambda: texts


def test_what_is_written_to_it_until_it_goes_comes_home_too(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = arriving(settings, monkeypatch, times=3)
    code, told = adopt(settings)
    assert code is ExitCode.OK, told.error
    assert len(late()) == 3
    assert held(settings) == foreigners.texts(settings.source.database) == sorted(TEXTS + late())


def test_it_stays_while_somebody_writes_to_it_all_the_time(
    local: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = arriving(local, monkeypatch, times=1000)
    code, told = adopt(local)
    assert code is ExitCode.REFUSED
    assert "meanwhile" in str(told.error)
    assert is_plain(local)
    monkeypatch.undo()
    assert adopt(local)[0] is ExitCode.OK
    assert held(local) == foreigners.texts(local.source.database) == sorted(TEXTS + late())


def test_the_step_that_is_not_atomic_is_said(
    local: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(on_the_wire.Told, "say", lambda _, message: said.append(message))
    adopt(local)
    assert any("Qdrant cannot rename" in each for each in said)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that was never synced, and a collection in its way, in local mode."""
    folder = tmp_path_factory.mktemp("base")
    memory.make_memory(folder, ["one", "two"])
    foreigners.make_plain(memory.settings_for(folder), THEIRS)
    return folder


def saved(folder: Path, file: Path | None) -> set[str]:
    """Return the texts that are somewhere: in the table, the file, or the plain collection."""
    found = set(foreigners.texts(folder / "memory.db"))
    if file is not None and file.exists():
        lines = map(json.loads, file.read_text().splitlines())
        found |= {line["payload"]["document"] for line in lines}
    settings = memory.settings_for(folder)
    if is_plain(settings):
        found |= set(held(settings))
    return found


@pytest.mark.rule("RB-01")
@pytest.mark.parametrize(
    ("moment", "export"),
    [pytest.param(*each, marks=[pytest.mark.long] if each in LONG else []) for each in KILLS],
)
def test_killed_at_any_moment_nothing_is_lost_and_the_next_run_finishes(
    base: Path, tmp_path: Path, moment: str, export: bool
) -> None:
    folder = tmp_path / "memory"
    file = folder / "theirs.jsonl" if export else None
    dying.left_behind("adopt_child.py", base, folder, moment, *([str(file)] if file else []))
    assert saved(folder, file) == set(TEXTS)

    settings = memory.settings_for(folder)
    code, told = adopt(settings, file)
    assert code is ExitCode.OK, told.error
    expected = ["one", "two"] if export else TEXTS
    assert held(settings) == foreigners.texts(folder / "memory.db") == expected
    assert saved(folder, file) == set(TEXTS)
    if file is not None:
        assert len(file.read_text().splitlines()) == len(THEIRS)
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        names = [each.name for each in connection.client.get_collections().collections]
    # Nothing half made is left. Once all was done, the same command is a rebuild.
    assert len(names) == (2 if moment == "serving" else 1)


def test_where_the_table_is_not_syncers_a_file_must_be_named(tmp_path: Path) -> None:
    memory.make_memory(tmp_path, ["one"])
    options: dict[str, Any] = {
        "source.changes": "append_only",
        "source.state": str(tmp_path / "state.db"),
    }
    settings = memory.settings_for(tmp_path, **options)
    foreigners.make_plain(settings, THEIRS)
    code, told = adopt(settings)
    assert code is ExitCode.USAGE
    assert "--export" in str(told.error)
    assert is_plain(settings)
    assert adopt(settings, tmp_path / "f.jsonl")[0] is ExitCode.OK
    assert held(settings) == ["one"]


def test_options_that_do_not_go_together_are_refused_before_anything_is_done(
    tmp_path: Path,
) -> None:
    memory.make_memory(tmp_path, ["one"])
    word = f"source.database={tmp_path / 'memory.db'}"
    for option in (["--export", "f.jsonl"], ["--with-vectors"], ["--adopt", "--plan"]):
        done = commands.run("rebuild", *option, "--set", word, cwd=tmp_path)
        assert done.code == ExitCode.USAGE
        assert "--adopt" in done.err
