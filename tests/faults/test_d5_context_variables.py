"""D5: what a job sets in context variables is not seen by the next job of its slot."""

from __future__ import annotations

from headrace import App, Worker
from headrace.testing import running
from tests.apps import decorated_app


async def test_a_job_sees_nothing_of_the_one_before(app: App[None]) -> None:
    decorated_app.adopt(app)
    async with running(Worker(app, concurrency=1, process_slots=1)):
        for place in ("loop", "thread", "process"):
            bind = app.tasks[f"bind_in_{place}"]
            for customer in ("a", "b", "c"):
                seen = await bind.enqueue_and_wait(customer)
                assert "customer" not in seen
                assert seen["tenant"] == ""
