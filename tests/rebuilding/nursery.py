"""Runs commands in processes of their own that are forked where everything is imported already."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rebuilding.moments import Act, Moment

TESTS = Path(__file__).parents[1]
KILLED = -9


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, KILLED if it was, and what it said."""

    code: int
    error: str | None = None
    warnings: Sequence[str] = ()
    embedded: int = 0
    reused: int = 0


@dataclass(frozen=True, slots=True)
class Nursery:
    """The process that forks the commands."""

    process: subprocess.Popen[str] = field(repr=False)

    def run(
        self,
        folder: Path,
        options: Mapping[str, object],
        command: str,
        *arguments: str,
        acts: Sequence[Act] = (),
        dying: Moment | None = None,
        bug: str | None = None,
    ) -> Ended:
        """Run a command on the memory in `folder`; it dies at the moment, if it gets there.

        With a `bug` the code does not do what it should.
        """
        happening = [*acts, *([Act(dying)] if dying else [])]
        asked = {
            "folder": str(folder),
            "options": dict(options),
            "command": command,
            "arguments": arguments,
            "acts": [asdict(act) for act in happening],
            "bug": bug,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return Ended(answer["code"], **answer["told"])


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Start the process, and end it."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "rebuilding.child"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Nursery(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
