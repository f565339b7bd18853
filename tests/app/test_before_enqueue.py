"""What is called before an enqueue sees each job, and may change its headers and options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import (
    App,
    Context,
    EnqueueOutcome,
    InvalidOption,
    Job,
    JobDraft,
    JobState,
    Retry,
    UsageError,
    Worker,
    current_job,
)
from headrace.app import clients_of, sender_of
from headrace.testing import running
from headrace.worker.plan import plan_of
from tests.support.nowhere import unreachable_app
from tests.worker.slots import claimed


def traced(app: App[Any]) -> Any:
    """Return a task that returns its headers, in an app that adds some."""

    @app.before_enqueue
    async def add_trace(draft: JobDraft) -> None:
        draft.headers["trace"] = f"{draft.task} in {draft.queue}"

    @app.before_enqueue
    def add_more(draft: JobDraft) -> None:
        draft.headers.setdefault("more", draft.headers["trace"].upper())

    @app.task(name="show", queue="work")
    async def show(context: Context) -> dict[str, str]:
        return dict(context.headers)

    return show


TRACED = {"trace": "show in work", "more": "SHOW IN WORK"}

WAYS: dict[str, Callable[[App[Any], Any], Awaitable[Any]]] = {
    "enqueue": lambda _app, task: result_of(task.enqueue()),
    "options": lambda _app, task: result_of(task.options(headers={"own": "1"}).enqueue()),
    "enqueue_and_wait": lambda _app, task: task.enqueue_and_wait(),
    "by name": lambda app, _task: result_of(app.enqueue("show")),
    "by name elsewhere": lambda app, _task: result_of(app.enqueue("show", queue="work")),
    "submit": lambda app, task: result_of(sender_of(app).submit(task.job())),
}


async def result_of(enqueued: Awaitable[Any]) -> Any:
    return await (await enqueued).result(timeout=10)


async def test_it_is_called_on_every_way_to_enqueue(app: App[None]) -> None:
    task = traced(app)
    async with running(Worker(app, ["work"])):
        for way, enqueue in WAYS.items():
            own = {"own": "1"} if way == "options" else {}
            assert await enqueue(app, task) == {**own, **TRACED}, way
        handles = await app.enqueue_many(task.job() for _ in range(3))
        assert [await handle.result(timeout=10) for handle in handles] == [TRACED] * 3


async def test_a_job_of_a_task_that_only_workers_know_is_seen_too(app: App[None]) -> None:
    seen: list[tuple[str, str, str, int]] = []
    app.before_enqueue(
        lambda draft: seen.append((draft.id, draft.task, draft.queue, draft.priority))
    )
    handle = await app.enqueue("elsewhere.send", queue="mail", to="a@b.c")
    assert seen == [(handle.id, "elsewhere.send", "mail", 5)]
    assert "elsewhere.send" in repr(JobDraft(app_request(app)))


def app_request(app: App[Any]) -> Any:
    @app.task(name="elsewhere.send")
    async def send() -> None: ...

    return send.job()


async def test_options_may_be_changed(app: App[None]) -> None:
    @app.before_enqueue
    def change(draft: JobDraft) -> None:
        draft.set(
            queue="slow",
            priority=9,
            delay=60,
            max_attempts=7,
            max_stalls=2,
            timeout=timedelta(seconds=5),
            retry=Retry(min=2, max=2),
            expires=90,
        )
        assert (draft.queue, draft.priority) == ("slow", 9)

    @app.task(name="work", queue="fast", max_attempts=1)
    async def work() -> None: ...

    at = datetime.now(UTC) + timedelta(hours=1)
    options: Any = {"id": "x", "run_at": at, "headers": {"a": "b"}, "max_attempts": 2}
    handle = await work.options(**options).enqueue()
    assert (handle.id, handle.queue, handle.outcome) == ("x", "slow", EnqueueOutcome.SCHEDULED)
    record = await clients_of(app).current().storage.get("slow", "x")
    assert record is not None
    assert (record.state, record.priority) == (JobState.SCHEDULED, 9)
    assert record.due_ms - record.created_ms == 60_000
    assert record.expires_ms - record.created_ms == 90_000
    [row] = [status async for status in app.queue("slow").jobs(JobState.SCHEDULED)]
    assert row.id == "x"
    assert b'"max_attempts":7' in record.options
    assert b'"timeout_ms":5000' in record.options
    assert b'"headers":{"a":"b"}' in record.options


async def test_what_is_not_changed_is_sent_as_it_was(app: App[None]) -> None:
    drafts: list[JobDraft] = []
    app.before_enqueue(drafts.append)

    @app.task
    async def work(number: int) -> int:
        return number

    job = work.options(id="one", headers={"a": "b"}, keep=5).job(1)
    first, again = await app.enqueue_many([job, job])
    assert (first.outcome, again.outcome) == (EnqueueOutcome.QUEUED, EnqueueOutcome.DUPLICATE)
    fresh = work.job(2)
    first, again = await app.enqueue_many([fresh, fresh])
    assert (first.outcome, again.outcome) == (EnqueueOutcome.QUEUED, EnqueueOutcome.DUPLICATE)
    assert [draft.headers for draft in drafts] == [{"a": "b"}, {"a": "b"}, {}, {}]
    record = await clients_of(app).current().storage.get("default", "one")
    assert record is not None
    assert record.options == job.options


async def test_headers_may_be_taken_away(app: App[None]) -> None:
    app.before_enqueue(lambda draft: draft.headers.clear())

    @app.task
    async def show(context: Context) -> dict[str, str]:
        return dict(context.headers)

    async with running(Worker(app)):
        assert await show.options(headers={"a": "b"}).enqueue_and_wait() == {}


async def test_a_handler_passes_its_own_headers_on(app: App[None]) -> None:
    @app.before_enqueue
    def inherit(draft: JobDraft) -> None:
        try:
            trace = current_job().headers["trace"]
        except LookupError:
            trace = "new"
        draft.headers.setdefault("trace", trace)

    @app.task
    async def child(context: Context) -> str:
        return context.headers["trace"]

    @app.task
    async def parent() -> str:
        return await child.enqueue_and_wait()

    async with running(Worker(app)):
        assert await parent.options(headers={"trace": "t-1"}).enqueue_and_wait() == "t-1"
        assert await parent.enqueue_and_wait() == "new"


async def test_what_it_raises_the_enqueue_raises_and_nothing_is_sent(app: App[None]) -> None:
    refusals = iter([PermissionError("not today"), InvalidOption("nor so"), KeyError("x")])

    @app.before_enqueue
    async def refuse(draft: JobDraft) -> None:
        raise next(refusals)

    @app.task
    async def work() -> None: ...

    with pytest.raises(PermissionError, match="not today"):
        await work.enqueue()
    with pytest.raises(InvalidOption, match="nor so"):
        await work.enqueue_and_wait()
    with pytest.raises(KeyError):
        await app.enqueue_many([work.job()])
    assert (await app.queue("default").stats()).queued == 0


async def test_many_are_prepared_as_the_storage_takes_them(app: App[None]) -> None:
    made: list[int] = []

    @app.before_enqueue
    async def refuse_late(draft: JobDraft) -> None:
        if len(made) > 500:
            raise PermissionError("too many")

    @app.task
    async def work(number: int) -> None: ...

    def jobs() -> Iterator[Job]:
        for number in range(2_000):
            made.append(number)
            yield work.job(number)

    with pytest.raises(PermissionError):
        await app.enqueue_many(jobs())
    assert (await app.queue("default").stats()).queued == 500
    assert len(made) == 1_000


async def test_a_cancelled_enqueue_that_is_being_prepared_sends_nothing(app: App[None]) -> None:
    begun = asyncio.Event()

    @app.before_enqueue
    async def wait(draft: JobDraft) -> None:
        begun.set()
        await asyncio.Event().wait()

    @app.task
    async def work() -> None: ...

    sending = asyncio.ensure_future(work.enqueue())
    await begun.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert (await app.queue("default").stats()).queued == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda draft: draft.set(priority=10),
        lambda draft: draft.set(queue="a b"),
        lambda draft: draft.set(delay=1, run_at=datetime.now(UTC)),
        lambda draft: draft.set(retry=lambda _errors, _error: 1.0),
        lambda draft: draft.headers.update(a=1),
        lambda draft: draft.headers.update(a="x" * 9_000),
        lambda draft: setattr(draft, "headers", None),
    ],
)
async def test_a_bad_change_is_refused_before_anything_is_sent(change: Any) -> None:
    app = unreachable_app()
    app.before_enqueue(change)

    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidOption):
        await work.enqueue()


async def test_what_is_no_job_is_refused_as_ever() -> None:
    app = unreachable_app()
    app.before_enqueue(lambda _draft: None)
    jobs: Any = [7]
    for what in (sender_of(app).submit(jobs), app.enqueue_many(jobs), app.enqueue_many(jobs[0])):
        with pytest.raises(UsageError):
            await what


@pytest.mark.parametrize("function", [7, lambda: None, lambda draft, more: None])
def test_what_can_not_be_called_with_a_draft_is_refused(function: Any) -> None:
    with pytest.raises(InvalidOption, match="before_enqueue="):
        unreachable_app().before_enqueue(function)


def test_the_changed_options_reach_the_plan_of_the_worker() -> None:
    app = unreachable_app()
    draft = JobDraft(app_request(app))
    draft.set(timeout=2)
    request = draft.request()
    task = app.tasks["elsewhere.send"]
    assert not request.is_plain
    assert plan_of(claimed(task, options=request.options), task.settings).timeout_ms == 2_000
