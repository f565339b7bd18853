"""D6: to call a decorated coroutine function and to run it as a job come to the same."""

from __future__ import annotations

from headrace import App, FailReason, JobState, Worker
from headrace.testing import Kit, running
from tests.apps import decorated_app
from tests.support.jobs import ended


async def test_its_coroutine_is_awaited_wherever_it_runs(app: App[None]) -> None:
    decorated_app.adopt(app)
    async with running(Worker(app, process_slots=1)) as worker:
        for name in ("double", "double_in_process", "double_bridged"):
            assert await app.tasks[name].enqueue_and_wait(number=21) == 42
        for name in ("fail", "fail_in_process", "hang"):
            record = await ended(await app.tasks[name].enqueue(), within=20)
            assert (record.state, record.reason) == (JobState.FAILED, FailReason.EXHAUSTED)
            expected = "TimeoutError" if name == "hang" else "SystemExit"
            assert record.errors[-1].type == expected
        assert worker.stuck == 0


async def test_a_kit_awaits_it_too() -> None:
    async with Kit(decorated_app.app) as kit:
        for task in (decorated_app.double, decorated_app.double_in_process):
            assert await kit.perform(task.job(number=4)) == 8
