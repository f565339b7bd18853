"""An attempt in a process slot ends when it is told to, whatever its handler does about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import psutil
import pytest

from headrace import App, CallNext, Context, Task
from headrace.events import HandlerStuck, ProcessEnded
from headrace.options import WorkerOptions
from headrace.outcome import Cancelled, Completed, Retried
from headrace.worker.attempt import StopReason
from headrace.worker.process_slots import process
from tests.apps import process_app as handlers
from tests.support.nowhere import unreachable_app
from tests.support.processes import is_alive
from tests.support.until import patience, until
from tests.worker.slots import Crew, Run, children, claimed, crew_of

IN_TIME_S = 5.0
"""A stop takes half a second at most, on a machine that does nothing else."""

ENDLESS = [
    handlers.spin,
    handlers.ignore_sigterm,
    handlers.hold_lock,
    handlers.stop_itself,
]


@pytest.fixture
async def crew() -> AsyncIterator[Crew]:
    async with crew_of(handlers.app) as crew:
        yield crew
        await crew.full()
        assert await (await crew.start(claimed(handlers.add, {"a": 1}))).result() == b"3"


class Begun:
    """A handler that has begun in a process."""

    def __init__(self, run: Run, process: psutil.Process) -> None:
        self.run = run
        self.process = process

    async def stop(self, *reasons: StopReason) -> Any:
        """Stop it and return its outcome, which must come soon."""
        stopped_at = time.monotonic()
        for reason in reasons:
            self.run.attempt.stop(reason)
            await asyncio.sleep(0)
        outcome = await self.run.outcome()
        assert time.monotonic() - stopped_at < patience(IN_TIME_S)
        return outcome


async def begin(crew: Crew, task: Task[..., Any], path: Path, options: bytes = b"") -> Begun:
    run = await crew.start(claimed(task, {"path": str(path)}, options=options))
    await until(path.exists, within=20, what="the handler has begun")
    return Begun(run, process_in(path))


def process_in(path: Path) -> psutil.Process:
    return psutil.Process(int(path.read_text()))


@pytest.mark.parametrize("task", ENDLESS, ids=lambda task: task.function.__name__)
async def test_a_cancelled_attempt_s_process_is_gone_when_its_outcome_is_there(
    crew: Crew, task: Task[..., Any], tmp_path: Path
) -> None:
    """BC-80, G10; RELIABILITY §3 12 and 39."""
    begun = await begin(crew, task, tmp_path / "here")
    assert isinstance(await begun.stop(StopReason.CANCEL), Cancelled)
    assert not begun.process.is_running()
    (ended,) = await crew.log.wait(ProcessEnded)
    assert ended.pid == begun.process.pid
    assert crew.log.of(HandlerStuck) == []


@pytest.mark.parametrize("task", ENDLESS, ids=lambda task: task.function.__name__)
async def test_an_attempt_over_its_limit_is_ended_by_force(
    crew: Crew, task: Task[..., Any], tmp_path: Path
) -> None:
    """BC-77, G12: the limit is real."""
    own = msgspec.json.encode(WorkerOptions(timeout_ms=500))
    begun_at = time.monotonic()
    run = await crew.start(claimed(task, {"path": str(tmp_path / "here")}, options=own))
    outcome = await run.outcome()
    assert 0.5 <= time.monotonic() - begun_at < 0.5 + patience(IN_TIME_S)
    assert isinstance(outcome, Retried)
    assert outcome.error.type == "TimeoutError"
    assert outcome.error.message == "the attempt took longer than its 0.5 s"
    (ended,) = await crew.log.wait(ProcessEnded)
    assert not psutil.pid_exists(ended.pid)


async def test_what_a_handler_has_started_ends_with_its_process(crew: Crew, tmp_path: Path) -> None:
    # They hold what they inherited, so that no end of file tells of the child's death.
    begun = await begin(crew, handlers.start_others, tmp_path / "here")
    others = [int(word) for word in (tmp_path / "here.others").read_text().split()]
    assert all(psutil.pid_exists(pid) for pid in others)
    assert isinstance(await begun.stop(StopReason.CANCEL), Cancelled)
    await until(lambda: not any(is_alive(pid) for pid in others), within=20)


async def test_a_daemon_that_a_handler_has_made_does_not_hold_its_end_up(
    crew: Crew, tmp_path: Path
) -> None:
    begun = await begin(crew, handlers.start_a_daemon, tmp_path / "here")
    daemon = process_in(tmp_path / "here.daemon")
    try:
        assert isinstance(await begun.stop(StopReason.CANCEL), Cancelled)
        assert daemon.is_running(), "it has left the group that is killed"
    finally:
        daemon.kill()


# Handlers that look whether they should stop


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give handlers the time to look that they may need on a busy machine."""
    monkeypatch.setattr(process, "ASK_S", patience(5))


