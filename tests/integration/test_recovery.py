"""Foreign points come home, once, and nothing of them is lost: local mode and over the wire."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import foreigners
import memory
import on_the_wire
import pytest
from foreigners import UUID
from qdrant_client import models
from qdrant_http import Options, Server, running

from syncer.canonical import CanonicalTable
from syncer.cli.recover import Wish, dry_run, recover
from syncer.errors import ExitCode, SettingsError, SourceBusyError, TargetError
from syncer.exported import exporting
from syncer.foreign import Foreign, Form, memory_of
from syncer.settings import Settings
from syncer.target import Connection, ForeignPoints

FOREIGN: foreigners.Payloads = {
    UUID: {"document": "from a uuid", "metadata": {"agent": "planner", "k": 1}},
    4: {"document": "from the next row's id", "metadata": None},
    5: {"document": "from the one behind"},
}
HOME = ["from a uuid", "from the next row's id", "from the one behind", "one", "three", "two"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Qdrant over HTTP."""
    with running(Options(folder=tmp_path_factory.mktemp("qdrant") / "storage")) as found:
        yield found


@pytest.fixture(params=["local", "http"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> Settings:
    """A memory of three rows that is in sync, in local mode and on a server."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    found = foreigners.settings_on(request.param, tmp_path, server.url)
    memory.sync_memory(found)
    return found


@pytest.fixture
def local(tmp_path: Path) -> Settings:
    """The same in local mode alone, for what does not depend on it."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    found = memory.settings_for(tmp_path, **{"sparse.enabled": False})
    memory.sync_memory(found)
    return found


def put(settings: Settings, payloads: foreigners.Payloads) -> None:
    foreigners.put(settings, payloads, settings.target.collection)


def database(settings: Settings) -> Path:
    return settings.source.database


def held(settings: Settings) -> list[str]:
    """Return the texts of all points."""
    points = memory.points_in(settings).values()
    return foreigners.sorted_texts(payload["document"] for payload, _ in points)  # type: ignore[index]


def rows_of(settings: Settings) -> list[int]:
    """Return the rows of all points, by which each of them is syncer's."""
    points = memory.points_in(settings)
    assert all(payload["_sync"]["row"] == str(key) for key, (payload, _) in points.items())  # type: ignore[index]
    return sorted(points)  # type: ignore[arg-type]


def test_every_foreign_point_becomes_a_row_and_the_rows_own_point_takes_its_place(
    settings: Settings,
) -> None:
    put(settings, FOREIGN)
    assert recover(settings, Wish()) is ExitCode.OK
    assert foreigners.texts(database(settings)) == held(settings) == HOME
    assert rows_of(settings) == [row for row, _ in foreigners.rows(database(settings))]


def test_a_second_run_writes_nothing(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    put(settings, FOREIGN)
    recover(settings, Wish())
    before = foreigners.rows(database(settings)), memory.points_in(settings)
    capsys.readouterr()
    assert recover(settings, Wish(as_json=True)) is ExitCode.OK
    said = json.loads(capsys.readouterr().out)
    assert not any(said["foreign"].values())
    assert (foreigners.rows(database(settings)), memory.points_in(settings)) == before


def test_the_audit_says_where_each_row_came_from(local: Settings) -> None:
    put(local, FOREIGN)
    recover(local, Wish())
    sql = (
        "SELECT a.point, e.content, a.collection, json_extract(e.metadata, '$.recovered.point') "
        "FROM audit_recovered a JOIN memory_events e ON e.id = a.row_id"
    )
    found = {point: rest for point, *rest in foreigners.rows(database(local), sql)}
    assert {json.loads(point): text for point, (text, *_) in found.items()} == {
        key: payload["document"] for key, payload in FOREIGN.items()
    }
    for point, (_, collection, said) in found.items():
        assert collection.startswith(f"{local.target.collection}--")
        assert said == json.loads(point)


def test_a_quarantined_row_gets_its_id_back_from_the_foreign_point_that_had_it(
    settings: Settings,
) -> None:
    put(settings, {4: {"document": "somebody else's"}})
    sql = "INSERT INTO memory_events (agent, scope, source, content) VALUES ('a', 's', 'x', 'four')"
    memory.execute(database(settings), sql)
    result = memory.sync_memory(settings)
    assert [each.reason.value for each in result.quarantined] == ["foreign_point"]

    assert recover(settings, Wish()) is ExitCode.OK
    assert dict(foreigners.rows(database(settings)))[4] == "four"
    assert held(settings) == ["four", "one", "somebody else's", "three", "two"]
    assert not foreigners.rows(database(settings), "SELECT 1, row FROM syncer_quarantine")


def test_a_point_stays_until_the_rows_own_point_is_in_the_collection(
    local: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = {"document": "mine"}
    found = memory_of(Foreign(UUID, mine), Form("memory", "2026"))
    with closing(CanonicalTable(database(local))) as table:
        assert table.bring_home([found], "memory", [10]) == {UUID: 10}  # type: ignore[list-item]
    put(local, {UUID: mine, 10: {"no": "text"}})
    capsys.readouterr()
    assert recover(local, Wish(as_json=True)) is ExitCode.QUARANTINED
    *lines, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert {line["point"]: (line["fate"], line["row"]) for line in lines} == {
        UUID: ("waits", 10),
        10: ("left", None),
    }
    assert (last["foreign"]["waits"], last["foreign"]["left"]) == (1, 1)
    assert memory.points_in(local)[UUID][0] == mine
    put(local, {10: {"document": "has one by now"}})
    assert recover(local, Wish()) is ExitCode.OK
    assert held(local) == ["has one by now", "mine", "one", "three", "two"]
    assert memory.points_in(local)[10][0]["document"] == "mine"  # type: ignore[index]


def test_a_point_that_was_written_again_with_another_text_comes_home_again(
    local: Settings,
) -> None:
    for text in ("first", "first", "second"):
        put(local, {UUID: {"document": text}})
        assert recover(local, Wish()) is ExitCode.OK
    assert held(local) == ["first", "one", "second", "three", "two"]
    assert foreigners.texts(database(local)) == held(local)


def test_a_point_whose_row_was_deleted_since_stays_until_somebody_says_so(
    local: Settings,
) -> None:
    put(local, {UUID: {"document": "mine"}})
    recover(local, Wish())
    memory.execute(database(local), "DELETE FROM memory_events WHERE content = 'mine'")
    put(local, {UUID: {"document": "mine"}})
    assert recover(local, Wish()) is ExitCode.QUARANTINED
    assert foreigners.texts(database(local)) == ["one", "three", "two"]
    assert held(local) == ["mine", "one", "three", "two"]
    assert recover(local, Wish(delete=True, confirmed=lambda _: True)) is ExitCode.OK
    assert held(local) == ["one", "three", "two"]


def test_what_has_no_text_is_listed_and_left(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    put(settings, {9: {"picture": "secret words"}, UUID: {"document": "secret too"}})
    capsys.readouterr()
    assert recover(settings, Wish(as_json=True)) is ExitCode.QUARANTINED
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["point"], one["fate"], one["why"]) for one in said[:-1]] == [
        (9, "left", "it has no text"),
        (UUID, "home", None),
    ]
    assert (said[-1]["foreign"]["left"], said[-1]["exit_code"]) == (1, 3)
    assert 9 in memory.points_in(settings)


def test_nothing_is_deleted_unless_it_is_confirmed(local: Settings) -> None:
    put(local, {9: {"picture": "p"}})
    asked: list[int] = []

    def no(number: int) -> bool:
        asked.append(number)
        return False

    assert recover(local, Wish(delete=True, confirmed=no)) is ExitCode.QUARANTINED
    assert 9 in memory.points_in(local)
    assert recover(local, Wish(delete=True, confirmed=lambda _: True)) is ExitCode.OK
    assert asked == [1]
    assert held(local) == ["one", "three", "two"]


def test_a_dry_run_lists_everything_and_writes_nothing(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    put(settings, {**FOREIGN, 9: {"picture": "p"}})
    points, rows = memory.points_in(settings), foreigners.rows(database(settings))
    capsys.readouterr()
    dry_run(settings, Wish(as_json=True))
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (said[-1]["foreign"]["found"], said[-1]["foreign"]["left"]) == (3, 1)
    assert len(said) == 5
    assert (memory.points_in(settings), foreigners.rows(database(settings))) == (points, rows)


def test_a_text_is_shown_only_to_whom_asks_for_it(
    local: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    canary = "a line that nobody asked to see"
    put(local, {UUID: {"document": canary, "metadata": {"k": canary}}, 9: {"other": canary}})
    dry_run(local, Wish())
    recover(local, Wish())
    put(local, {7: {"document": canary}})
    before = capfd.readouterr()
    assert canary not in before.out + before.err
    dry_run(local, Wish(show=True))
    assert canary in capfd.readouterr().out


def test_points_go_into_a_file_instead_each_once_and_stay_where_they_are(
    local: Settings, tmp_path: Path
) -> None:
    put(local, {**FOREIGN, 9: {"picture": "p"}})
    file = tmp_path / "foreign.jsonl"
    for _ in range(2):
        assert recover(local, Wish(to=file)) is ExitCode.OK
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["id"]: line["payload"] for line in lines} == {**FOREIGN, 9: {"picture": "p"}}
    assert len(lines) == 4
    assert foreigners.texts(database(local)) == ["one", "three", "two"]
    assert len(memory.points_in(local)) == 7


def test_exported_points_are_deleted_when_that_is_confirmed(
    local: Settings, tmp_path: Path
) -> None:
    put(local, {**FOREIGN, 9: {"picture": "p"}})
    wish = Wish(to=tmp_path / "f.jsonl", delete=True, confirmed=lambda number: number == 4)
    assert recover(local, wish) is ExitCode.OK
    assert held(local) == ["one", "three", "two"]
    assert len((tmp_path / "f.jsonl").read_text().splitlines()) == 4


def test_a_stop_between_two_pages_loses_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, {number: {"document": f"text {number}"} for number in range(100, 350)})
    pages = ForeignPoints.pages

    def stopping(self: ForeignPoints) -> Iterator[list[Foreign]]:
        for number, page in enumerate(pages(self)):
            if number == 1:
                signal.raise_signal(signal.SIGTERM)
            yield page

    with monkeypatch.context() as patched:
        patched.setattr(ForeignPoints, "pages", stopping)
        assert recover(settings, Wish()) is ExitCode.TERMINATED
    assert len(foreigners.rows(database(settings))) == 103
    assert recover(settings, Wish()) is ExitCode.OK
    assert len(foreigners.rows(database(settings))) == 253
    assert held(settings) == foreigners.texts(database(settings))


@pytest.mark.rule("SE-07")
@pytest.mark.parametrize("mode", ["append_only", "updated_at", "attached"])
def test_rows_are_written_into_no_table_but_the_one_that_init_made(
    tmp_path: Path, mode: str
) -> None:
    path = memory.make_memory(tmp_path, ["one"])
    options = {"source.changes": mode, "source.state": str(tmp_path / "state.db")}
    if mode == "attached":
        memory.execute(path, "CREATE TABLE notes (id INTEGER PRIMARY KEY, content TEXT)")
        options = {"source.table": "notes", "source.content": "content"}
        from syncer.cli.attach import attach  # noqa: PLC0415

        attach(memory.settings_for(tmp_path, **options))
    settings = memory.settings_for(tmp_path, **options)
    memory.sync_memory(settings)
    put(settings, {9: {"document": "foreign"}})
    before = path.read_bytes()
    assert recover(settings, Wish()) is ExitCode.USAGE
    assert path.read_bytes() == before
    assert recover(settings, Wish(to=tmp_path / "f.jsonl")) is ExitCode.OK
    assert foreigners.texts(path) == ["one"]


def test_ids_that_a_writer_takes_meanwhile_are_not_given_twice(tmp_path: Path) -> None:
    path = memory.make_memory(tmp_path, ["one"])
    found = [memory_of(Foreign(n, {"document": f"t{n}"}), Form("c", "2026")) for n in (50, 51)]
    with closing(CanonicalTable(path)) as table:
        free = [2, 3, 4]
        memory.execute(path, "INSERT INTO memory_events (scope, source, content) VALUES (1, 1, 1)")
        homes = table.bring_home(found, "c", free)  # type: ignore[arg-type]
        assert homes == {50: 3, 51: 4}
        more = memory_of(Foreign(52, {"document": "t52"}), Form("c", "2026"))
        with pytest.raises(SourceBusyError, match="no id is left"):
            table.bring_home([more], "c", free)  # type: ignore[list-item]
    assert len(foreigners.rows(path)) == 4


def test_a_row_that_a_rule_of_the_application_refuses_leaves_its_point_where_it_is(
    tmp_path: Path,
) -> None:
    settings = memory.settings_for(tmp_path)
    path = memory.make_memory(tmp_path, ["one"])
    memory.sync_memory(settings)
    memory.execute(path, "CREATE UNIQUE INDEX app_scope ON memory_events (agent, content)")
    put(settings, {50: {"document": "one", "metadata": {"agent": "a"}}, 51: {"document": "two"}})
    assert recover(settings, Wish()) is ExitCode.QUARANTINED
    assert foreigners.texts(path) == ["one", "two"]
    assert held(settings) == ["one", "one", "two"]


AUDIT = (
    "UPDATE audit_recovered SET row_id = 9",
    "DELETE FROM audit_recovered",
    "INSERT OR REPLACE INTO audit_recovered SELECT 9, '', 9, '', point, payload_hash "  # noqa: ISC004
    "FROM audit_recovered",
    "INSERT OR REPLACE INTO audit_recovered VALUES (1, '', 9, 'c', 'p', 'h')",
)


@pytest.mark.parametrize("sql", AUDIT)
def test_the_record_of_where_a_row_came_from_cannot_be_changed(tmp_path: Path, sql: str) -> None:
    path = memory.make_memory(tmp_path)
    found = memory_of(Foreign(50, {"document": "text"}), Form("c", "2026"))
    with closing(CanonicalTable(path)) as table:
        table.bring_home([found], "c", [1])  # type: ignore[list-item]
    with pytest.raises(memory.sqlite3.IntegrityError, match="audit_recovered: "):
        memory.execute(path, sql)


@pytest.mark.parametrize("left", ["{", '{"collection": "c", "id": 1}\n', "[]\n", "words\n"])
def test_a_file_that_holds_something_else_is_left_alone(tmp_path: Path, left: str) -> None:
    file = tmp_path / "f.jsonl"
    file.write_text(left)
    if not left.endswith("\n"):  # a line that was cut off is added anew
        with exporting(file) as export:
            assert export.add(Foreign(1, {"document": "t"}), "c")
        assert json.loads(file.read_text())["id"] == 1
        return
    with pytest.raises(SettingsError, match="something else"), exporting(file):
        pass
    assert file.read_text() == left


def test_a_file_is_as_it_was_before_if_writing_it_fails_midway(tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    with exporting(file) as export:
        export.add(Foreign(1, {"document": "t"}), "c")
    before = file.read_text()
    with pytest.raises(KeyboardInterrupt), exporting(file) as export:  # noqa: PT012
        assert not export.add(Foreign(1, {"document": "t"}), "c")
        assert export.add(Foreign(1, {"document": "other"}), "c")
        raise KeyboardInterrupt
    assert file.read_text() == before
    assert file.stat().st_mode & 0o077 == 0


def test_a_server_that_gives_the_same_page_again_and_again_ends_the_run(
    tmp_path: Path, server: Server
) -> None:
    with on_the_wire.fresh(server.url) as wire:
        wire.target.upsert([on_the_wire.point(number) for number in range(3)])
        scroll: Callable[..., tuple[list[models.Record], object]] = wire.client.scroll
        wire.client.scroll = lambda *a, **o: (scroll(*a, **o)[0], 1)  # type: ignore[method-assign]
        with pytest.raises(TargetError, match="same page"):
            list(ForeignPoints(wire.connection, wire.generation).pages())


def test_pages_are_as_small_as_strict_mode_wants_them(tmp_path: Path, server: Server) -> None:
    with on_the_wire.fresh(server.url) as wire:
        strict = models.StrictModeConfig(
            enabled=True, max_query_limit=7, unindexed_filtering_retrieve=False
        )
        wire.client.update_collection(wire.generation, strict_mode_config=strict)
        wire.client.upsert(
            wire.generation,
            [
                models.PointStruct(id=number, payload={"document": str(number)}, vector={})
                for number in range(20)
            ],
        )
        found = ids_in(wire.connection, wire.generation)
    assert found == list(range(20))


def ids_in(connection: Connection, collection: str) -> list[object]:
    return [point.id for page in ForeignPoints(connection, collection).pages() for point in page]
