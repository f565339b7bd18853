"""F25: a task that is known by its name alone takes options, and arguments of any name."""

from __future__ import annotations

import pytest

from headrace import App, Context, InvalidArguments, InvalidOption, UnknownTask, WaitTimeout, Worker
from headrace.testing import running


@pytest.fixture
def producer(app: App[None]) -> App[None]:
    """Return an app at the same place that has no tasks."""
    return App(app.url, tenant=app.tenant)


async def test_f25_a_foreign_task_takes_options(app: App[None], producer: App[None]) -> None:
    """F25: all that a task of this app takes."""

    @app.task(name="mail.send", queue="mail")
    async def send(context: Context, to: str) -> str:
        return f"{to} {context.headers['trace']} {context.job_id}"

    ref = producer.task_ref("mail.send", queue="mail")
    async with producer:
        call = ref.options(id="w:1", headers={"trace": "t"}, priority=9, delay=0.001)
        handle = await call.enqueue(to="ada")
        assert (handle.id, handle.queue) == ("w:1", "mail")
        assert (await handle.status()).priority == 9
        async with running(Worker(app)):
            assert await handle.result() == "ada t w:1"
            again = ref.options(headers={"trace": "u"}, id="w:2", wait_timeout=60)
            assert await again.enqueue_and_wait(to="bob") == "bob u w:2"


async def test_f25_without_options_it_is_enqueued_as_a_task_is(
    app: App[None], producer: App[None]
) -> None:
    """F25: `enqueue`, `enqueue_and_wait` and `job` are those of a task."""

    @app.task(name="add")
    async def add(left: int, right: int) -> int:
        return left + right

    ref = producer.task_ref("add", queue="default")
    async with producer, running(Worker(app)):
        assert await (await ref.enqueue(left=1, right=2)).result() == 3
        assert await ref.enqueue_and_wait(left=2, right=2) == 4
        jobs = await producer.enqueue_many(ref.job(left=n, right=n) for n in range(2))
        assert [await job.result() for job in jobs] == [0, 2]


async def test_f25_arguments_may_have_any_name(app: App[None], producer: App[None]) -> None:
    """F25: also those of parameters of `App.enqueue`."""

    @app.task(name="move")
    async def move(name: str, queue: str, self: int) -> str:
        return f"{name} to {queue} {self}"

    arguments = {"name": "a", "queue": "b", "self": 1}
    async with producer, running(Worker(app)):
        for one in (app, producer):
            ref = one.task_ref("move", queue="default")
            assert await ref.enqueue_and_wait(**arguments) == "a to b 1"
            assert await ref.options(priority=1).enqueue_and_wait(**arguments) == "a to b 1"


async def test_f25_for_a_task_of_this_app_the_reference_is_that_task(app: App[None]) -> None:
    """F25: with its queue, its options and its signature, also if it is declared later."""
    ref = app.task_ref("later")
    with pytest.raises(UnknownTask, match=r"'later' is not .*known: none.*say its queue="):
        ref.job(1)

    @app.task(name="later", queue="own", priority=7)
    async def later(value: int) -> int:
        return value

    job = ref.job(1)
    assert (job.queue, job.priority, job.lane) == ("own", 7, "default")
    with pytest.raises(InvalidArguments, match="value"):
        ref.job()
    assert app.task_ref("later", queue="else").job(1).queue == "else"
    assert app.task_ref("later", queue="else").options(queue="third").job(1).queue == "third"


def test_f25_an_unknown_name_is_told_the_nearest_one_and_not_a_thousand() -> None:
    """F25: what is known is listed as far as it fits a line or a few."""
    app = App("memory://f25")
    for number in range(1_000):

        @app.task(name=f"shop.mail.send{number}")
        async def unused() -> None: ...

    with pytest.raises(UnknownTask, match=r"did you mean 'shop\.mail\.send7'\?") as caught:
        app.task_ref("shop.mial.send7").job()
    assert len(str(caught.value)) < 700


def test_f25_what_is_wrong_is_told_before_any_io() -> None:
    """F25: names, options and arguments by position."""
    app = App("redis://127.0.0.1:1")
    with pytest.raises(InvalidOption, match="task name"):
        app.task_ref("a\nb")
    with pytest.raises(InvalidOption, match="queue"):
        app.task_ref("a", queue="a:b")
    ref = app.task_ref("elsewhere", queue="q")
    with pytest.raises(InvalidOption, match="priority=10"):
        ref.options(priority=10)
    with pytest.raises(InvalidArguments, match="by name only, got 1 positional"):
        ref.job(1)
    assert app.task_ref("elsewhere").options(queue="said").job().queue == "said"
    assert repr(ref) == "<TaskRef 'elsewhere' on queue 'q'>"


async def test_f25_the_lane_is_that_which_workers_have_told(
    app: App[None], producer: App[None]
) -> None:
    """F25: nobody here knows whether it runs in a process."""
    job = producer.task_ref("elsewhere", queue="q").options(delay=5).job()
    assert job.lane == ""


async def test_f25_a_wait_for_what_nobody_serves_says_so(producer: App[None]) -> None:
    """F25, F41: the most likely mistake is the name of the queue."""
    async with producer:
        call = producer.task_ref("elsewhere", queue="typo").options(wait_timeout=0.05)
        with pytest.raises(WaitTimeout, match="no worker serves queue 'typo'"):
            await call.enqueue_and_wait()
