"""F41, F23: a wait that ends too soon says how the job stands and who could run it."""

from __future__ import annotations

import anyio
import pytest

from headrace import App, CancelOutcome, InvalidOption, Task, WaitTimeout, Worker
from headrace.events import AttemptEnded
from headrace.testing import EventLog, Kit, running
from tests.support.nowhere import unreachable_app


@pytest.fixture
def echo(app: App[None]) -> Task[[int], int]:
    @app.task(name="echo", queue="echoes")
    async def echo(value: int) -> int:
        return value

    return echo


async def test_f41_it_says_that_no_worker_serves_the_queue(echo: Task[[int], int]) -> None:
    """F41: the first thing that a newcomer meets."""
    handle = await echo.enqueue(1)
    with pytest.raises(WaitTimeout) as caught:
        await handle.result(timeout=0.05)
    words = "within 0.05 s: it is queued, and no worker serves queue 'echoes': start one"
    assert words in str(caught.value)
    assert caught.value.is_served is False
    assert caught.value.handle is handle


async def test_f41_it_says_that_no_worker_knows_the_task(
    app: App[None], echo: Task[[int], int]
) -> None:
    """F41: a worker of another program, or of an older release, does not."""
    other = App(app.url, tenant=app.tenant)

    @other.task(name="other", queue="echoes")
    async def unused() -> None: ...

    log = EventLog()
    async with other, running(Worker(other, emit=log)):
        handle = await echo.enqueue(1)
        await log.wait(AttemptEnded)  # until it has seen that, the job is active
        with pytest.raises(WaitTimeout, match="no live worker of queue 'echoes'") as caught:
            await handle.result(timeout=0.05)
    assert caught.value.is_served is False
    assert "knows the task 'echo': start one that does" in str(caught.value)


async def test_f41_it_says_that_the_job_goes_on(app: App[None]) -> None:
    """F41: where a worker has it, to wait longer is all that is to do."""
    started, gate = anyio.Event(), anyio.Event()

    @app.task(name="slow")
    async def slow() -> str:
        started.set()
        await gate.wait()
        return "done"

    async with running(Worker(app)):
        handle = await slow.enqueue()
        await started.wait()
        with pytest.raises(WaitTimeout, match="it is active, and goes on") as caught:
            await handle.result(timeout=0.05)
        assert caught.value.is_served is True
        gate.set()
        assert await caught.value.handle.result() == "done"


async def test_f41_it_says_that_the_job_is_not_due(app: App[None], echo: Task[[int], int]) -> None:
    """F41: nothing is wrong then."""
    async with running(Worker(app)):
        with pytest.raises(WaitTimeout, match="it is scheduled, and not due yet") as caught:
            await echo.options(delay=60, wait_timeout=0.05).enqueue_and_wait(1)
    assert caught.value.is_served is True


async def test_f23_wait_timeout_bounds_the_wait_and_not_the_attempt(
    echo: Task[[int], int],
) -> None:
    """F23: the error has the handle, so that the job can be cancelled."""
    call = echo.options(wait_timeout=0.05, expires=60)
    with pytest.raises(WaitTimeout) as caught:
        await call.enqueue_and_wait(1)
    handle = caught.value.handle
    assert (handle.id, handle.queue) == (caught.value.job_id, "echoes")
    assert await handle.cancel() is CancelOutcome.CANCELLED


async def test_f23_wait_timeout_is_checked(echo: Task[[int], int]) -> None:
    """F23: like every duration."""
    with pytest.raises(InvalidOption, match="wait_timeout=-1"):
        echo.options(wait_timeout=-1)


async def test_f23_it_is_nothing_that_is_stored(app: App[None], echo: Task[[int], int]) -> None:
    """F23: only who waits knows of it."""
    job = echo.options(wait_timeout=5).job(1)
    assert job.options == b""
    async with running(Worker(app)):
        assert await echo.options(wait_timeout=30).enqueue_and_wait(2) == 2


async def test_f23_a_kit_obeys_it_too() -> None:
    """F23: in its own time."""
    app = App("memory://f23")

    @app.task(name="later")
    async def later() -> None: ...

    async with Kit(app):
        with pytest.raises(WaitTimeout, match="within 60 s") as caught:
            await later.options(delay=600, wait_timeout=60).enqueue_and_wait()
        assert (await caught.value.handle.status()).state == "scheduled"


async def test_f41_a_storage_that_is_away_does_not_hide_that_the_time_is_over() -> None:
    """F41: what can't be read is said so, in place of a promise."""
    async with unreachable_app() as app:
        with pytest.raises(WaitTimeout, match="how it stands can't be read") as caught:
            await app.job("x").result(timeout=0.05)
        assert caught.value.is_served is None
        assert "goes on" not in str(caught.value)
