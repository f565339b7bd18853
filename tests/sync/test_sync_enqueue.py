"""Code without an event loop brings jobs in: one by one, in bulk, by name, with options."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any

import pytest

from headrace import (
    App,
    Blueprint,
    CancelOutcome,
    Context,
    EnqueueOutcome,
    InvalidArguments,
    InvalidOption,
    Job,
    JobDraft,
    JobNotFound,
    JobState,
    SyncApp,
    SyncTask,
    UnknownTask,
    UsageError,
)
from headrace.app_options import AppOptions
from tests.support.nowhere import unreachable_app
from tests.support.threads import at_a_time


@pytest.fixture
def add(app: SyncApp[None]) -> SyncTask[[int, int], int]:
    @app.task(name="add", queue="sums")
    def add(left: int, right: int = 0) -> int:
        return left + right

    return add


def queued(app: SyncApp[Any], queue: str = "sums") -> set[str]:
    return {job.id for job in app.queue(queue).jobs("queued")}


def test_a_job_is_stored_when_enqueue_returns(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    job = add.enqueue(1, 2)
    assert (job.queue, job.outcome) == ("sums", EnqueueOutcome.QUEUED)
    status = job.status()
    assert (status.state, status.args) == (JobState.QUEUED, {"left": 1, "right": 2})
    assert repr(job) == f"<SyncJobHandle {job.id!r} in 'sums'>"
    assert queued(app) == {job.id}
    assert app.queues() == ["sums"]


def test_a_call_has_options(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    named = add.options(id="one", priority=9, headers={"a": "b"}).enqueue(1, 2)
    assert add.options(id="one").enqueue(1, 2).outcome is EnqueueOutcome.DUPLICATE
    assert named.status().priority == 9
    assert add.options(delay=60).enqueue(1, 2).outcome is EnqueueOutcome.SCHEDULED
    assert add.options(run_at=at).enqueue(1, 2).status().state is JobState.SCHEDULED
    assert add.options(queue="other").enqueue(1, 2).queue == "other"
    assert named.cancel() is CancelOutcome.CANCELLED
    assert named.status().state is JobState.CANCELLED


def test_a_task_can_be_called_and_keeps_what_it_is(app: SyncApp[None]) -> None:
    @app.task
    def double(number: int) -> int:
        """Twice."""
        return 2 * number

    @app.task(queue="other")
    async def triple(context: Context[None], number: int) -> int:
        del context
        return 3 * number

    @app.task
    async def quadruple(number: int) -> int:
        return 4 * number

    assert double(2) == 4
    assert asyncio.run(quadruple(2)) == 8
    assert (double.__doc__, double.function.__name__) == ("Twice.", "double")
    assert list(signature(triple).parameters) == ["number"]
    assert triple.name.endswith("triple")
    assert repr(triple) == f"<SyncTask {triple.name!r} on queue 'other'>"
    assert app.app.tasks[double.name] is double.task


def test_many_jobs_are_stored_from_a_generator(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    jobs = app.enqueue_many(add.job(n, n) for n in range(1_234))
    assert len({job.id for job in jobs}) == 1_234
    assert {job.id for job in jobs} == queued(app)
    assert {job.outcome for job in jobs} == {EnqueueOutcome.QUEUED}
    assert app.enqueue_many([]) == []


def test_many_jobs_may_be_of_several_queues(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    queues = ["a", "b", "b", "a", "c"] * 300
    jobs = app.enqueue_many(add.options(queue=queue).job(1, 1) for queue in queues)
    assert [job.queue for job in jobs] == queues
    assert [len(queued(app, queue)) for queue in "abc"] == [600, 600, 300]


def test_what_fails_to_make_a_job_leaves_the_chunks_before_it_stored(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    def jobs() -> Iterator[Job[int]]:
        for n in range(1_700):
            yield add.job(n, n)
        raise LookupError("no more numbers")

    with pytest.raises(LookupError, match="no more numbers"):
        app.enqueue_many(jobs())
    assert len(queued(app)) == 1_500
    assert add.enqueue(1, 1).outcome is EnqueueOutcome.QUEUED


def test_a_job_may_be_sent_that_is_made_already(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    job = add.job(1, 2)
    assert app.submit(job).id == job.id
    assert app.submit(job).outcome is EnqueueOutcome.DUPLICATE


def test_tasks_have_names(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    assert app.enqueue("add", 1, right=2).queue == "sums"
    assert app.enqueue("shop.send", queue="mail", to="a@b.c").status().args == {"to": "a@b.c"}
    ref = app.task_ref("shop.send", queue="mail")
    assert repr(ref) == "<SyncTaskRef 'shop.send' on queue 'mail'>"
    assert ref.options(delay=5).enqueue(to="a").outcome is EnqueueOutcome.SCHEDULED
    assert ref.job(to="a").task == "shop.send"
    with pytest.raises(UnknownTask, match="say its queue="):
        app.enqueue("shop.send", to="a@b.c")
    with pytest.raises(UnknownTask, match="did you mean 'add'"):
        app.job("x", task="ad")


def test_a_job_is_found_again(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    job = add.enqueue(1, 2)
    assert app.job(job.id, task=add).status().state is JobState.QUEUED
    assert app.job(job.id, task="add").queue == "sums"
    found = app.find(job.id)
    assert (found.queue, found.outcome) == ("sums", EnqueueOutcome.UNKNOWN)
    with pytest.raises(JobNotFound, match="in any queue"):
        app.find("no such")
    with pytest.raises(JobNotFound):
        app.job("no such").status()


def test_a_queue_is_looked_at_and_steered(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    jobs = [add.enqueue(n, n) for n in range(3)]
    queue = app.queue("sums")
    assert (queue.name, repr(queue)) == ("sums", "<SyncQueue 'sums'>")
    queue.pause()
    assert queue.stats().paused
    queue.resume()
    assert queue.configure(history=7).keeps_history == 7
    assert queue.workers() == []
    assert [job.id for job in queue.jobs("queued", limit=2)] == [job.id for job in jobs[:2]]
    assert [event.job_id for event in queue.events()] == [job.id for job in jobs]
    assert queue.redrive(all_jobs=True) == 0
    assert queue.purge("queued", jobs[0].id) == 1
    assert queue.purge("queued", all_jobs=True) == 2
    with pytest.raises(InvalidOption, match="no stream id"):
        list(queue.events(after="x"))


# Over an async app


def test_an_async_app_has_a_sync_side(storage_url: str) -> None:
    inner: App[None] = App(storage_url, tenant="own")

    @inner.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    other: App[None] = App(storage_url)

    @other.task(name="triple")
    async def triple(number: int) -> int:
        return 3 * number

    with SyncApp(inner) as sync:
        assert sync.app is inner
        bound = sync.bind(double)
        assert bound.enqueue(2).outcome is EnqueueOutcome.QUEUED
        assert sync.enqueue("double", 3).queue == "default"
        assert sync.queue("default").stats().queued == 2
        with pytest.raises(UsageError, match="is no task of <App"):
            sync.bind(triple)
    with pytest.raises(UsageError, match=r"takes no others \(tenant\)"):
        SyncApp(inner, tenant="other")  # type: ignore[call-overload]


def test_a_blueprint_is_included(app: SyncApp[None]) -> None:
    mail = Blueprint[None](prefix="mail.", queue="emails")

    @mail.task(name="send")
    async def send(to: str) -> str:
        return to

    app.include(mail, priority=7)
    job = app.bind(send).enqueue("ada")
    assert (job.queue, job.status().priority) == ("emails", 7)
    assert app.enqueue("mail.send", "ada").queue == "emails"


# What is called before


def test_what_is_called_before_an_enqueue_sees_every_job(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    @app.before_enqueue
    async def add_trace(draft: JobDraft) -> None:
        await asyncio.sleep(0)
        draft.headers["trace"] = draft.task

    @app.before_enqueue
    def add_more(draft: JobDraft) -> None:
        draft.headers["more"] = draft.headers["trace"].upper()

    jobs = [add.enqueue(1, 1), app.submit(add.job(2, 2)), *app.enqueue_many([add.job(3, 3)])]
    stored = [job.status().options for job in jobs]
    assert stored == [{"headers": {"trace": "add", "more": "ADD"}}] * 3


def test_one_that_waits_for_an_event_loop_is_named(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    @app.before_enqueue
    async def ask_somebody(_draft: JobDraft) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(UsageError, match=r"ask_somebody.*waits for an event loop"):
        add.enqueue(1, 1)
    assert app.queues() == []


def test_what_one_raises_comes_out(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    @app.before_enqueue
    async def refuse(draft: JobDraft) -> None:
        raise RuntimeError(f"no {draft.task} today")

    with pytest.raises(RuntimeError, match="no add today"):
        add.enqueue(1, 1)
    with pytest.raises(RuntimeError, match="no add today"):
        app.enqueue_many([add.job(1, 1)])


# Threads


def test_threads_share_an_app(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    def enqueue(number: int) -> list[str]:
        ids = [add.enqueue(number, n).id for n in range(50)]
        return ids + [job.id for job in app.enqueue_many(add.job(n, n) for n in range(600))]

    ids = [job_id for ids in at_a_time(8, enqueue) for job_id in ids]
    assert len(set(ids)) == 8 * 650
    assert queued(app) == set(ids)


# Bad input


def no_job(app: SyncApp[None]) -> None:
    app.enqueue_many([5])  # type: ignore[arg-type]


def nothing_to_iterate(app: SyncApp[None]) -> None:
    app.enqueue_many(5)  # type: ignore[arg-type]


def wrong_arguments(app: SyncApp[None]) -> None:
    @app.task(name="add")
    def add(left: int) -> int:
        return left

    add.enqueue()  # type: ignore[call-arg]


def option_as_argument(app: SyncApp[None]) -> None:
    @app.task(name="add")
    def add(left: int) -> int:
        return left

    add.enqueue(1, delay=5)  # type: ignore[call-arg]


def bad_option(app: SyncApp[None]) -> None:
    app.task_ref("a", queue="b").options(priority=12)


def bad_id(app: SyncApp[None]) -> None:
    app.job("")


def made_of_itself(app: SyncApp[None]) -> None:
    SyncApp(app)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("mistake", "error", "words"),
    [
        (no_job, UsageError, "5 is no job"),
        (nothing_to_iterate, UsageError, "can't be iterated"),
        (wrong_arguments, InvalidArguments, "left"),
        (option_as_argument, InvalidArguments, r"options go to \.options\(delay=\.\.\.\)"),
        (bad_option, InvalidOption, "priority=12"),
        (bad_id, InvalidOption, "job id"),
        (made_of_itself, UsageError, "is a sync app already"),
    ],
)
def test_a_mistake_is_told_before_anything_is_sent(
    mistake: Callable[[SyncApp[None]], None], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        mistake(SyncApp(unreachable_app()))


def test_what_others_call_it_is_told_without_await(app: SyncApp[None]) -> None:
    task = app.task(name="t")(len)
    with pytest.raises(AttributeError, match=r"`task\.enqueue\(\.\.\.\)`"):
        task.delay(1)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"`handle\.status\(\)\.state`"):
        app.job("x").state  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"`app\.enqueue\(name, \.\.\.\)`"):
        app.send_task("x")  # type: ignore[attr-defined]


def test_it_takes_the_options_of_an_app() -> None:
    taken = set(signature(App.__init__).parameters) - {"self", "url", "lifespan"}
    assert set(AppOptions.__annotations__) == taken
    app = SyncApp("memory://options", tenant=f"t-{secrets.token_hex(2)}", validate=True)
    assert app.app.tenant in repr(app)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        SyncApp("memory://options", colour="red")  # type: ignore[call-overload]
