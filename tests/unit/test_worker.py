"""Stopping: a wish, when it takes effect, and the signals that bring it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import memory
import pytest

from syncer.errors import ExitCode, TargetUnavailableError
from syncer.ports import Pipeline
from syncer.result import SyncResult
from syncer.retry import within
from syncer.worker import Stop, Stopped, Terms, catch_up, preview, stopping_on_signals

NOW = "2030-01-01T00:00:00.000Z"


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline on a memory of three rows, a window for each."""
    memory.make_memory(tmp_path, ["one", "two", "three"])
    with memory.pipeline_for(memory.settings_for(tmp_path, **{"sync.window_rows": 1})) as (made, _):
        yield made


def run(pipeline: Pipeline, stop: Stop, seen: list[SyncResult]) -> SyncResult:
    """Catch up and note the windows."""
    head = memory.head_of(pipeline)
    return catch_up(pipeline, Terms(lambda: NOW, stop), head=head, report=seen.append)


def test_a_wish_while_nothing_is_in_flight_ends_the_work_where_it_is() -> None:
    stop = Stop()
    with pytest.raises(Stopped):
        stop.ask(ExitCode.TERMINATED)
    assert stop.asked
    assert stop.exit_code is ExitCode.TERMINATED


def test_a_wish_waits_for_windows_in_flight_and_the_first_decides_the_exit_code() -> None:
    stop = Stop()
    with stop.finishing_windows():
        stop.ask(ExitCode.INTERRUPTED)
        stop.ask(ExitCode.TERMINATED)
    assert stop.exit_code is ExitCode.INTERRUPTED


def test_a_sleep_is_no_window_even_in_one() -> None:
    stop = Stop()
    with stop.finishing_windows():
        stop.sleep(0)
        stop.ask(ExitCode.TERMINATED)
        with pytest.raises(Stopped):
            stop.sleep(3600)
        assert stop.finishing
    assert not stop.finishing


def test_no_library_takes_a_stop_for_an_error_of_its_own() -> None:
    assert not issubclass(Stopped, Exception)
    assert issubclass(Stopped, KeyboardInterrupt)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)],
)
def test_a_signal_is_a_wish_and_the_handlers_are_put_back(
    number: signal.Signals, code: ExitCode
) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    stop = Stop()
    with stopping_on_signals(stop), stop.finishing_windows():
        os.kill(os.getpid(), number)
        assert stop.exit_code is code
        assert signal.getsignal(number) is signal.SIG_DFL  # a second one ends the process
    assert {each: signal.getsignal(each) for each in before} == before


def test_a_signal_ends_a_sleep_before_another_try() -> None:
    stop = Stop()
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    with stopping_on_signals(stop), stop.finishing_windows():
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Stopped):
            stop.sleep(3600)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert stop.exit_code is ExitCode.TERMINATED


def test_catching_up_reports_every_window_and_returns_their_sum(pipeline: Pipeline) -> None:
    seen: list[SyncResult] = []
    total = run(pipeline, Stop(), seen)
    assert [window.read for window in seen] == [1, 1, 1, 0]
    assert (total.read, total.embedded, total.chunks, total.more) == (3, 3, 3, False)
    assert total.position == pipeline.state.position() == seen[-1].position
    for stage in ("read", "plan", "embed", "write", "advance"):
        parts = [window.seconds.get(stage, 0.0) for window in seen]
        assert total.seconds[stage] == pytest.approx(sum(parts))


def test_a_wish_lets_the_window_in_flight_end_and_the_next_not_begin(pipeline: Pipeline) -> None:
    stop = Stop()

    class Asking:
        """The real state, which is asked to stop in the middle of the second window."""

        calls = 0

        def __getattr__(self, name: str) -> object:
            return getattr(pipeline.state, name)

        def position(self) -> object:
            self.calls += 1
            if self.calls == 3:  # the first call is the run's, then each window has one
                stop.ask(ExitCode.TERMINATED)
            return pipeline.state.position()

    seen: list[SyncResult] = []
    total = run(replace(pipeline, state=Asking()), stop, seen)  # type: ignore[arg-type]
    assert (len(seen), total.read, total.more) == (2, 2, True)
    assert pipeline.state.position().last_id == "2"


def test_a_wish_while_a_window_waits_to_be_tried_again_leaves_the_position(
    pipeline: Pipeline,
) -> None:
    stop = Stop()

    class Silent:
        """The real target, which never answers."""

        def __getattr__(self, name: str) -> object:
            return getattr(pipeline.target, name)

        def look_up(self, _ids: object) -> object:
            stop.ask(ExitCode.TERMINATED)
            raise TargetUnavailableError

    before = pipeline.state.position()
    retry = within(lambda _: 3600, sleep=stop.sleep)
    with pytest.raises(Stopped):
        run(replace(pipeline, target=Silent(), retry=retry), stop, [])  # type: ignore[arg-type]
    assert pipeline.state.position() == before


def test_a_preview_says_what_catching_up_then_does(pipeline: Pipeline) -> None:
    run(pipeline, Stop(), [])
    path = pipeline.state._database.path  # type: ignore[attr-defined] # noqa: SLF001
    memory.execute(path, "UPDATE memory_events SET content = 'new' WHERE id = 1")
    memory.execute(path, "UPDATE memory_events SET scope = 'new' WHERE id = 2")
    memory.execute(path, "DELETE FROM memory_events WHERE id = 3")
    head = memory.head_of(pipeline)
    before = pipeline.state.position()
    foreseen = preview(pipeline, before, head=head, now=lambda: NOW)
    assert pipeline.state.position() == before
    done = run(pipeline, Stop(), [])
    assert replace(foreseen, seconds={}) == replace(done, seconds={})
    assert (done.embedded, done.payload_only, done.deleted) == (1, 1, 1)
