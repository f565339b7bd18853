"""C4: jobs of the same ``run_at`` run in the order in which they were enqueued."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace import App, Worker
from headrace.testing import running
from tests.support.until import patience


async def test_jobs_of_the_same_run_at_run_in_the_order_of_their_creation(app: App[None]) -> None:
    ran: list[str] = []

    @app.task
    async def work(name: str) -> None:
        ran.append(name)

    await app.connect()
    # All are there before that, also on a busy machine.
    at = datetime.now(UTC) + timedelta(seconds=patience(1))
    names = ["zoe", "ada", "mia", "bob", "yan", "cid"]
    handles = [await work.options(id=name, run_at=at).enqueue(name) for name in names]
    async with running(Worker(app, concurrency=1)):
        for handle in handles:
            await handle.result(timeout=patience(10))
    assert ran == names
