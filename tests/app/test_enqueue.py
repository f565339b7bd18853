"""Bringing jobs in: one by one, together, in bulk, by name, and again under the same id."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import (
    App,
    CancelOutcome,
    Context,
    EnqueueOutcome,
    InvalidOption,
    Job,
    JobHandle,
    JobState,
    Retry,
    StorageError,
    StorageFull,
    Task,
    UsageError,
    Worker,
    current_job,
)
from headrace.testing import running
from tests.support.jobs import ended, gone
from tests.support.redis_server import RedisServer
from tests.support.until import until


@pytest.fixture
def runs() -> list[object]:
    """What the handlers saw, in order."""
    return []


@pytest.fixture
def note(app: App[None], runs: list[object]) -> Task[[object], object]:
    @app.task(name="note")
    async def note(value: object) -> object:
        runs.append(value)
        return value

    return note


async def test_a_task_can_be_called_without_a_queue(
    note: Task[[object], object], runs: list[object]
) -> None:
    assert await note(5) == 5
    assert runs == [5]


async def test_a_task_that_takes_a_context_can_be_called_only_inside_a_job(app: App[None]) -> None:
    @app.task
    async def inner(context: Context[None], word: str) -> str:
        return f"{word} {context.task.rpartition('.')[2]}"

    @app.task
    async def outer() -> str:
        return await inner("in")

    with pytest.raises(LookupError, match="outside a handler"):
        await inner("out")
    with pytest.raises(LookupError, match="outside a handler"):
        current_job()
    async with running(Worker(app)):
        assert await outer.enqueue_and_wait() == "in outer"


async def test_a_job_is_seen_before_any_worker_has_run(note: Task[[object], object]) -> None:
    # BC-54.
    queued = await note.enqueue(1)
    scheduled = await note.options(delay=60).enqueue(2)
    at = datetime.now(UTC) + timedelta(hours=1)
    timed = await note.options(run_at=at).enqueue(3)
    assert (await queued.status()).state is JobState.QUEUED
    assert (await scheduled.status()).state is JobState.SCHEDULED
    assert scheduled.outcome is EnqueueOutcome.SCHEDULED
    due_at = (await timed.status()).due_at
    assert due_at is not None
    assert abs(due_at - at) <= timedelta(milliseconds=1)


async def test_an_instant_in_the_past_is_due_now(note: Task[[object], object]) -> None:
    handle = await note.options(run_at=datetime(2000, 1, 1, tzinfo=UTC)).enqueue(1)
    assert handle.outcome is EnqueueOutcome.QUEUED


async def test_options_are_stored_with_the_job_and_reach_the_handler(app: App[None]) -> None:
    @app.task(max_attempts=2, timeout=50)
    async def tell(context: Context[None]) -> list[object]:
        return [
            context.max_attempts,
            context.timeout,
            dict(context.headers),
            context.queue,
            context.job_id,
            context.start,
            context.failures,
            context.stalls,
        ]

    async with running(Worker(app, ["default", "other"])):
        assert (await tell.options(id="plain").enqueue_and_wait())[:2] == [2, 50.0]
        asked = tell.options(
            id="asked", queue="other", max_attempts=9, timeout=7, headers={"trace": "ü"}
        )
        assert await asked.enqueue_and_wait() == [9, 7.0, {"trace": "ü"}, "other", "asked", 1, 0, 0]
    record = await app.job("asked", queue="other").status()
    assert record.priority == 5


async def test_an_active_id_is_a_duplicate_and_changes_nothing(
    app: App[None], note: Task[[object], object], runs: list[object]
) -> None:
    first = await note.options(id="x").enqueue(1)
    again = await note.options(id="x", priority=9, delay=60).enqueue(2)
    assert (first.outcome, again.outcome) == (EnqueueOutcome.QUEUED, EnqueueOutcome.DUPLICATE)
    assert (await app.queue("default").stats()).queued == 1
    async with running(Worker(app)):
        assert await again.result() == 1
    assert runs == [1]


async def test_a_completed_id_answers_with_its_result(
    app: App[None], note: Task[[object], object], runs: list[object]
) -> None:
    # BC-24: while the record is kept the result is returned, and nothing runs.
    async with running(Worker(app)):
        await note.options(id="x").enqueue_and_wait(1)
        again = await note.options(id="x").enqueue(2)
        assert again.outcome is EnqueueOutcome.COMPLETED
        assert await again.result() == 1
        assert await note.options(id="x").enqueue_and_wait(3) == 1
    assert runs == [1]


async def test_an_id_is_free_again_when_nothing_is_kept(
    app: App[None], note: Task[[object], object], runs: list[object]
) -> None:
    # BC-24, the other choice.
    async with running(Worker(app)):
        for number in range(3):
            handle = await note.options(id="x", keep=0).enqueue(number)
            assert handle.outcome is EnqueueOutcome.QUEUED
            await until(lambda: number in runs)  # noqa: B023 (waited for here)
            await gone(app.job("x"))
    assert runs == [0, 1, 2]


async def test_a_bulk_of_thousands_keeps_its_order_and_its_handles(app: App[None]) -> None:
    order: dict[str, list[int]] = {"left": [], "right": []}

    @app.task
    async def take(context: Context[None], number: int) -> None:
        order[context.queue].append(number)

    calls = {name: take.options(queue=name) for name in order}

    def queue_of(number: int) -> str:
        return "left" if number // 20 % 3 else "right"

    def jobs() -> Iterator[Job]:
        for number in range(5_000):
            yield calls[queue_of(number)].job(number)

    handles = await app.enqueue_many(jobs())
    assert [handle.queue for handle in handles] == [queue_of(number) for number in range(5_000)]
    assert len({handle.id for handle in handles}) == 5_000
    assert {handle.outcome for handle in handles} == {EnqueueOutcome.QUEUED}
    async with running(Worker(app, ["left", "right"], concurrency=50)):
        await until(lambda: sum(map(len, order.values())) == 5_000, within=15)
    # Handlers that don't wait start in the order in which their jobs were claimed.
    for name, numbers in order.items():
        assert numbers == [n for n in range(5_000) if queue_of(n) == name]


async def test_a_bulk_reads_a_generator_only_as_the_storage_takes_its_jobs(
    app: App[None], note: Task[[object], object]
) -> None:
    made = 0

    def jobs() -> Iterator[Job]:
        nonlocal made
        for number in range(20_000):
            made = number + 1
            yield note.job(number)

    sending = asyncio.create_task(app.enqueue_many(jobs()))
    await until(lambda: made > 0)
    assert made < 10_000
    assert len(await sending) == 20_000


@pytest.mark.parametrize("is_prepared", [False, True], ids=["as it is", "prepared"])
async def test_a_bulk_that_replaces_nothing_leaves_records_of_ended_jobs(
    app: App[None], note: Task[[object], object], *, is_prepared: bool
) -> None:
    if is_prepared:
        app.before_enqueue(lambda draft: draft.headers.update(trace="1"))
    jobs = [note.options(id=f"w:{number}").job(number) for number in range(3)]
    cancelled = note.options(id="w:1").job("before")
    [handle] = await app.enqueue_many([cancelled], replace_ended=False)
    await handle.cancel()
    again = await app.enqueue_many(iter(jobs), replace_ended=False)
    assert [each.outcome for each in again] == ["queued", "duplicate", "queued"]
    assert (await handle.status()).state is JobState.CANCELLED
    # The jobs were not changed by that, and are new ones no more.
    assert [each.outcome for each in await app.enqueue_many(jobs)] == [
        "duplicate",
        "queued",
        "duplicate",
    ]


async def test_a_bulk_of_random_ids_replaces_nothing_anyway(
    app: App[None], note: Task[[object], object]
) -> None:
    job = note.job(1)
    [first] = await app.enqueue_many([job], replace_ended=False)
    [second] = await app.enqueue_many([job], replace_ended=False)
    assert (first.outcome, second.outcome) == ("queued", "duplicate")


@pytest.mark.parametrize("wrong", [0, None, "no"])
async def test_a_bulk_that_is_told_nonsense_is_refused(
    app: App[None], note: Task[[object], object], wrong: Any
) -> None:
    with pytest.raises(InvalidOption, match="replace_ended="):
        await app.enqueue_many([note.job(1)], replace_ended=wrong)
    with pytest.raises(UsageError, match="can't be iterated"):
        await app.enqueue_many(7, replace_ended=False)  # type: ignore[arg-type]


async def test_one_job_in_place_of_many_is_refused_without_its_arguments(
    app: App[None], note: Task[[object], object]
) -> None:
    with pytest.raises(UsageError, match="one job can't be iterated: pass a list") as refused:
        await app.enqueue_many(note.job("secret"))  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


async def test_an_empty_bulk_is_nothing(app: App[None]) -> None:
    assert await app.enqueue_many([]) == []
    assert await app.enqueue_many(iter(())) == []


async def test_the_error_of_a_bulk_carries_what_was_accepted() -> None:
    with RedisServer() as server:
        async with App(server.url, retry_for=0.2) as app:

            @app.task
            async def take(text: str) -> None: ...

            await app.connect()
            await take.enqueue("")
            with server.client() as client:
                used = int(client.info("memory")["used_memory"])
                client.config_set("maxmemory", used + 6_000_000)
            with pytest.raises(StorageFull) as caught:
                await app.enqueue_many(take.job("x" * 5_000) for _ in range(10_000))
            accepted = caught.value.accepted
            assert 500 <= len(accepted) < 10_000
            for handle in (accepted[0], accepted[-1]):
                assert (await handle.status()).state is JobState.QUEUED


async def test_calls_made_together_each_get_their_own_verdict(
    app: App[None], note: Task[[object], object]
) -> None:
    ids = ["a", "b", "a", "c", "b", "a"]
    handles = await asyncio.gather(*(note.options(id=i).enqueue(i) for i in ids))
    assert [handle.id for handle in handles] == ids
    queued, duplicate = EnqueueOutcome.QUEUED, EnqueueOutcome.DUPLICATE
    assert [handle.outcome for handle in handles] == [
        queued,
        queued,
        duplicate,
        queued,
        duplicate,
        duplicate,
    ]


async def test_a_cancelled_caller_does_not_disturb_those_it_was_sent_with(
    app: App[None], note: Task[[object], object]
) -> None:
    calls = [
        asyncio.create_task(note.options(id=f"job {number}").enqueue(number))
        for number in range(200)
    ]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes[::2])
    assert [h.id for h in outcomes[1::2] if isinstance(h, JobHandle)] == [
        f"job {number}" for number in range(1, 200, 2)
    ]


async def test_one_bad_call_does_not_disturb_those_it_was_made_with(
    app: App[None], note: Task[[object], object]
) -> None:
    outcomes = await asyncio.gather(
        *(note.enqueue(value) for value in (1, b"raw", 2)), return_exceptions=True
    )
    assert [isinstance(outcome, JobHandle) for outcome in outcomes] == [True, False, True]
    assert (await app.queue("default").stats()).queued == 2


async def test_a_task_is_enqueued_by_its_name(app: App[None], note: Task[[object], object]) -> None:
    async with running(Worker(app, ["default", "other"])):
        assert await (await app.enqueue("note", 5)).result() == 5
        assert await (await app.enqueue("note", value=6)).result() == 6
        handle = await app.enqueue("note", 7, queue="other")
        assert handle.queue == "other"
        assert await handle.result() == 7


async def test_a_producer_needs_no_tasks_of_its_own(
    app: App[None], note: Task[[object], object], redis_url: str
) -> None:
    async with App(redis_url, tenant=app.tenant) as producer, running(Worker(app)):
        handle = await producer.enqueue("note", value=[1, 2], queue="default")
        assert await handle.result() == [1, 2]
        assert await producer.job(handle.id).result() == [1, 2]


async def test_names_that_are_equal_to_python_but_not_to_redis_are_two_jobs(
    app: App[None], note: Task[[object], object]
) -> None:
    # BC-66, and RELIABILITY §5 33: nothing is normalised.
    ids = ["123", "00123", "a:b", "a:exp", "{x}", "*", "../x", "é", "e\u0301", "😀", " a", "a "]
    for job_id in ids:
        assert (await note.options(id=job_id).enqueue(job_id)).outcome is EnqueueOutcome.QUEUED
    async with running(Worker(app)):
        for job_id in ids:
            assert await app.job(job_id).result() == job_id


async def test_a_queue_and_a_tenant_never_meet(redis_url: str) -> None:
    # RELIABILITY §5 35.
    async with App(redis_url, tenant="a") as first, App(redis_url, tenant="a.b") as second:
        await first.enqueue("task", queue="b.c")
        await second.enqueue("task", queue="c")
        assert await first.queues() == ["b.c"]
        assert await second.queues() == ["c"]
        assert (await first.queue("c").stats()).queued == 0


async def test_cancel_then_enqueue_again_runs_the_new_one_alone(
    app: App[None], note: Task[[object], object], runs: list[object]
) -> None:
    # BC-28.
    first = await note.options(id="x").enqueue(1)
    assert await first.cancel() is CancelOutcome.CANCELLED
    second = await note.options(id="x").enqueue(2)
    assert second.outcome is EnqueueOutcome.QUEUED
    async with running(Worker(app)):
        assert await second.result() == 2
    assert runs == [2]


async def test_retry_settings_of_one_call_win_over_the_task_s(app: App[None]) -> None:
    times: list[int] = []

    @app.task(max_attempts=5, retry=Retry(min=100, max=200))
    async def fail(context: Context[None]) -> None:
        times.append(context.start)
        raise ValueError("no")

    async with running(Worker(app)):
        await fail.options(id="x", max_attempts=2, retry=Retry(min=0.01, max=0.02)).enqueue()
        await until(lambda: len(times) == 2)
        record = await ended(app.job("x"))
    assert (record.failures, record.state) == (2, JobState.FAILED)


async def test_errors_of_the_storage_have_no_handles_when_one_job_was_sent() -> None:
    async with App("redis://127.0.0.1:1", retry_for=0.01) as app:
        with pytest.raises(StorageError) as caught:
            await app.enqueue("task", queue="default")
        assert caught.value.accepted == ()
