"""Other people's tools in environments of their own, and syncer over the databases they make."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import commands
import fresh_environment
import memory
from fresh_environment import CHECKOUT, Environment

from syncer.keys import encode_key
from syncer.settings import load

TESTS = CHECKOUT / "tests"
SCRIPTS = TESTS / "tools"
EXAMPLES = CHECKOUT / "examples"
LEFT_BEHIND = "sqlite_sequence"  # nobody can drop that table once there was a counter


def installed(tool: str, probe: Path) -> Environment:
    """Return an environment that holds what ``requirements-TOOL.txt`` names, made if need be.

    It is kept for later runs, one per Python and list. Without a package index the test is
    skipped; `probe` takes what is fetched to find out.
    """
    path = CHECKOUT / ".venv-tools" / tool
    return fresh_environment.kept(path, TESTS / f"requirements-{tool}.txt", probe)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool in an environment, at work on a database in `folder`."""

    environment: Environment
    folder: Path
    variables: dict[str, str]

    def script(self, name: str, *words: str) -> str:
        """Run one of ``tests/tools`` in the tool's environment; return what it printed."""
        return self._run(self.environment.python, SCRIPTS / name, *words)

    def command(self, name: str, *words: str) -> str:
        """Run one of the environment's commands; return what it printed."""
        return self._run(self.environment.script(name), *words)

    def _run(self, *words: str | Path) -> str:
        at_home = {"HOME": str(self.folder), "HF_HUB_OFFLINE": "1", **self.variables}
        return fresh_environment.run(*words, cwd=self.folder, variables=at_home).stdout


@dataclass(frozen=True, slots=True)
class Synced:
    """A database, and the settings in ``examples/`` that are made for it, as they are there."""

    database: Path
    example: str

    @property
    def variables(self) -> dict[str, str]:
        """What differs from one user to the next, and the fast embedder."""
        return {
            "SYNCER_CONFIG": str(EXAMPLES / self.example),
            "SYNCER_SOURCE__DATABASE": str(self.database),
            "SYNCER_TARGET__PATH": str(self.database.parent / "qdrant"),
            "SYNCER_EMBED__PROVIDER": "hash",
            "SYNCER_LOG__FORMAT": "json",
        }

    def run(self, *words: str) -> commands.Outcome:
        """Run a command of syncer."""
        return commands.run(*words, cwd=self.database.parent, timeout=120, **self.variables)

    def attach(self) -> None:
        """Run ``syncer attach``, which must succeed."""
        done = self.run("attach")
        assert done.code == 0, done.err

    def once(self, *words: str) -> dict[str, object]:
        """Run ``syncer once``, which must succeed, and return its last event."""
        done = self.run("once", *words)
        assert done.code == 0, done.err
        return done.log[-1]

    def best(self, question: str) -> str:
        """Return the document that a search finds first."""
        done = self.run("search", question, "--json")
        assert done.code == 0, done.err
        document: str = json.loads(done.out)[0]["document"]
        return document

    def texts(self) -> dict[str, str]:
        """Return the documents in the target by the row's key as JSON."""
        return {one["_sync"]["row"]: one["document"] for one in self._payloads()}

    def metadata(self, row: str) -> dict[str, object]:
        """Return the metadata of a row that the target holds; its key as JSON."""
        found: list[dict[str, object]] = [
            one["metadata"] for one in self._payloads() if one["_sync"]["row"] == row
        ]
        return found[0]

    def _payloads(self) -> list[dict[str, Any]]:
        settings = load(EXAMPLES / self.example, environ=self.variables)
        found: list[Any] = [payload for payload, _ in memory.points_in(settings).values()]
        return found

    def schema(self) -> list[tuple[object, ...]]:
        """Return all that the database's schema says."""
        sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name <> ? ORDER BY 1, 2"
        with closing(memory.write(self.database)) as connection:
            return connection.execute(sql, (LEFT_BEHIND,)).fetchall()

    def rows(self, sql: str) -> dict[str, str]:
        """Return key and text of the rows that a query finds, the key as JSON."""
        with closing(memory.write(self.database)) as connection:
            return {encode_key((key,)): text for key, text in connection.execute(sql)}
