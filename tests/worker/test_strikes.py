"""Workers and what they are not to run: a task is paused, jobs are struck by their arguments."""

from __future__ import annotations

import asyncio
import enum
from functools import partial
from typing import Annotated, Any

import msgspec
import pytest

from headrace import Alias, App, JobCancelled, JobHandle, JobState, Queue, Worker
from headrace.events import AttemptEnded
from headrace.job import Claim, ClaimedJob
from headrace.outcome import Struck
from headrace.strike import strike_of
from headrace.testing import EventLog, Kit, running
from headrace.worker.strikes import KnownStrikes
from tests.support.until import until

QUEUE = "default"


class Recorder:
    """Notes the order in which handlers ran, and holds the first up until it is let go."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.may_go_on = asyncio.Event()

    async def run(self, label: str) -> None:
        if label == "holds":
            await self.may_go_on.wait()
        self.ran.append(label)


@pytest.fixture
def recorder(app: App[None]) -> Recorder:
    recorder = Recorder()

    @app.task(name="send")
    async def send(label: str, customer: str = "1") -> None:
        await recorder.run(label)

    @app.task(name="print")
    async def printed(label: str) -> None:
        await recorder.run(label)

    return recorder


async def has_blocked(queue: Queue, n: int) -> bool:
    """Whether so many jobs are blocked, and none waits or runs."""
    stats = await queue.stats()
    return (stats.blocked, stats.queued, stats.active) == (n, 0, 0)


async def test_a_paused_task_waits_in_order_while_others_go_on(
    app: App[None], recorder: Recorder
) -> None:
    send, printed, queue = app.tasks["send"], app.tasks["print"], app.queue(QUEUE)
    async with running(Worker(app, concurrency=1)):
        await printed.enqueue("holds")
        sent = [await send.enqueue(f"s{n}") for n in range(5)]
        await queue.pause("send")
        others = [await printed.enqueue(f"p{n}") for n in range(5)]
        recorder.may_go_on.set()
        for handle in others:
            await handle.result(timeout=20)
        assert recorder.ran == ["holds", *(f"p{n}" for n in range(5))]
        await until(partial(has_blocked, queue, 5))
        await queue.resume("send")
        for handle in sent:
            await handle.result(timeout=20)
    assert recorder.ran[6:] == [f"s{n}" for n in range(5)]
    for handle in sent:
        status = await handle.status()
        assert status is not None
        assert (status.starts, status.failures, status.stalls) == (1, 0, 0)


async def test_a_strike_holds_for_every_claim_after_it(app: App[None], recorder: Recorder) -> None:
    send, queue, log = app.tasks["send"], app.queue(QUEUE), EventLog()
    async with running(Worker(app, concurrency=2, emit=log)):
        running_one = await send.enqueue("holds", "42")
        await until(partial(_is_active, running_one))
        strike = await queue.strike("send", where={"customer": "42"})
        struck = [await send.enqueue(f"s{n}", "42") for n in range(10)]
        others = [await send.enqueue(f"o{n}", "7") for n in range(10)]
        for handle in others:
            await handle.result(timeout=20)
        # What was active goes on.
        recorder.may_go_on.set()
        await running_one.result(timeout=20)
        await until(partial(has_blocked, queue, 10))
        assert sorted(recorder.ran) == sorted(["holds", *(f"o{n}" for n in range(10))])
        assert {event.outcome for event in log.of(AttemptEnded)} == {"completed", "struck"}
        recorder.ran.clear()
        assert await queue.lift(strike)
        for handle in struck:
            await handle.result(timeout=20)
    assert sorted(recorder.ran) == [f"s{n}" for n in range(10)]
    for handle in struck:
        status = await handle.status()
        assert status is not None
        # It was handed out once, and laid aside.
        assert (status.starts, status.failures, status.stalls) == (2, 0, 0)


async def _is_active(handle: JobHandle[Any]) -> bool:
    status = await handle.status()
    return status is not None and status.state is JobState.ACTIVE


async def test_a_strike_that_cancels_ends_what_it_meets(app: App[None], recorder: Recorder) -> None:
    queue = app.queue(QUEUE)
    await queue.strike(where={"label": "a"}, action="cancel")
    struck = [await app.tasks[name].enqueue("a") for name in ("send", "print")]
    other = await app.tasks["send"].enqueue("b")
    async with running(Worker(app)):
        await other.result(timeout=20)
        for handle in struck:
            with pytest.raises(JobCancelled):
                await handle.result(timeout=20)
            status = await handle.status()
            assert status is not None
            assert (status.state, status.reason) == (JobState.CANCELLED, "struck")
    assert recorder.ran == ["b"]


@pytest.mark.parametrize("n", [500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("where", [None, {"customer": "42"}], ids=["task", "arguments"])
async def test_many_struck_jobs_do_not_hold_up_those_behind_them(
    app: App[None], recorder: Recorder, where: dict[str, str] | None, n: int
) -> None:
    send, printed, queue = app.tasks["send"], app.tasks["print"], app.queue(QUEUE)
    handles = await app.enqueue_many(send.job(f"s{i}", "42") for i in range(n))
    behind = [await printed.enqueue(f"p{i}") for i in range(10)]
    strike = await queue.strike("send", where=where)
    async with running(Worker(app, concurrency=50)):
        for handle in behind:
            await handle.result(timeout=60)
        assert sorted(recorder.ran) == sorted(f"p{i}" for i in range(10))
        await queue.lift(strike)
        for handle in handles[:: max(1, n // 100)]:
            await handle.result(timeout=60)
        await until(partial(has_blocked, queue, 0), within=60)
    assert sorted(recorder.ran[10:]) == sorted(f"s{i}" for i in range(n))


class Size(enum.Enum):
    SMALL = "s"


CONDITIONS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"number": 1}, {"number": 1}, True),
    ({"number": 1}, {"number": 1.0}, True),
    ({"number": 1}, {"number": "1"}, False),
    ({"number": 1}, {"number": True}, False),
    ({"number": 1}, {"flag": False, "text": None, "size": "s"}, True),
    ({"number": 1, "flag": True}, {"flag": 1}, False),
    ({"number": 1, "text": "x"}, {"text": "x", "number": 1}, True),
    ({"number": 1, "text": "x"}, {"text": "x", "number": 2}, False),
    ({"number": 1}, {"nothing": None}, False),
    ({"old_number": 1}, {"number": 1}, True),
]


@pytest.mark.parametrize("at", range(len(CONDITIONS)))
def test_values_are_compared_with_arguments_as_json_has_them(at: int) -> None:
    arguments, where, is_met = CONDITIONS[at]
    app: App[None] = App("memory://")

    @app.task(name="send")
    async def send(
        number: Annotated[int, Alias("old_number")],
        *,
        flag: bool = False,
        text: str | None = None,
        size: Size = Size.SMALL,
    ) -> None: ...

    strike = strike_of("send", where, "wait")
    job = ClaimedJob(
        id="x",
        queue=QUEUE,
        task="send",
        payload=msgspec.json.encode(arguments),
        claim=Claim(1, "w/1"),
        failures=0,
        stalls=0,
        created_ms=0,
        waited_ms=0,
        options=b"",
    )
    outcome = KnownStrikes.of(1, [strike]).outcome(job, app.tasks["send"])
    assert outcome == (Struck(strike.id) if is_met else None)


async def test_a_fail_job_is_no_job_with_the_arguments_of_the_one_that_failed() -> None:
    app: App[None] = App("memory://")
    seen: list[str] = []

    @app.task(name="clean")
    async def clean(job_id: str, arguments: Any, error: Any) -> None:
        seen.append(arguments["customer"])

    @app.task(name="send", max_attempts=1, on_failed="clean")
    async def send(customer: str) -> None:
        raise ValueError(customer)

    async with Kit(app) as kit:
        await app.queue(QUEUE).strike("clean", where={"customer": "42"})
        await send.enqueue("42")
        await kit.run_until_idle()
    assert seen == ["42"]
