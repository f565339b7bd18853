"""E7: the expiry holds for a job's first start; what has started does not expire."""

from __future__ import annotations

import asyncio
import time

import pytest

from headrace import App, JobState, RetryLater, Worker
from headrace.testing import running
from tests.support.until import patience, until

EXPIRES_S = 1.0


@pytest.fixture
def go_on() -> asyncio.Event:
    return asyncio.Event()


async def test_a_job_that_a_deploy_hands_back_runs_after_its_expiry(
    app: App[None], go_on: asyncio.Event
) -> None:
    starts = 0

    @app.task
    async def work() -> str:
        nonlocal starts
        starts += 1
        await go_on.wait()
        return "done"

    # A worker that is there already starts it long before it expires.
    async with running(Worker(app, shutdown_timeout=0)):
        expires_at = time.time() + EXPIRES_S
        handle = await work.options(expires=EXPIRES_S).enqueue()
        await until(lambda: starts == 1, within=10)
    assert (await handle.status()).state is JobState.QUEUED
    await until(lambda: time.time() > expires_at + 0.1, within=10)
    go_on.set()
    async with running(Worker(app)):
        assert await handle.result(timeout=patience(10)) == "done"
    assert starts == 2


async def test_a_retry_that_is_due_after_the_expiry_runs(app: App[None]) -> None:
    starts = 0

    @app.task
    async def work() -> int:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise RetryLater(EXPIRES_S + 0.1)
        return starts

    async with running(Worker(app)):
        handle = await work.options(expires=EXPIRES_S).enqueue()
        assert await handle.result(timeout=patience(10)) == 2
