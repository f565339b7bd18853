"""F42: a handler that waits for a job of its own queue holds the slot that this job needs."""

from __future__ import annotations

from headrace import App, JobState, WaitTimeout, Worker
from headrace.testing import running
from tests.support.jobs import ended
from tests.support.processes import ROOT


async def test_f42_with_one_slot_the_handler_waits_for_itself_and_the_wait_is_bounded(
    app: App[None],
) -> None:
    """F42: it ends by its `wait_timeout`, and the job that it waited for runs then."""
    late: list[WaitTimeout] = []

    @app.task(max_attempts=1)
    async def parent() -> str:
        try:
            return f"got {await child.options(wait_timeout=0.2).enqueue_and_wait()}"
        except WaitTimeout as error:
            late.append(error)
            return "waited for itself"

    @app.task
    async def child() -> str:
        return "done"

    async with running(Worker(app, concurrency=1)):
        assert await parent.enqueue_and_wait() == "waited for itself"
        assert (await ended(late[0].handle)).state is JobState.COMPLETED
    assert late[0].is_served, "a worker is there and knows the task"


async def test_f42_a_queue_and_a_worker_of_its_own_is_the_way_out(app: App[None]) -> None:
    @app.task(queue="parents")
    async def parent() -> str:
        return f"got {await child.enqueue_and_wait()}"

    @app.task(queue="children")
    async def child() -> str:
        return "done"

    parents, children = Worker(app, ["parents"], concurrency=1), Worker(app, ["children"])
    async with running(parents), running(children):
        assert await parent.enqueue_and_wait() == "got done"


async def test_f42_a_task_that_is_called_needs_no_slot(app: App[None]) -> None:
    @app.task
    async def parent() -> str:
        return f"got {await child()}"

    @app.task
    async def child() -> str:
        return "done"

    async with running(Worker(app, concurrency=1)):
        assert await parent.enqueue_and_wait() == "got done"


def test_f42_the_documents_say_so() -> None:
    page = ROOT / "docs" / "guides" / "enqueueing-from-handlers.md"
    assert "## Nested waits" in page.read_text(encoding="utf-8")
