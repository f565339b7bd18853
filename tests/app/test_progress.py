"""What handlers say while they run: progress in the record and the events, output in a stream."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from headrace import App, Context, JobHandle, JobNotFound, JobState, Retry, Worker
from headrace.events import JobEventKind
from headrace.testing import EventLog, running
from tests.apps import slots_app
from tests.support.jobs import ended
from tests.support.until import patience, until

START_S = 30.0
KINDS = ["talk_in_loop", "talk_in_thread", "talk"]


async def collected(job: JobHandle[Any]) -> list[object]:
    """Read a job's output to its end."""
    async with asyncio.timeout(patience(START_S)):
        return [piece async for piece in job.stream()]


async def told(app: App[None], queue: str, job_id: str) -> list[str]:
    """Return the details of a job's progress events."""
    found = app.queue(queue).events()
    return [
        event.detail or ""
        async for event in found
        if event.kind is JobEventKind.PROGRESS and event.job_id == job_id
    ]


async def test_progress_is_in_the_record_and_the_events_while_the_handler_runs(
    app: App[None],
) -> None:
    go_on = asyncio.Event()

    @app.task
    async def work(context: Context) -> None:
        context.progress(0.25, "a quarter - ¼")
        await go_on.wait()

    async with running(Worker(app)):
        job = await work.enqueue()

        async def is_told() -> bool:
            return (await job.status()).progress is not None

        await until(is_told, within=10)
        record = await job.status()
        assert record.state is JobState.ACTIVE
        assert (record.progress, record.progress_text) == (0.25, "a quarter - ¼")
        assert await told(app, "default", job.id) == ["0.25 a quarter - ¼"]
        go_on.set()
        await job.result(timeout=patience(10))
    assert (await job.status()).progress == 0.25


@pytest.mark.parametrize("name", KINDS)
async def test_progress_is_thinned_out_but_for_the_last(app: App[None], name: str) -> None:
    slots_app.adopt(app)
    async with running(Worker(app, process_slots=1, emit=EventLog())):
        job = await app.enqueue(name, 2_000)
        record = await ended(job, within=START_S)
    assert (record.progress, record.progress_text) == (1.0, "piece 1999")
    details = await told(app, "cpu", job.id)
    # Output is passed on each 20 ms, and takes the progress of the moment along.
    assert 1 <= len(details) <= 2 + (record.run_s or 0) * 100
    assert details[-1] == "1 piece 1999"


async def test_progress_alone_is_told_twice_a_second(app: App[None]) -> None:
    @app.task
    async def work(context: Context) -> None:
        until_s = time.monotonic() + 1.2
        while time.monotonic() < until_s:
            context.progress(0.5)
            await asyncio.sleep(0)

    async with running(Worker(app)):
        job = await work.enqueue()
        record = await ended(job, within=START_S)
    assert 1 <= len(await told(app, "default", job.id)) <= 2 + (record.run_s or 0) * 2


@pytest.mark.parametrize("name", KINDS)
async def test_a_stream_brings_all_pieces_in_order_and_ends_with_the_job(
    app: App[None], name: str
) -> None:
    slots_app.adopt(app)
    async with running(Worker(app, process_slots=1, emit=EventLog())):
        job = await app.enqueue(name, 300)
        assert await collected(job) == list(range(300))
        assert await job.result(timeout=patience(10)) == 300
        assert await collected(job) == list(range(300)), "it can be read again"


async def test_pieces_arrive_while_the_handler_runs(app: App[None]) -> None:
    may_go_on = asyncio.Event()

    @app.task
    async def work(context: Context) -> None:
        await context.emit({"word": "first"})
        await may_go_on.wait()
        await context.emit({"word": "second"})

    async with running(Worker(app)), asyncio.timeout(patience(START_S)):
        job = await work.enqueue()
        stream = job.stream()
        assert await anext(stream) == {"word": "first"}
        may_go_on.set()
        assert [piece async for piece in stream] == [{"word": "second"}]


async def test_a_retry_begins_anew_in_the_same_stream(app: App[None]) -> None:
    was_read = asyncio.Event()

    @app.task(retry=Retry(min=0.001, max=0.01))
    async def work(context: Context) -> None:
        for number in range(3):
            await context.emit([context.start, number])
        if context.start == 1:
            await was_read.wait()
            raise ValueError("again")

    async with running(Worker(app)), asyncio.timeout(patience(START_S)):
        job = await work.enqueue()
        pieces = []
        async for piece in job.stream():
            pieces.append(piece)
            if len(pieces) == 3:
                was_read.set()
    assert pieces == [[attempt, number] for attempt in (1, 2) for number in range(3)]


async def test_of_many_pieces_the_newest_thousand_are_kept(app: App[None]) -> None:
    slots_app.adopt(app)
    async with running(Worker(app, process_slots=0)):
        job = await app.enqueue("talk_in_loop", 3_000)
        await job.result(timeout=patience(START_S))
    assert await collected(job) == list(range(2_000, 3_000))


async def test_a_job_without_output_has_an_empty_stream(app: App[None]) -> None:
    @app.task
    async def work() -> None: ...

    async with running(Worker(app)):
        assert await collected(await work.enqueue()) == []


async def test_a_stream_of_an_unknown_job_raises_at_once(app: App[None]) -> None:
    with pytest.raises(JobNotFound):
        await collected(app.job("nothing"))


async def test_a_stream_of_a_waiting_job_that_is_cancelled_ends(app: App[None]) -> None:
    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(collected(job))
        await job.cancel()
    assert reading.result() == []


async def test_a_piece_that_is_too_large_is_the_handlers_error(app: App[None]) -> None:
    @app.task(max_attempts=1)
    async def work(context: Context) -> None:
        await context.emit("x" * 70_000)

    async with running(Worker(app)):
        record = await ended(await work.enqueue())
    assert record.errors[0].type == "headrace.PayloadTooLarge"
