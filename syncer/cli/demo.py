"""``syncer demo``: the whole job once, on real text, and each thing it claims is checked."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import typer

from syncer.cli import once, search
from syncer.cli.demo_folder import DATABASE, anew, fill
from syncer.cli.demo_texts import Memory, collect
from syncer.cli.terminal_report import TerminalReport
from syncer.errors import ExitCode, SettingsError, SyncerError
from syncer.model import Hit
from syncer.result import SyncResult
from syncer.settings import Settings

_NEW_TEXT = "The team has lunch together every Thursday at noon."
_EXPIRES_IN = 2  # seconds
_FIRST_PAGE = 5  # hits that `syncer search` shows


@dataclass(frozen=True, slots=True)
class Question:
    """What a user might ask, and the source of the row that answers it."""

    text: str
    source: str


DELETED = Question("How do I delete a folder with everything in it?", "shutil.rmtree")
EDITED = Question("How can I pick something at random from a list?", "random.choice")
EXPIRED = Question("How do I write a small function without giving it a name?", "topic lambda")
EXPIRED_WITHOUT_TOPICS = Question(
    "What is the middle value of a list of numbers?", "statistics.median"
)
NEW_MEANING = Question("When do we eat together?", EDITED.source)


def demo(folder: Path) -> None:
    """Sync some 300 memories in `folder`, ask, change three of them, sync and ask again.

    Says what it does as the commands that a user would type. Raises SettingsError if the folder
    holds anything that the demo has not made, and SyncerError if something did not turn out as it
    says; what the commands themselves raise.
    """
    started = time.monotonic()
    memories = collect()
    questions = _questions(memories)
    with anew(folder) as settings:
        story = _Story(settings)
        typer.echo(f"$ cd {folder}")
        _remember(story, memories)
        _ask_all(story, questions, len(memories))
        _change(story, questions)
        _ask_again(story, questions, len(memories))
        _rest(story)
        story.end(folder, time.monotonic() - started)


@dataclass(slots=True)
class _Story:
    """The settings of the demo, and those of its claims that turned out wrong."""

    settings: Settings
    wrong: list[str] = field(default_factory=list)

    def claim(self, what: str, *, holds: bool) -> None:
        """Say what should be so; if it is not, keep that for the end."""
        typer.echo(f"-> {what}" if holds else f"-> WRONG: it is not so that {what}")
        if not holds:
            self.wrong.append(what)

    def once(self) -> _Run:
        """Do what ``syncer once`` does, in its words. Raises what it raises; stops if asked to."""
        typer.echo("\n$ syncer once")
        run = _Run()
        code = once.once(self.settings, run)
        if code is not ExitCode.OK:
            raise typer.Exit(int(code))
        return run

    def execute(self, sql: str) -> None:
        """Commit one statement, as any program could."""
        typer.echo(f'$ sqlite3 {DATABASE} "{sql}"')
        with closing(sqlite3.connect(self.settings.source.database)) as connection, connection:
            connection.execute(sql)

    def ask(self, ask: search.Ask, question: Question, limit: int) -> list[Hit]:
        """Return all hits for a question, and print the first as ``syncer search`` does."""
        typer.echo(f'\n$ syncer search -n 1 "{question.text}"')
        hits = ask(question.text, limit, {})
        typer.echo(search.in_words(hits[:1]))
        return hits

    def end(self, folder: Path, seconds: float) -> None:
        """Say that all claims hold. Raises SyncerError that names those that do not."""
        if self.wrong:
            raise SyncerError(
                "the demo found that this is not so: " + "; ".join(self.wrong),
                hint="With the default model this is a bug: please report it with the output.",
            )
        typer.echo(
            f"\nAll of it held ({seconds:.0f} s). The folder is there to play with:"
            f' cd {folder}; syncer search "…"'
        )


class _Run(TerminalReport):
    """Shows a run as on a terminal and keeps what it did; `result` is None if nothing was."""

    result: SyncResult | None = None

    def done(self, result: SyncResult) -> None:
        """Print what was done, and keep it."""
        super().done(result)
        self.result = result


def _questions(memories: Sequence[Memory]) -> tuple[Question, Question, Question]:
    """Return the three questions. Raises SettingsError if this Python has not got the answers."""
    there = {memory.source for memory in memories}
    third = EXPIRED if EXPIRED.source in there else EXPIRED_WITHOUT_TOPICS
    questions = (DELETED, EDITED, third)
    if not there.issuperset(question.source for question in questions):
        raise SettingsError(
            "this Python has no docstrings, and they are the demo's text",
            hint="Run the demo without python's option -OO and without PYTHONOPTIMIZE=2.",
        )
    return questions


def _remember(story: _Story, memories: Sequence[Memory]) -> None:
    """Make the database, fill it and bring it into the target."""
    typer.echo(f"$ syncer init {DATABASE}")
    fill(story.settings.source.database, memories)
    topics = sum(memory.kind == "topic" for memory in memories)
    typer.echo(
        f"-> {len(memories)} memories are in its table memory_events: {topics} topics of Python's"
        f" language reference\n   and {len(memories) - topics} docstrings of its library"
    )
    result = story.once().result
    story.claim(
        f"{len(memories)} rows are embedded",
        holds=result is not None and result.embedded == len(memories),
    )


def _ask_all(story: _Story, questions: Sequence[Question], limit: int) -> None:
    with search.asking(story.settings) as ask:
        for question in questions:
            _expect(story, ask, question, limit)


def _expect(story: _Story, ask: search.Ask, question: Question, limit: int) -> None:
    first = [_source(hit) for hit in story.ask(ask, question, limit)[:1]]
    story.claim(f"the first hit is {question.source}", holds=first == [question.source])


def _change(story: _Story, questions: Sequence[Question]) -> None:
    """Edit one row, delete one, let one expire, and bring that into the target."""
    deleted, edited, expired = (f"WHERE source = '{question.source}'" for question in questions)
    typer.echo()
    story.execute(f"UPDATE memory_events SET content = '{_NEW_TEXT}' {edited}")
    story.execute(f"DELETE FROM memory_events {deleted}")
    expiry = f"datetime('now', '+{_EXPIRES_IN} seconds')"
    story.execute(f"UPDATE memory_events SET expires_at = {expiry} {expired}")
    typer.echo(f"$ sleep {_EXPIRES_IN}")
    _wait_for_expiry(story.settings.source.database)
    result = story.once().result
    story.claim(
        "one row is embedded anew and two are taken out",
        holds=result is not None and (result.embedded, result.deleted) == (1, 2),
    )


def _wait_for_expiry(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        (stamp,) = connection.execute("SELECT max(expires_at) FROM memory_events").fetchone()
    left = datetime.fromisoformat(stamp) - datetime.now(UTC)
    time.sleep(max(0.0, left.total_seconds()) + 0.01)


def _ask_again(story: _Story, questions: Sequence[Question], limit: int) -> None:
    deleted, edited, expired = questions
    with search.asking(story.settings) as ask:
        _expect(story, ask, NEW_MEANING, limit)
        hits = story.ask(ask, edited, limit)
        story.claim(
            f"{edited.source}, edited, is not found by what it said before",
            holds=edited.source not in map(_source, hits[:_FIRST_PAGE]),
        )
        for question, what in ((deleted, "deleted"), (expired, "expired")):
            hits = story.ask(ask, question, limit)
            story.claim(
                f"{question.source}, {what}, is not found any more",
                holds=question.source not in map(_source, hits),
            )


def _rest(story: _Story) -> None:
    run = story.once()
    story.claim("a third run does nothing", holds=run.result is None)


def _source(hit: Hit) -> object:
    metadata: Mapping[str, object] = hit.metadata
    return metadata.get("source")
