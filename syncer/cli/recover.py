"""``syncer recover``: points that somebody wrote past SQLite come home as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syncer.cli import compose, opening, specs, watch
from syncer.cli.log_report import JsonReport
from syncer.cli.opening import Sides
from syncer.cli.report import Report, choose, with_textfile
from syncer.cli.run import check_target, everything, reported, stoppable, work_on_serving
from syncer.errors import ExitCode, SettingsError
from syncer.foreign import Foreign, Form, Memory, Unfit, memory_of, text_key
from syncer.keys import Key, decode_key
from syncer.model import Reason
from syncer.settings import Settings
from syncer.source import open_readonly
from syncer.state import utc_now

if TYPE_CHECKING:
    from syncer.cli.ready import Ready
    from syncer.ports import Pipeline
    from syncer.recover import Fate, Recovered, Recovering, Tell, Told
    from syncer.result import SyncResult
    from syncer.worker import Stop, Terms

    Step = Callable[[Sides, "Wish", Recovering, Tell], Recovered]

_GOES_ON = {ExitCode.OK, ExitCode.QUARANTINED, ExitCode.WITHHELD}


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wished: a file instead of the table, deleting what is left over, showing texts.

    `confirmed` is asked, with how many foreign points there are, before any of them is deleted.
    """

    to: Path | None = None
    delete: bool = False
    show: bool = False
    as_json: bool = False
    confirmed: Callable[[int], bool] = lambda _: False


def recover(settings: Settings, wish: Wish) -> ExitCode:
    """Bring home, or export, the foreign points of the generation that serves."""
    json_report = JsonRecovery(settings.log.level) if wish.as_json else None
    told = json_report or choose(settings, as_json=False)
    report = with_textfile(told, settings, whole=True)

    def work(sides: Sides) -> ExitCode:
        code, counts = _recover(sides, report, wish)
        if json_report is not None:
            json_report.counts = counts
        elif counts:
            print(in_words(counts))  # noqa: T201
        return code

    return reported(settings, report, work)


def dry_run(settings: Settings, wish: Wish) -> None:
    """List the foreign points of the generation that serves; nothing is written anywhere."""
    from syncer.recover import Fate, Told
    from syncer.target import ForeignPoints, connect

    counts = dict.fromkeys(Fate, 0)
    spec = specs.target_spec(settings)
    with opening.opened(settings) as sides, connect(spec, to_write=False) as connection:
        known = sides.store.serving(sides.alias)
        if known is not None and known.serving:
            retry = compose.retry_policy(settings)
            described = retry(check_target, sides, known, connection)
            place = (known.generation, described.document_key, described.metadata_key)
            form = form_of(settings, *place)
            tell = teller(wish, form)
            for page in ForeignPoints(connection, known.generation, retry=retry).pages():
                for found in (memory_of(point, form) for point in page):
                    left = isinstance(found, Unfit)
                    why = found.why if isinstance(found, Unfit) else ""
                    told = Told(found.point, Fate.LEFT if left else Fate.FOUND, why=why)
                    counts[told.fate] += 1
                    tell(told)
    shown = _by_name(counts)
    as_json = json.dumps({"foreign": shown, "exit_code": int(ExitCode.OK)})
    print(as_json if wish.as_json else in_words(shown))  # noqa: T201


def is_ours(settings: Settings) -> bool:
    """Say whether the table is the one that ``syncer init`` made, and not only read."""
    if settings.source.changes != "log":
        return False
    with closing(open_readonly(settings.source.database)) as connection:
        return watch.is_canonical(settings, connection)


def form_of(settings: Settings, collection: str, document_key: str, metadata_key: str) -> Form:
    """Return how the points of a collection are read, and what a row may have of them."""
    return Form(
        collection,
        utc_now(),
        document_key,
        metadata_key,
        settings.source.max_content_bytes,
        settings.target.batch_bytes // 2,
    )


def _recover(sides: Sides, report: Report, wish: Wish) -> tuple[ExitCode, dict[str, int]]:
    settings = sides.settings
    if wish.to is None and not is_ours(settings):
        raise SettingsError(
            f"rows of {settings.source.table} in {settings.source.database} are not syncer's to "
            "write",
            hint="Name a file for the foreign points with --to FILE.",
        )
    code, done = _do(sides, report, wish, _bring_home if wish.to is None else _export)
    if done is None:
        return code, {}
    counts = done.counts
    if wish.delete and code in _GOES_ON and done.deletable and wish.confirmed(done.deletable):
        code, deleted = _do(sides, report, wish, _delete)
        counts = deleted.counted_on(counts) if deleted is not None else counts
    from syncer.recover import Fate

    stays = counts[Fate.WAITS] + counts[Fate.LEFT]
    code = ExitCode.QUARANTINED if code is ExitCode.OK and stays else code
    return code, _by_name(counts)