@pytest.mark.usefixtures("unhurried")
async def test_a_handler_that_looks_returns_early_and_its_process_lives_on(
    crew: Crew, tmp_path: Path
) -> None:
    begun = await begin(crew, handlers.polite, tmp_path / "here")
    outcome = await begun.stop(StopReason.CANCEL)
    assert outcome == Cancelled(3_600_000)
    assert begun.process.is_running()
    assert crew.log.of(ProcessEnded) == []
    # What was asked of one attempt is not asked of the next.
    seen = await (await crew.start(claimed(handlers.whoami))).result()
    assert msgspec.json.decode(seen)["cancelled"] is False


@pytest.mark.usefixtures("unhurried")
async def test_its_own_error_says_how_it_ended_but_a_cancelled_job_is_cancelled(
    crew: Crew, tmp_path: Path
) -> None:
    own = msgspec.json.encode(WorkerOptions(timeout_ms=500))
    begun = await begin(crew, handlers.polite_with_an_error, tmp_path / "one", own)
    outcome = await begun.run.outcome()
    assert isinstance(outcome, Retried)
    assert outcome.error.message == "stopped half-way"
    begun = await begin(crew, handlers.polite_with_an_error, tmp_path / "two")
    assert isinstance(await begun.stop(StopReason.CANCEL), Cancelled)
    assert crew.log.of(ProcessEnded) == []


@pytest.mark.usefixtures("unhurried")
async def test_what_it_returns_after_its_limit_is_too_late(crew: Crew, tmp_path: Path) -> None:
    own = msgspec.json.encode(WorkerOptions(timeout_ms=200))
    begun = await begin(crew, handlers.polite, tmp_path / "here", own)
    outcome = await begun.run.outcome()
    assert isinstance(outcome, Retried)
    assert outcome.error.type == "TimeoutError"
    assert begun.process.is_running()


