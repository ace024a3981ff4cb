"""One round of a random schedule: writes, commands, kills, faults and changed settings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import memory
import on_the_wire as wire
from qdrant_client import QdrantClient
from qdrant_http import Server

from rebuilding import equality
from rebuilding.moments import PLACES, Act, Moment
from rebuilding.nursery import KILLED, Ended, Nursery
from syncer.errors import ExitCode
from syncer.settings import Settings

RECIPES: tuple[Mapping[str, object], ...] = (
    {"embed.dimension": 8},
    {"embed.dimension": 8, "embed.passage_prefix": "a passage: "},
    {"embed.dimension": 16},
    {"embed.dimension": 16, "embed.chunk_tokens": 12},
    {"embed.dimension": 8, "embed.chunk_tokens": 8, "sync.window_rows": 3},
)
MAPPINGS: tuple[tuple[Mapping[str, object], str], ...] = (
    ({}, "1"),
    ({"source.metadata": "agent,scope"}, "1"),
    ({"source.where": "scope <> 'out'"}, "scope <> 'out'"),
)
LONG = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron pi rho"
COMMANDS = ("once", "rebuild", "rollback", "gc", "confirm-deletes")
FAULTS = ("closed_before", "closed_during", "closed_after", "error", "half_applied")
AIMS: Mapping[str, tuple[str, ...]] = {
    "once": ("token", "position", "upsert", "overwrite", "delete", "opened", "counted"),
    "rebuild": tuple(sorted(set(PLACES) - {"confirmed", "overwrite"})),
    "rollback": ("phase", "lent", "upsert", "position", "compared", "alias", "served", "token"),
    "gc": ("removed", "forgotten"),
    "confirm-deletes": ("confirmed", "delete", "position"),
}
"""Where a command is likely to get to."""
_ROWS = 24
_REFUSED = {"once", "rollback", "confirm-deletes"}
_FINE = {int(ExitCode.OK), int(ExitCode.WITHHELD)}


@dataclass(slots=True)
class Tally:
    """What the schedules have done, so that those that do nothing cannot pass."""

    steps: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    meanwhile: int = 0
    faults: int = 0
    comparisons: int = 0
    withheld: int = 0
    swaps: int = 0
    reused: int = 0


class Round:
    """A memory on a server, what its settings are just now, and who works on it."""

    def __init__(
        self,
        forks: Nursery,
        server: Server,
        folder: Path,
        seed: int,
        tally: Tally,
        bug: str | None = None,
    ) -> None:
        self._forks, self._server, self._folder, self._tally = forks, server, folder, tally
        self._bug = bug
        self._chance = random.Random(seed)  # noqa: S311 - no secret
        self._told: list[str] = [f"seed {seed}"]
        self._recipe, self._mapping = RECIPES[0], MAPPINGS[0]
        self._served: str | None = None
        self._new = 0
        self._path = memory.make_memory(folder, [self._text() for _ in range(_ROWS)])

    def run(self, steps: int) -> None:
        """Take so many steps, then see that an operator gets everything to be equal."""
        try:
            self._command("once")
            for _ in range(steps):
                self._tally.steps += 1
                self._step()
                self._look()
            self._server.faults.clear()
            self._set_right()
        except AssertionError as error:
            error.add_note("\n".join(self._told))
            raise

    # what may happen

    def _step(self) -> None:
        steps: list[tuple[Callable[[], object], int]] = [
            (self._write, 6),
            (lambda: self._command(self._any_command()), 6),
            (lambda: self._die(self._any_command()), 6),
            (lambda: self._write_meanwhile(self._any_command()), 4),
            (self._other_recipe, 2),
            (self._empty, 1),
            (self._other_mapping, 1),
            (self._fault, 2),
        ]
        (step,) = self._chance.choices([one for one, _ in steps], [weight for _, weight in steps])
        step()

    def _any_command(self) -> str:
        (found,) = self._chance.choices(COMMANDS, (6, 8, 4, 1, 1))
        return str(found)

    def _empty(self) -> None:
        """Let nearly all rows go, which no rebuild may take for granted."""
        memory.execute(self._path, "DELETE FROM memory_events WHERE id > 2")
        self._tell("nearly all rows go")
        if self._command("rebuild").code == ExitCode.WITHHELD:
            self._tally.withheld += 1
            place = self._chance.choice(AIMS["confirm-deletes"])
            self._command("confirm-deletes", dying=Moment(place, after=self._chance.random() < 0.5))

    def _write(self) -> None:
        self._tell(sql := self._statements())
        with closing(memory.write(self._path)) as connection, connection:
            connection.executescript(f"BEGIN IMMEDIATE; {sql}; COMMIT")

    def _command(self, name: str, *acts: Act, dying: Moment | None = None) -> Ended:
        arguments = [self._chance.choice("01")] if name == "gc" else []
        self._tell(f"{name} {self._options()} {acts or ''} {dying or ''}")
        ended = self._forks.run(
            self._folder, self._options(), name, *arguments, acts=acts, dying=dying, bug=self._bug
        )
        self._tell(str(ended))
        self._tally.commands[name] += 1
        self._tally.reused += ended.reused
        if ended.code == KILLED:
            self._tally.kills[str(dying.place) if dying else ""] += 1
        else:
            self._judge(name, ended)
        return ended

    def _die(self, name: str) -> None:
        place = self._chance.choice(AIMS[name])
        turn = self._chance.choice((1, 1, 1, 1, 2, 2, 3))
        if place in {"walk again", "described"}:
            self._begun_by_another_mapping()
        elif name != "gc":
            self._write()
        self._command(name, dying=Moment(place, turn, self._chance.random() < 0.5))

    def _begun_by_another_mapping(self) -> None:
        """Leave a green behind that has to be walked through again."""
        self._command("rebuild", dying=Moment("position"))
        self._mapping = MAPPINGS[(MAPPINGS.index(self._mapping) + 1) % len(MAPPINGS)]

    def _write_meanwhile(self, name: str) -> None:
        moment = Moment(
            self._chance.choice(("upsert", "position", "compared", "alias", "lent", "phase")),
            self._chance.choice((1, 1, 2, 3)),
            self._chance.random() < 0.5,
        )
        self._tally.meanwhile += 1
        self._command(name, Act(moment, self._statements()))

    def _other_recipe(self) -> None:
        self._recipe = self._chance.choice(RECIPES)

    def _other_mapping(self) -> None:
        self._mapping = self._chance.choice(MAPPINGS)

    def _fault(self) -> None:
        self._write()
        self._server.faults.next(self._chance.choice(FAULTS), skip=self._chance.randrange(40))
        self._command(self._any_command())
        self._tally.faults += not self._server.faults.waiting
        self._server.faults.clear()

    # what must hold

    def _judge(self, name: str, ended: Ended) -> None:
        fine = set(_FINE)
        if name in _REFUSED or ended.code == ExitCode.REFUSED:
            fine |= {int(ExitCode.REFUSED)} if self._may_be_refused(name, ended) else set()
        assert ended.code in fine, f"{name} ended with {ended}"
        if ended.code == ExitCode.OK and name == "rebuild":
            self._tally.swaps += 1

    def _may_be_refused(self, name: str, ended: Ended) -> bool:
        """Say whether the settings ask for another recipe, or there is nothing to go back to."""
        said = ended.error or ""
        if name == "rollback":
            return "nothing to go back to" in said
        return name != "rebuild" and "made by another recipe" in said

    def _look(self) -> None:
        """See that the alias never points at nothing."""
        settings = self._settings()
        with wire.anywhere_else(self._server.url) as client:
            aliases = {one.alias_name: one.collection_name for one in client.get_aliases().aliases}
            found = aliases.get(settings.target.collection)
            assert found is not None or self._served is None, "nothing serves any more"
            self._served = found or self._served
            if found:
                assert client.collection_exists(found), "readers find nothing"

    def _set_right(self) -> None:
        """Rebuild until it is done, confirming what is to be; then compare everything."""
        for _ in range(3):
            ended = self._command("rebuild")
            if ended.code == ExitCode.OK:
                break
            assert ended.code == ExitCode.WITHHELD
            assert self._command("confirm-deletes").code == ExitCode.OK
        settings = self._settings()
        equality.assert_equal(settings, self._mapping[1])
        self._write()
        assert self._until_confirmed("once").code == ExitCode.OK
        equality.assert_equal(settings, self._mapping[1])
        assert self._forks.run(self._folder, self._options(), "gc", "0").code == ExitCode.OK
        ours = {one for one in equality.collections(settings) if one.startswith("memory--")}
        assert ours == {equality.serving(settings)}
        assert len(equality.generations(settings)) == 1
        self._tally.comparisons += 1

    def _until_confirmed(self, name: str) -> Ended:
        ended = self._command(name)
        if ended.code == ExitCode.WITHHELD:
            self._command("confirm-deletes")
            ended = self._command(name)
        return ended

    # what it is made of

    def _statements(self) -> str:
        return "; ".join(self._statement() for _ in range(self._chance.randint(1, 4)))

    def _statement(self) -> str:
        row = self._chance.randint(1, _ROWS + self._new)
        kind = self._chance.choice(("edit", "edit", "delete", "insert", "scope", "agent"))
        if self._chance.random() < 0.04:
            return "DELETE FROM memory_events"
        if kind == "insert":
            self._new += 1
            return (
                "INSERT INTO memory_events (agent, scope, source, content) "
                f"VALUES ('a', 's', 'x', '{self._text()}')"
            )
        if kind == "delete":
            return f"DELETE FROM memory_events WHERE id = {row}"
        value = {
            "edit": f"content = '{self._text()}'",
            "scope": f"scope = '{self._chance.choice(('s', 'out', 'other'))}'",
            "agent": f"agent = '{self._chance.choice(('a', 'b'))}'",
        }[kind]
        return f"UPDATE memory_events SET {value} WHERE id = {row}"

    def _text(self) -> str:
        number = self._chance.randrange(1000)
        return f"{LONG} {number}" if self._chance.random() < 0.3 else f"memory {number}"

    def _options(self) -> dict[str, object]:
        return {
            "target.path": "",
            "target.url": self._server.url,
            "target.retry_budget": 20,
            "target.check_interval": 0,
            "target.lock_wait": 5,
            "sparse.enabled": False,  # its stop words take half a second to load
            "sync.window_rows": 7,
            **self._recipe,
            **self._mapping[0],
        }

    def _settings(self) -> Settings:
        return memory.settings_for(self._folder, **self._options())

    def _tell(self, what: str) -> None:
        self._told.append(what)


def leave_nothing(client: QdrantClient) -> None:
    """Delete all collections."""
    for one in client.get_collections().collections:
        client.delete_collection(one.name)
