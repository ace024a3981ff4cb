"""Rule QT-05 where another generation takes over: what others have put into points goes along."""

from __future__ import annotations

from typing import Any

import memory
import on_the_wire as wire
import pytest
from preserved import THEIRS, opened, with_options
from qdrant_client import models
from qdrant_http import Server
from rebuilding import equality, here

from syncer.errors import ExitCode
from syncer.settings import Settings
from syncer.target import Catalog, ForeignPayload, GenerationTarget

pytestmark = pytest.mark.rule("QT-05")


def test_a_rebuild_and_a_rollback_take_over_what_others_put_there(preserving: Settings) -> None:
    with opened(preserving, long=False) as place:
        place.sync()
        place.mark(1, 2)
        client = place.connection.client
        client.set_payload("memory", {"nothing": None, "few": ["x"]}, points=[1])
        client.upsert("memory", [models.PointStruct(id=99, payload={"t": 1}, vector={})])
    blue = equality.serving(preserving)
    wider = with_options(preserving, **{"embed.dimension": 16})
    assert wire.rebuild(wider)[0] == ExitCode.OK
    assert payloads(wider) == {1: {**THEIRS, "few": ["x"]}, 2: THEIRS, 3: {}}
    equality.assert_equal(wider)
    with memory.connect(memory.specs.target_spec(wider)) as connection:
        connection.client.set_payload("memory", {"few": ["y"]}, points=[1, 3])
    assert here.rollback(wider)[0] == ExitCode.OK
    assert equality.serving(preserving) == blue
    assert payloads(preserving) == {
        1: {**THEIRS, "few": ["y"]},
        2: THEIRS,
        3: {"few": ["y"]},
        99: {"t": 1},
    }
    equality_of_vectors(preserving, blue)


def test_what_is_put_there_while_a_rebuild_runs_is_taken_over_and_a_renamed_key_is_not(
    preserving: Settings,
) -> None:
    memory.sync_memory(preserving)

    def mark(turn: int) -> None:
        if turn == 1:
            with memory.connect(memory.specs.target_spec(preserving)) as connection:
                connection.client.set_payload("memory", THEIRS, points=[1])

    renamed = with_options(
        preserving, **{"embed.dimension": 16, "target.document_key": "page_content"}
    )
    if preserving.target.url is not None:
        with here.before("compared", mark):
            assert wire.rebuild(renamed)[0] == ExitCode.OK
    else:  # the folder belongs to one process
        mark(1)
        assert wire.rebuild(renamed)[0] == ExitCode.OK
    assert payloads(renamed) == {1: THEIRS, 2: {}, 3: {}}


def test_a_rebuild_that_is_killed_before_the_swap_takes_them_over_the_next_time(
    preserving: Settings,
) -> None:
    with opened(preserving, long=False) as place:
        place.sync()
        place.mark(1, 2)
    wider = with_options(preserving, **{"embed.dimension": 16})
    here.interrupted(wider, "alias")
    with memory.connect(memory.specs.target_spec(preserving)) as connection:
        connection.client.set_payload("memory", {"late": 1}, points=[3])
    assert wire.rebuild(wider)[0] == ExitCode.OK
    assert payloads(wider) == {1: THEIRS, 2: THEIRS, 3: {"late": 1}}


def payloads(settings: Settings) -> dict[object, dict[str, Any]]:
    """Return all points' payloads without syncer's own keys."""
    ours = {settings.target.document_key, "metadata", "_sync"}
    return {
        one: {key: value for key, value in payload.items() if key not in ours}  # type: ignore[attr-defined]
        for one, (payload, _) in memory.points_in(settings).items()
    }


def equality_of_vectors(settings: Settings, name: str) -> None:
    """See that the vectors of a generation's own points are those of their texts."""
    with memory.connect(memory.specs.target_spec(settings)) as connection:
        connection.client.delete("memory", models.PointIdsList(points=[99]))
        equality.assert_vectors(settings, connection, name, 10)


def test_keys_go_over_page_by_page_once_and_only_to_points_that_are_there(
    server: Server,
) -> None:
    with wire.fresh(server.url, preserve_foreign_payload=True) as old:
        catalog, heir = Catalog(old.connection), "wire--20200101t000000-0000"
        catalog.make(heir, wire.DESCRIPTION, [])
        old.target.upsert([wire.point(number) for number in range(600)])
        GenerationTarget(old.connection, heir).upsert([wire.point(n) for n in range(100, 700)])
        old.client.set_payload(old.generation, THEIRS, points=models.Filter())
        foreign = models.PointStruct(id=650, payload=THEIRS, vector={})
        old.client.upsert(old.generation, [foreign])
        old.client.delete_payload(old.generation, list(THEIRS), points=list(range(200, 300)))
        old.sent.clear()
        assert carry(old, heir) == 3
        assert len([one for one in old.sent if one.path.endswith("/batch")]) == 3
        found, _ = old.client.scroll(heir, limit=1000)
        having = {one.id for one in found if (one.payload or {}).get("seen") == THEIRS["seen"]}
        assert having == {*range(100, 200), *range(300, 600)}
        assert len(found) == 600
        old.sent.clear()
        assert carry(old, heir) == 3
        assert not [one for one in old.sent if one.path.endswith("/batch")]


def carry(old: wire.Wire, heir: str) -> int:
    """Let all keys go over; return how many pages that took."""
    payload = ForeignPayload(old.connection, old.generation, heir)
    pages, offset = 1, payload.carry()
    while offset is not None:
        pages, offset = pages + 1, payload.carry(offset)
    return pages


@pytest.mark.parametrize("lost", [True, False])
def test_a_collection_that_is_lost_or_does_not_know_itself_keeps_no_rebuild_from_ending(
    preserving: Settings, lost: bool
) -> None:
    memory.sync_memory(preserving)
    blue = equality.serving(preserving)
    with memory.connect(memory.specs.target_spec(preserving)) as connection:
        if lost:
            connection.client.delete_collection(blue)
        else:
            connection.client.update_collection(blue, metadata={"syncer": {"format": 99}})
    code, told = wire.rebuild(preserving)
    assert code == ExitCode.OK
    assert any("payload keys" in one and blue in one for one in told.warnings) is not lost
    assert payloads(preserving) == {1: {}, 2: {}, 3: {}}