def _do(sides: Sides, report: Report, wish: Wish, step: Step) -> tuple[ExitCode, Recovered | None]:
    """Do one step on the generation that serves; return the exit code and what it came to."""
    from syncer.cli.ready import ready

    done: list[Recovered] = []

    def on(found: Ready) -> SyncResult:
        def work(pipeline: Pipeline, terms: Terms, report: Report, _: Sides) -> SyncResult:
            what = _recovering(found, pipeline, terms)
            done.append(step(sides, wish, what, teller(wish, what.form)))
            total = done[0].result
            return total if total.more else total.plus(everything(pipeline, terms, report, sides))

        return work_on_serving(found, report, work)

    def opened(stop: Stop) -> SyncResult:
        with ready(sides, report, stop) as found:
            return on(found)

    code = stoppable(sides, report, opened)
    return code, done[0] if done else None


def _recovering(found: Ready, pipeline: Pipeline, terms: Terms) -> Recovering:
    from syncer.recover import Recovering
    from syncer.target import ForeignPoints

    store, layout = found.sides.store, pipeline.layout
    name = pipeline.retry(pipeline.state.position).generation
    form = form_of(found.sides.settings, name, layout.document_key, layout.metadata_key)

    def blocked() -> list[Key]:
        held = (each for each in store.quarantine(name) if each.reason == Reason.FOREIGN_POINT)
        return [decode_key(each.row) for each in held]

    origin = ForeignPoints(found.connection, name, retry=found.retry)
    return Recovering(pipeline, terms, origin, form, blocked)


def _bring_home(sides: Sides, _: Wish, work: Recovering, tell: Tell) -> Recovered:
    from syncer.canonical import CanonicalTable
    from syncer.recover import recover

    with closing(CanonicalTable(sides.settings.source.database)) as table:
        return recover(work, table, tell)


def _export(_: Sides, wish: Wish, work: Recovering, tell: Tell) -> Recovered:
    from syncer.exported import exporting
    from syncer.recover import export

    assert wish.to is not None  # noqa: S101 - it is what was wished
    with exporting(wish.to) as file:
        return export(work, file, tell)


def _delete(sides: Sides, wish: Wish, work: Recovering, tell: Tell) -> Recovered:
    """Delete what is in the file; or what cannot come home, or has its row and had to wait."""
    from syncer.canonical import CanonicalTable
    from syncer.exported import exporting
    from syncer.recover import delete

    if wish.to is not None:
        with exporting(wish.to) as file:
            name = work.form.collection
            return delete(work, lambda point: file.holds(point, name), tell)

    def is_left(point: Foreign) -> bool:
        found = memory_of(point, work.form)
        return not isinstance(found, Memory) or table.home_of(found) is not None

    with closing(CanonicalTable(sides.settings.source.database)) as table:
        return delete(work, is_left, tell)


class JsonRecovery(JsonReport):
    """JSON lines on stdout, one for each foreign point, and in the end one with the sum."""

    counts: Mapping[str, int] = {}

    def ended(self, code: ExitCode) -> None:
        """Print the counts and what was synced, and the exit code."""
        self._sum = {**self._sum, "foreign": self.counts}
        super().ended(code)


def teller(wish: Wish, form: Form) -> Tell:
    """Return what prints a foreign point and what became of it; its text only if it was wished."""

    def tell(told: Told) -> None:
        said = as_dict(told, form, show=wish.show)
        print(json.dumps(said) if wish.as_json else "\n".join(lines(said)))  # noqa: T201

    return tell


def as_dict(told: Told, form: Form, *, show: bool) -> dict[str, object]:
    """Return a foreign point, by what it holds and without any text, and what became of it."""
    payload = told.point.payload
    key = text_key(payload, form)
    metadata = payload.get(form.metadata_key)
    said: dict[str, object] = {
        "point": told.point.id,
        "fate": told.fate.value,
        "row": told.row,
        "why": told.why or None,
        "characters": len(str(payload[key])) if key is not None else 0,
        "metadata": len(metadata) if isinstance(metadata, dict) else 0,
    }
    return {**said, "text": payload[key]} if show and key is not None else said


def lines(said: Mapping[str, object]) -> Iterator[str]:
    """Yield what is said of a foreign point as lines for people."""
    row = f" as row {said['row']}" if said["row"] is not None else ""
    why = f" ({said['why']})" if said["why"] else ""
    yield (
        f"point {said['point']}  {said['fate']}{row}{why}: {said['characters']} characters, "
        f"{said['metadata']} entries of metadata"
    )
    if "text" in said:
        yield f"    {said['text']}"


def in_words(counts: Mapping[str, int]) -> str:
    """Return what became of all foreign points, as a line for people."""
    parts = [f"{number} {fate}" for fate, number in counts.items() if number]
    return f"foreign points: {', '.join(parts) or 'none'}"


def _by_name(counts: Mapping[Fate, int]) -> dict[str, int]:
    return {fate.value: number for fate, number in counts.items()}
