"""P6: what blocks the loop is told with its job, and without the frames above the handler."""

from __future__ import annotations

import threading

from headrace import App, Worker
from headrace.events import LoopBlocked
from headrace.testing import EventLog
from tests.support.until import patience


async def test_p6_a_blocked_loop_is_told_with_the_job_that_blocks_it() -> None:
    """P6: the stack begins with the handler."""
    app = App("memory://")
    log = EventLog()
    told = threading.Event()

    def emit(event: object) -> None:
        if isinstance(event, LoopBlocked):
            log(event)
            told.set()

    @app.task(name="block", queue="work")
    async def block() -> None:
        assert told.wait(patience(20))

    async with app:
        job = await block.enqueue()
        await Worker(app, burst=True, emit=emit).run()
    event = log.of(LoopBlocked)[0]
    assert (event.job_id, event.task, event.queue) == (job.id, "block", "work")
    first, *_ = event.stack.splitlines()
    assert first.startswith(f'  File "{__file__}", line ')
    assert first.endswith(" in block")