@pytest.mark.usefixtures("unhurried")
async def test_a_request_that_comes_as_the_job_begins_is_heard(crew: Crew, tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / str(number)
        run = await crew.start(claimed(handlers.polite, {"path": str(path)}))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        run.attempt.stop(StopReason.CANCEL)
        assert isinstance(await run.outcome(), Completed | Cancelled)
    assert crew.log.of(ProcessEnded) == [], "every one was asked in time"


# Several reasons


async def test_a_second_reason_does_not_cut_the_end_of_the_process_short(
    crew: Crew, tmp_path: Path
) -> None:
    begun = await begin(crew, handlers.ignore_sigterm, tmp_path / "here")
    reasons = [StopReason.CANCEL, StopReason.TIMEOUT, StopReason.SHUTDOWN, StopReason.SHUTDOWN]
    assert isinstance(await begun.stop(*reasons), Cancelled)
    assert not begun.process.is_running()


@pytest.mark.parametrize("reason", [StopReason.FENCED, StopReason.SHUTDOWN])
async def test_a_fenced_or_shut_down_attempt_has_no_outcome_and_no_process(
    crew: Crew, reason: StopReason, tmp_path: Path
) -> None:
    begun = await begin(crew, handlers.spin, tmp_path / "one")
    assert await begun.stop(reason) is None
    assert not begun.process.is_running()
    begun = await begin(crew, handlers.spin, tmp_path / "two")
    assert await begun.stop(StopReason.CANCEL, StopReason.FENCED, reason) is None
    assert not begun.process.is_running()


@pytest.mark.usefixtures("unhurried")
async def test_at_shutdown_what_returned_in_time_is_recorded(crew: Crew, tmp_path: Path) -> None:
    here, go = tmp_path / "here", tmp_path / "go"
    run = await crew.start(claimed(handlers.wait_for, {"path": str(here), "go": str(go)}))
    await until(here.exists, within=20, what="the handler has begun")
    run.attempt.stop(StopReason.SHUTDOWN)
    go.touch()
    assert isinstance(await run.outcome(), Completed)


@pytest.mark.usefixtures("unhurried")
async def test_at_shutdown_what_returned_since_it_was_asked_is_not(
    crew: Crew, tmp_path: Path
) -> None:
    begun = await begin(crew, handlers.polite, tmp_path / "here")
    assert await begun.stop(StopReason.SHUTDOWN) is None
    assert begun.process.is_running()


async def test_one_that_waits_for_a_process_ends_at_once(crew: Crew, tmp_path: Path) -> None:
    begun = await begin(crew, handlers.spin, tmp_path / "here")
    waiting = crew.start_unoffered(claimed(handlers.add, {"a": 1}))
    await asyncio.sleep(0)
    waiting.attempt.stop(StopReason.CANCEL)
    waiting.attempt.stop(StopReason.SHUTDOWN)
    assert isinstance(await waiting.outcome(), Cancelled)
    assert begun.process.is_running()
    await begun.stop(StopReason.CANCEL)


async def test_a_middleware_that_goes_on_is_given_up_though_its_process_was_killed(
    tmp_path: Path,
) -> None:
    app: App[Any] = unreachable_app()
    app.tasks.update(handlers.app.tasks)
    may_end = asyncio.Event()

    @app.middleware
    async def stubborn(_context: Context[Any], call_next: CallNext) -> Any:
        try:
            return await call_next()
        except asyncio.CancelledError:
            await may_end.wait()

    async with crew_of(app, unwind_s=0.01) as crew:
        begun = await begin(crew, handlers.spin, tmp_path / "here")
        outcome = await begun.stop(StopReason.CANCEL)
        assert isinstance(outcome, Cancelled)
        assert outcome.reason == "could_not_stop"
        await until(lambda: not begun.process.is_running(), within=20)
        assert crew.executor.stuck == 1
        may_end.set()
        await until(lambda: crew.executor.stuck == 0)


async def test_a_middleware_that_tries_again_can_be_stopped_again(tmp_path: Path) -> None:
    app: App[Any] = unreachable_app()
    app.tasks.update(handlers.app.tasks)
    cancellations = []

    @app.middleware
    async def again(_context: Context[Any], call_next: CallNext) -> Any:
        try:
            return await call_next()
        except asyncio.CancelledError as error:
            cancellations.append(error)
            (tmp_path / "here").unlink()
            return await call_next()

    async with crew_of(app) as crew:
        begun = await begin(crew, handlers.spin, tmp_path / "here")
        begun.run.attempt.stop(StopReason.CANCEL)
        await until(lambda: cancellations, within=20)
        await until((tmp_path / "here").exists, within=20)
        assert await begun.stop(StopReason.FENCED) is None
        assert len(children()) <= 1


# The end of the slots


async def test_closing_ends_idle_and_busy_processes(tmp_path: Path) -> None:
    async with crew_of(handlers.app, slots=2) as crew:
        begun = await begin(crew, handlers.ignore_sigterm, tmp_path / "here")
        await crew.full(but=1)
        begun.run.attempt.stop(StopReason.SHUTDOWN)
        closed_at = time.monotonic()
        crew.processes.close()
        assert await begun.run.outcome() is None
    assert time.monotonic() - closed_at < patience(IN_TIME_S)
    assert children() == []


async def test_closing_while_processes_warm_up_leaves_none() -> None:
    for turns in (0, 1, 5, 50):
        async with crew_of(handlers.app, slots=2) as crew:
            for _ in range(turns):
                await asyncio.sleep(0)
            assert crew.offers == 0
        assert children() == []


async def test_a_cancelled_server_of_slots_goes_on_until_it_is_closed() -> None:
    # Else the death of their processes would be charged to the jobs.
    crew = Crew(handlers.app)
    async with anyio.create_task_group() as group:
        group.start_soon(crew.processes.serve)
        await crew.full()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            assert await (await crew.start(claimed(handlers.add, {"a": 1}))).result() == b"3"
            crew.processes.close()
    assert children() == []
