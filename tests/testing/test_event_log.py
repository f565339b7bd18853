"""The log of worker events."""

from __future__ import annotations

import threading

import anyio
import pytest

from headrace.events import WorkerQuiet, WorkerStopped
from headrace.testing import EventLog

QUIET = WorkerQuiet(worker="w")


def test_events_are_kept_in_order_by_type() -> None:
    log = EventLog()
    stopped = WorkerStopped(worker="w", put_back=0)
    for event in (QUIET, stopped, QUIET):
        log(event)
    assert log.events == [QUIET, stopped, QUIET]
    assert log.of(WorkerQuiet) == [QUIET, QUIET]


async def test_an_event_of_another_thread_ends_a_wait() -> None:
    log = EventLog()
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, log, QUIET)
        assert await log.wait(WorkerQuiet) == [QUIET]


async def test_a_wait_that_is_in_vain_says_what_came() -> None:
    log = EventLog()
    log(QUIET)
    with pytest.raises(
        AssertionError, match=r"1 WorkerQuiet of 2 came within 0\.01 s, .*worker='w'"
    ):
        await log.wait(WorkerQuiet, 2, within=0.01)


def test_an_event_after_the_end_of_a_loop_is_kept() -> None:
    log = EventLog()

    async def wait() -> None:
        with anyio.move_on_after(0.01):
            await log.wait(WorkerQuiet)

    anyio.run(wait)
    thread = threading.Thread(target=log, args=(QUIET,))
    thread.start()
    thread.join()
    assert log.events == [QUIET]
