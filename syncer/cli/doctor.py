"""``syncer doctor``: look at everything a run depends on, and say what is wrong."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from syncer.cli import compose, opening, specs
from syncer.cli.opening import Sides
from syncer.cli.run import check_target
from syncer.errors import ExitCode, SyncerError
from syncer.settings import Settings
from syncer.source import StampedSource, open_readonly

if TYPE_CHECKING:
    from syncer.target import Connection

_FIRST = (
    ExitCode.USAGE,
    ExitCode.REFUSED,
    ExitCode.SOURCE,
    ExitCode.TARGET,
    ExitCode.EMBEDDER,
    ExitCode.LOCKED,
)


LOCAL_MODE = (
    "a local folder belongs to one process at a time; agents that search while syncer writes "
    "need a Qdrant server (target.url)"
)


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    subject: str
    verdict: Verdict
    finding: str
    exit_code: int = 0


def doctor(load: Callable[[], Settings]) -> list[Check]:
    """Return what was found, in the order in which a run would meet it."""
    checks: list[Check] = []
    try:
        settings = load()
        checks.append(Check("settings", Verdict.OK, f"collection {settings.target.collection}"))
    except SyncerError as error:
        return [_failure("settings", error)]
    with ExitStack() as stack:
        sides = None
        try:
            sides = stack.enter_context(opening.opened(settings))
            checks.extend(_source(sides))
        except SyncerError as error:
            checks.append(_failure("source", error))
        checks.extend(_target_and_model(settings, sides))
    return checks


def _source(sides: Sides) -> Iterator[Check]:
    path = sides.settings.source.database
    with closing(open_readonly(path)) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    yield Check("sqlite", Verdict.OK, f"SQLite {sqlite3.sqlite_version}, journal mode {mode}")
    rows = sides.source.count()
    table = sides.settings.source.table
    logged = sides.settings.source.changes == "log"
    seen = "triggers in place" if logged else f"only read; state in {sides.store.path}"
    yield Check("source", Verdict.OK, f"{rows} rows of {table} in scope, {seen}")
    for warning in sides.source.warnings():
        yield Check("key", Verdict.WARNING, warning)
    if isinstance(sides.source, StampedSource):
        yield _stamps(sides.settings, sides.source.formats())


def _stamps(settings: Settings, formats: Mapping[str, int]) -> Check:
    """Return what the change column holds; rows whose stamp names no time cost every run."""
    found = ", ".join(f"{count} as {name}" for name, count in formats.items()) or "no stamps yet"
    mixed = "; formats are mixed" if len(formats) > 1 else ""
    unknown = sum(count for name, count in formats.items() if name.startswith(("NULL", "no time")))
    looked_at = f"; {unknown} rows are looked at in every run" if unknown else ""
    verdict = Verdict.WARNING if mixed or looked_at else Verdict.OK
    finding = f"{settings.source.table}.{settings.source.updated_at} has {found}"
    return Check("stamps", verdict, f"{finding}{mixed}{looked_at}")


def _target_and_model(settings: Settings, sides: Sides | None) -> Iterator[Check]:
    """Yield what model and target say, and whether the collection's vectors are the model's."""
    from syncer.recipes import check_recipe
    from syncer.target import Catalog, GenerationTarget, connect

    recipe = None
    try:
        with closing(compose.build_embedder(settings)) as embedder:
            recipe = embedder.recipe
        name = recipe.dense.get("model", settings.embed.provider)
        yield Check("model", Verdict.OK, f"{name} loads, {recipe.dimension} numbers a vector")
    except SyncerError as error:
        yield _failure("model", error)
    try:
        with connect(specs.target_spec(settings), to_write=False) as connection:
            yield from _endpoint(connection)
            catalog = Catalog(connection)
            generation = catalog.resolve(settings.target.collection)
            where = connection.spec.name
            if sides is not None:
                _check_identity(sides, connection, generation)
            if generation is None:
                yield Check("target", Verdict.OK, f"{where} answers; no collection yet")
                return
            described = catalog.describe(generation)
            points = GenerationTarget(connection, generation).count()
            name = f"{settings.target.collection} -> {generation}"
            yield Check("target", Verdict.OK, f"{where}: {name}, {points} points")
            for difference in catalog.differences(generation, described.recipe):
                yield Check("stored", Verdict.WARNING, f"otherwise than asked: {difference}")
            if recipe is not None:
                check_recipe(generation, described.recipe, recipe)
                vector = f"vector {recipe.vector}, {recipe.dimension}, {recipe.distance}"
                yield Check("recipe", Verdict.OK, f"as the settings ask: {vector}")
    except SyncerError as error:
        yield _failure("target", error)


def _endpoint(connection: Connection) -> Iterator[Check]:
    """Yield where Qdrant answers; REST and gRPC each by itself, where both are used."""
    if connection.local:
        yield Check("mode", Verdict.OK, LOCAL_MODE)
        return
    spec = connection.spec
    connection.check_rest()
    yield Check("rest", Verdict.OK, f"{spec.name} answers")
    version = connection.check_version()
    if spec.grpc:
        yield Check("grpc", Verdict.OK, f"port {spec.grpc_port} answers")
    yield Check("version", Verdict.OK, f"Qdrant {version}")


def _check_identity(sides: Sides, connection: Connection, found: str | None) -> None:
    """Raise what a run would raise if state and collection did not belong to each other."""
    from syncer.generations import check_unclaimed

    ours = sides.store.generations(sides.alias)
    serving = next((each for each in ours if each.serving), None)
    if serving is not None:
        check_target(sides, serving, connection)
    else:
        check_unclaimed(sides.alias, found, ours)


def _failure(subject: str, error: SyncerError) -> Check:
    return Check(subject, Verdict.FAILED, str(error), int(error.exit_code))


def exit_code(checks: Sequence[Check]) -> ExitCode:
    """Return the exit code of the first failure that counts, 0 if all is well or only warned of."""
    codes = {check.exit_code for check in checks}
    return next((code for code in _FIRST if code in codes), ExitCode.OK)


def in_words(checks: Sequence[Check]) -> str:
    """Return the checks as lines for people."""
    lines = []
    for check in checks:
        finding = check.finding.replace("\n", "\n" + " " * 19)
        lines.append(f"{check.verdict.value:<8} {check.subject:<9} {finding}")
    return "\n".join(lines)


def as_json(checks: Sequence[Check]) -> str:
    """Return the checks as one JSON array."""
    return json.dumps([asdict(check) for check in checks])
