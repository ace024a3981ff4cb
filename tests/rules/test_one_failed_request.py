"""Any one request of any command may fail, and the command succeeds all the same."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import foreigners
import memory
import on_the_wire as wire
import pytest
from qdrant_http import Server
from rebuilding import equality

from syncer.cli.adopt import adopt
from syncer.cli.gc import gc
from syncer.cli.once import dry_run as once_dry_run
from syncer.cli.planned import plan
from syncer.cli.rebuild import rollback
from syncer.cli.recover import Wish, recover
from syncer.cli.recover import dry_run as recover_dry_run
from syncer.cli.rows import confirm_deletes
from syncer.errors import ExitCode
from syncer.settings import Settings

LONG = "a text that is long enough to be cut into several chunks of a few words each"
ROWS = [*(f"memory {number}" for number in range(30)), LONG, f"another {LONG}"]
CHANGES = (
    f"UPDATE memory_events SET content = '{LONG}' WHERE id = 1",
    "UPDATE memory_events SET content = 'short now' WHERE id = 31",
    "UPDATE memory_events SET agent = 'b' WHERE id IN (2, 32)",
    "DELETE FROM memory_events WHERE id = 3",
)
MOST = 200  # requests of a command
STEP = 6


def change(settings: Settings) -> None:
    """Edit, delete and move rows."""
    for sql in CHANGES:
        memory.execute(settings.source.database, sql)


def synced(settings: Settings) -> None:
    """Bring everything in."""
    assert wire.once(settings)[0] == ExitCode.OK


def changed(settings: Settings) -> None:
    """Bring everything in, then change rows."""
    synced(settings)
    change(settings)


def drifted(settings: Settings) -> None:
    """Bring everything in, then take points away behind syncer's back."""
    synced(settings)
    with wire.anywhere_else(str(settings.target.url)) as client:
        client.delete(settings.target.collection, points_selector=[1, 2, 31])


def put_back(settings: Settings) -> None:
    """Bring everything in, and put back a copy of the database that knows less."""
    copy = settings.source.database.with_name("copy.db")
    synced(settings)
    shutil.copy(settings.source.database, copy)
    change(settings)
    synced(settings)
    for name in ("memory.db-wal", "memory.db-shm"):
        settings.source.database.with_name(name).unlink(missing_ok=True)
    shutil.copy(copy, settings.source.database)


def withheld(settings: Settings) -> None:
    """Bring everything in, and delete too much."""
    synced(settings)
    memory.execute(settings.source.database, "DELETE FROM memory_events WHERE id > 5")
    assert wire.once(settings)[0] == ExitCode.WITHHELD


def rebuilt(settings: Settings) -> None:
    """Have a generation to go back to, and changes since."""
    synced(settings)
    assert wire.rebuild(settings)[0] == ExitCode.OK
    change(settings)


def visited(settings: Settings) -> None:
    """Bring everything in, and let another tool write."""
    synced(settings)
    foreigners.put(settings, {foreigners.UUID: {"document": "theirs"}, 900: {"document": "too"}})


def made_by_another(settings: Settings) -> None:
    """Let another tool have made a collection of the alias's name."""
    foreigners.make_plain(settings, {foreigners.UUID: {"document": "theirs"}})


def previewed(settings: Settings) -> ExitCode:
    """Ask for all that is only looked at."""
    once_dry_run(settings)
    recover_dry_run(settings, Wish())
    plan(settings)
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class Case:
    """A command, what was there before, and whether all is equal afterwards."""

    before: Callable[[Settings], None]
    command: Callable[[Settings], ExitCode]
    equal: bool = True
    preserve: bool = False


def removed(settings: Settings) -> ExitCode:
    """Let go of what served before."""
    gc(settings, 0, dry_run=False)
    return ExitCode.OK


def adopted(settings: Settings) -> ExitCode:
    """Take over a collection that another tool has made."""
    return adopt(settings, wire.Told(), None, with_vectors=False)


def marked(settings: Settings) -> None:
    """Let another tool put a key into points, some of which change then."""
    synced(settings)
    with wire.anywhere_else(str(settings.target.url)) as client:
        client.set_payload(settings.target.collection, {"theirs": 1}, points=[1, 2, 3, 4, 31])
    change(settings)


def assert_preserved(settings: Settings) -> None:
    """See that the key is still there."""
    found = memory.points_in(settings).items()
    assert {one for one, (payload, _) in found if "theirs" in payload} == {1, 2, 4, 31}  # type: ignore[operator]


CASES = {
    "first once": Case(lambda _: None, lambda s: wire.once(s)[0]),
    "once": Case(changed, lambda s: wire.once(s)[0]),
    "reconcile": Case(put_back, lambda s: wire.once(s, reconcile=True)[0]),
    "rebuild": Case(changed, lambda s: wire.rebuild(s)[0]),
    "rollback": Case(rebuilt, lambda s: rollback(s, wire.Told(), None)),
    "gc": Case(rebuilt, removed, equal=False),
    "verify": Case(synced, lambda s: wire.verify(s, sample=5)[0]),
    "verify --repair": Case(drifted, lambda s: wire.verify(s, repair=True)[0]),
    "confirm-deletes": Case(withheld, lambda s: confirm_deletes(s, wire.Told())),
    "recover": Case(visited, lambda s: recover(s, Wish())),
    "rebuild --adopt": Case(made_by_another, adopted),
    "once that preserves": Case(marked, lambda s: wire.once(s)[0], preserve=True),
    "rebuild that preserves": Case(marked, lambda s: wire.rebuild(s)[0], preserve=True),
    "dry runs": Case(visited, previewed, equal=False),
}


def tried(server: Server, folder: Path, case: Case, number: int) -> bool:
    """Let that request of a command fail; say whether there was one."""
    folder.mkdir()
    memory.make_memory(folder, ROWS)
    options = {"embed.chunk_tokens": 8, "target.retry_budget": 30}
    options["target.preserve_foreign_payload"] = case.preserve
    settings = wire.settings(folder, server.url, **options)
    case.before(settings)
    server.faults.happened.clear()
    server.faults.next("error", status=(500, 503)[number % 2], skip=number, applied=number % 3 == 0)
    code = case.command(settings)
    met = [f"{one.method} {one.path}" for one in server.faults.happened]
    server.faults.clear()
    assert code == ExitCode.OK, f"request {number} failed: {met}"
    if case.equal:
        equality.assert_equal(settings)
    if case.preserve:
        assert_preserved(settings)
    with wire.anywhere_else(server.url) as client:
        for one in client.get_collections().collections:
            client.delete_collection(one.name)
    return bool(met)


def try_requests(server: Server, folder: Path, name: str, step: int) -> None:
    """Let each request of a command fail in turn, or each `step`-th from a random one on."""
    first = random.randrange(step)  # noqa: S311 - no secret
    for number in range(first, MOST, step):
        if not tried(server, folder / str(number), CASES[name], number):
            break
    assert first < number < MOST - step


@pytest.mark.rule("QT-02")
@pytest.mark.parametrize("name", CASES)
def test_any_one_request_may_fail(name: str, server: Server, tmp_path: Path) -> None:
    try_requests(server, tmp_path, name, STEP)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_each_request_may_fail(name: str, server: Server, tmp_path: Path) -> None:
    try_requests(server, tmp_path, name, 1)
