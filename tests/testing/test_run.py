"""Running what is ready, in the test's own loop."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import anyio
import pytest

from headrace import App, AttemptOutcome, JobFailed, JobState, RetryLater, Snooze, UnknownTask
from headrace.events import AttemptEnded, AttemptStarted
from headrace.testing import FinishedAttempt, Kit
from tests.apps import shop_app
from tests.apps.shop_app import (
    Order,
    again,
    app,
    bill,
    check,
    fetch,
    hang,
    hold,
    leak,
    lie,
    send,
    ship,
)
from tests.support.until import until


def names(attempts: list[FinishedAttempt]) -> list[tuple[str, str]]:
    return [(attempt.task.rpartition(".")[2], attempt.outcome) for attempt in attempts]


async def test_nothing_runs_before_it_is_told_to(kit: Kit) -> None:
    job = await bill.enqueue(7)
    assert (await job.status()).state is JobState.QUEUED
    assert shop_app.order == []


async def test_what_is_ready_runs_and_what_that_enqueues(kit: Kit) -> None:
    job = await ship.enqueue(Order(1, ("a", "b")))
    ran = await kit.run_until_idle()
    # Queues in the order of their names: "mail" had nothing when its first turn came.
    assert names(ran) == [("ship", "completed"), ("bill", "completed"), ("send", "completed")]
    assert [attempt.result for attempt in ran] == [2, "bill 1", "shipped to a@b.c"]
    assert await job.result() == 2
    assert await kit.run_until_idle() == []


async def test_jobs_of_a_queue_run_in_the_order_of_a_worker(kit: Kit) -> None:
    """G5."""
    for number in range(5):
        await bill.enqueue(number)
    await bill.options(priority=9).enqueue(99)
    ran = await kit.run_until_idle()
    assert [attempt.result for attempt in ran] == [f"bill {n}" for n in (99, 0, 1, 2, 3, 4)]


async def test_one_attempt_runs_at_a_time_unless_more_are_allowed(kit: Kit) -> None:
    for name in "ab":
        await hold.enqueue(name)
    async with anyio.create_task_group() as group:
        group.start_soon(kit.run_until_idle)
        await shop_app.doors[-1].reached.wait()
        shop_app.doors[-1].opened.set()
    assert shop_app.order == ["hold", "begin a", "end a", "hold", "begin b", "end b"]


async def test_several_attempts_may_run_at_once(kit: Kit) -> None:
    for name in "abc":
        await hold.enqueue(name)

    async def run() -> None:
        assert len(await kit.run_until_idle(concurrency=2)) == 3

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: "begin b" in shop_app.order)
        assert shop_app.order == ["hold", "begin a", "hold", "begin b"]
        shop_app.doors[-1].opened.set()


async def test_only_the_named_queues_are_served(kit: Kit) -> None:
    await ship.enqueue(Order(1))
    assert names(await kit.run_until_idle(queues=["mail"])) == []
    assert names(await kit.run_until_idle(queues=["orders"])) == [
        ("ship", "completed"),
        ("bill", "completed"),
    ]


async def test_an_error_is_kept_with_its_traceback_and_not_raised(kit: Kit) -> None:
    await send.enqueue("x", tries=1)
    [attempt] = await kit.run_until_idle()
    assert names([attempt]) == [("send", "retrying")]
    assert isinstance(attempt.error, ConnectionError)
    assert attempt.error.__traceback__ is not None
    # The longest wait that the policy allows: min * factor.
    assert attempt.retry_in == 20


async def test_an_error_is_raised_on_demand_when_the_rest_has_run(kit: Kit) -> None:
    await send.enqueue("x", tries=1)
    await bill.enqueue(1)
    with pytest.raises(ConnectionError, match="no answer for x") as caught:
        await kit.run_until_idle(raise_errors=True)
    assert "start 1 of tests.apps.shop_app.send" in caught.value.__notes__[0]
    assert shop_app.order == ["send", "bill"]


async def test_to_ask_for_another_run_is_no_error(kit: Kit) -> None:
    await check.enqueue("later")
    [attempt] = await kit.run_until_idle(raise_errors=True)
    assert attempt.outcome == "retrying"
    assert isinstance(attempt.error, RetryLater)
    assert attempt.retry_in == 30


@pytest.mark.parametrize(
    ("task", "reason", "error"),
    [
        (hang, "exhausted", TimeoutError),
        (leak, "permanent", JobFailed),
    ],
)
async def test_an_attempt_that_fails_without_an_exception_has_one(
    kit: Kit, task: object, reason: str, error: type[Exception]
) -> None:
    await app.enqueue(task.name)  # type: ignore[attr-defined]  # a task
    [attempt] = await kit.run_until_idle()
    assert (attempt.outcome, attempt.reason) == ("failed", reason)
    assert type(attempt.error) is error


async def test_arguments_that_do_not_fit_are_undecodable(kit: Kit) -> None:
    await ship.enqueue("no order")  # type: ignore[arg-type]  # the point
    [attempt] = await kit.run_until_idle()
    assert (attempt.outcome, attempt.reason) == ("failed", "undecodable")
    assert shop_app.order == []


async def test_a_result_of_another_type_is_told(kit: Kit) -> None:
    await lie.enqueue()
    [attempt] = await kit.run_until_idle()
    assert (attempt.outcome, attempt.result) == ("completed", "no number")
    assert "not of the type that it declares" in str(attempt.error)


async def test_jobs_that_enqueue_themselves_end_at_the_limit(kit: Kit) -> None:
    await again.enqueue(0)
    with pytest.raises(AssertionError, match=r"5 attempts ran .*shop_app\.again next.* limit="):
        await kit.run_until_idle(limit=5)
    assert shop_app.order == ["again"] * 5
    assert (await app.queue("orders").stats()).queued == 1, "what was claimed is handed back"


async def test_as_many_as_the_limit_may_run(kit: Kit) -> None:
    for number in range(5):
        await bill.enqueue(number)
    assert len(await kit.run_until_idle(limit=5)) == 5


async def test_a_cancelled_run_hands_its_jobs_back(kit: Kit) -> None:
    """G14."""
    job = await hold.enqueue("a")
    async with anyio.create_task_group() as group:
        group.start_soon(kit.run_until_idle)
        await shop_app.doors[-1].reached.wait()
        group.cancel_scope.cancel()
    record = await job.status()
    assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
    shop_app.doors[-1].opened.set()
    assert names(await kit.run_until_idle()) == [("hold", "completed")]


async def test_a_run_that_times_out_hands_its_jobs_back(kit: Kit) -> None:
    job = await hold.enqueue("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await kit.run_until_idle()
    assert (await job.status()).state is JobState.QUEUED


async def test_an_active_job_hears_of_its_cancel_at_once(kit: Kit) -> None:
    """G10."""
    job = await hold.enqueue("a")
    async with anyio.create_task_group() as group:
        group.start_soon(kit.run_until_idle)
        await shop_app.doors[-1].reached.wait()
        assert await job.cancel() == "requested"
    assert (await job.status()).state is JobState.CANCELLED
    assert shop_app.order == ["hold", "begin a"]


async def test_a_cancelled_job_never_runs(kit: Kit) -> None:
    """G10."""
    job = await bill.enqueue(1)
    assert await job.cancel() == "cancelled"
    assert await kit.run_until_idle() == []


async def test_a_paused_queue_waits(kit: Kit) -> None:
    await bill.enqueue(1)
    await app.queue("orders").pause()
    assert await kit.run_until_idle(advance=True) == []
    await app.queue("orders").resume()
    assert len(await kit.run_until_idle()) == 1


async def test_dead_letters_can_be_redriven(kit: Kit) -> None:
    job = await check.enqueue("refused")
    [attempt] = await kit.run_until_idle()
    assert (attempt.outcome, attempt.reason) == ("failed", "permanent")
    assert await app.queue("orders").redrive(job.id) == 1
    assert names(await kit.run_until_idle()) == [("check", "failed")]


async def test_a_queue_of_other_programs_is_left_alone(kit: Kit) -> None:
    job = await app.enqueue("elsewhere.task", queue="foreign", size=3)
    assert await kit.run_until_idle(advance=True) == []
    assert (await job.status()).state is JobState.QUEUED
    kit.assert_enqueued("elsewhere.task", {"size": 3}, queue="foreign")


async def test_an_unknown_task_in_a_queue_of_ours_is_released(kit: Kit) -> None:
    await app.enqueue("elsewhere.task", queue="orders")
    [attempt] = await kit.run_until_idle(queues=["orders"])
    assert attempt.outcome == "put_back"
    assert isinstance(attempt.error, UnknownTask)


async def test_the_lifespan_lasts_for_a_run_and_is_not_entered_for_nothing(kit: Kit) -> None:
    await kit.run_until_idle()
    assert shop_app.pools == []
    for number in range(2):
        await ship.enqueue(Order(number))
    await kit.run_until_idle()
    [pool] = shop_app.pools
    assert len(pool.used) == 2
    assert not pool.is_open


async def test_a_state_of_the_test_replaces_the_lifespan() -> None:
    pool = shop_app.Pool()
    async with Kit(app, state=pool) as kit:
        await ship.enqueue(Order(1))
        await kit.run_until_idle(raise_errors=True)
    assert pool.used == ["tests.apps.shop_app.ship"]
    assert shop_app.pools == []


async def test_events_tell_what_ran(kit: Kit) -> None:
    job = await bill.enqueue(1)
    await kit.run_until_idle()
    assert [event.job_id for event in kit.events.of(AttemptStarted)] == [job.id]
    assert [event.outcome for event in kit.events.finished(job.id)] == ["completed"]
    assert await kit.events.wait(AttemptEnded) == kit.events.of(AttemptEnded)


async def test_the_storage_tells_every_transition(kit: Kit) -> None:
    job = await send.options(delay=timedelta(hours=1)).enqueue("x", tries=1)
    await kit.run_until_idle(advance=True)
    told = [event.kind.value for event in await kit.job_events() if event.job_id == job.id]
    assert told == [
        *("scheduled", "queued", "active", "retrying"),
        *("queued", "active", "completed"),
    ]


async def test_a_kit_says_that_a_job_has_snoozed_and_runs_it_in_its_time(kit: Kit) -> None:
    await fetch.enqueue()
    [attempt] = await kit.run_until_idle(raise_errors=True)
    assert (attempt.outcome, attempt.reason, attempt.retry_in) == ("snoozed", "not yet", 60)
    assert isinstance(attempt.error, Snooze)
    assert not attempt.is_error
    [attempt] = await kit.run_until_idle(advance=True)
    assert attempt.result == "there"
    with pytest.raises(Snooze, match="not yet"):
        await kit.perform(fetch.job())


async def test_hooks_are_called_in_a_kit_too() -> None:
    told: list[tuple[str, object]] = []
    app = App("redis://localhost:1")

    @app.task(max_attempts=1)
    async def divide(number: int) -> float:
        return 1 / number

    @app.on_success
    def keep(attempt: AttemptOutcome) -> None:
        told.append((attempt.outcome, attempt.result))

    @app.on_failure
    async def keep_failure(attempt: AttemptOutcome) -> None:
        told.append((attempt.outcome, attempt.error and attempt.error.type))

    async with Kit(app) as kit:
        await divide.enqueue(2)
        await divide.enqueue(0)
        await kit.run_until_idle()
        assert await kit.perform(divide.job(4)) == 0.25
    assert told == [("completed", 0.5), ("failed", "ZeroDivisionError"), ("completed", 0.25)]
