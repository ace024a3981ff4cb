"""Forks a process for each command that it is asked for by a line of JSON, and says how it ended.

What takes seconds to import is imported once; each command still has a process of its own, which
may be killed. Started by nursery.py.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict
from pathlib import Path

import memory
import on_the_wire as wire

import syncer.cli.gc
import syncer.embed
import syncer.verify
from rebuilding import bugs
from rebuilding.moments import Act, Acts, Moment
from syncer.cli import rebuild, rows
from syncer.cli.once import once
from syncer.errors import SyncerError
from syncer.settings import Settings


def main() -> None:
    """Serve until there are no more lines."""
    memory.settings_for(Path.cwd())  # what is imported late is imported before the first fork
    for line in sys.stdin:
        asked = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _run(asked, writing)
        os.close(writing)
        with os.fdopen(reading) as told:
            said = told.read()
        _, status = os.waitpid(child, 0)
        answer = {"code": os.waitstatus_to_exitcode(status), "told": json.loads(said or "{}")}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _run(asked: dict[str, object], writing: int) -> None:
    code = 1
    try:
        settings = memory.settings_for(Path(str(asked["folder"])), **asked["options"])  # type: ignore[arg-type]
        if asked["bug"]:
            bugs.plant(str(asked["bug"]))
        acts = [Act(Moment(**one["moment"]), one["sql"]) for one in asked["acts"]]  # type: ignore[attr-defined]
        Acts(acts, settings.source.database)
        told = wire.Told()
        code = _command(str(asked["command"]), list(asked["arguments"]), settings, told)  # type: ignore[call-overload]
        with os.fdopen(writing, "w") as out:
            out.write(json.dumps(_said(told)))
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _command(name: str, arguments: list[str], settings: Settings, told: wire.Told) -> int:
    if name == "once":
        flags = dict.fromkeys(arguments, True)
        return int(once(settings, told, **flags))
    if name == "rebuild":
        return int(rebuild.rebuild(settings, told))
    if name == "rollback":
        return int(rebuild.rollback(settings, told, arguments[0] if arguments else None))
    if name == "confirm-deletes":
        return int(rows.confirm_deletes(settings, told))
    assert name == "gc"
    return _gc(settings, told, int(arguments[0]) if arguments else None)


def _gc(settings: Settings, told: wire.Told, keep: int | None) -> int:
    try:
        for fate in syncer.cli.gc.gc(settings, keep, dry_run=False):
            told.warn(json.dumps(asdict(fate)))
    except SyncerError as error:
        told.failed(error)
        return int(error.exit_code)
    return 0


def _said(told: wire.Told) -> dict[str, object]:
    result = told.result
    return {
        "error": str(told.error) if told.error else None,
        "warnings": told.warnings,
        "embedded": result.chunks - result.reused if result else 0,
        "reused": result.reused if result else 0,
    }


if __name__ == "__main__":
    main()
