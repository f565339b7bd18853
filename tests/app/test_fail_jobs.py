"""Fail jobs: what a handler gets that is named for the failures of others."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from headrace import (
    App,
    Blueprint,
    Context,
    FailPermanently,
    FailReason,
    Failure,
    InvalidOption,
    Job,
    JobFailed,
    JobSummary,
    Task,
    Worker,
)
from headrace.testing import Kit, running
from tests.apps import process_app
from tests.apps.marked import Marked
from tests.support.until import patience, until

Told = tuple[str, Any, Failure]


class Ledger:
    """What handlers of fail jobs were told, as it comes."""

    def __init__(self) -> None:
        self._told: asyncio.Queue[Told] = asyncio.Queue()

    async def mourn(self, job_id: str, arguments: dict[str, Any], failure: Failure) -> None:
        await self._told.put((job_id, arguments, failure))

    async def next(self) -> Told:
        with anyio.fail_after(patience(15)):
            return await self._told.get()

    @property
    def left(self) -> int:
        return self._told.qsize()


async def jobs_in(app: App[None], state: str, task: str) -> list[JobSummary]:
    """Return a task's jobs in a state."""
    return [row async for row in app.queue("default").jobs(state, task=task)]


async def charge(amount: int, *, currency: str = "EUR") -> None:
    raise FailPermanently(f"no {amount} {currency}")


@pytest.fixture
def told() -> Ledger:
    return Ledger()


@pytest.fixture
async def app(storage_url: str, told: Ledger) -> AsyncIterator[App[None]]:
    async with App(storage_url, tenant=f"test-{secrets.token_hex(6)}") as app:

        @app.task(name="mourn")
        async def mourn(job_id: str, arguments: dict[str, Any], failure: Failure) -> None:
            await told.mourn(job_id, arguments, failure)

        app.task(name="charge", on_failed=mourn)(charge)
        app.task(name="quiet")(charge)
        yield app


async def test_the_task_that_is_named_gets_the_id_the_arguments_and_the_error(
    app: App[None], told: Ledger
) -> None:
    charged = app.tasks["charge"]
    async with running(Worker(app)):
        job = await charged.enqueue(7, currency="CHF")
        with pytest.raises(JobFailed):
            await job.result(timeout=patience(15))
        job_id, arguments, failure = await told.next()
    assert (job_id, arguments) == (job.id, {"amount": 7, "currency": "CHF"})
    assert failure.reason == FailReason.PERMANENT
    assert (failure.task, failure.failures, failure.stalls, failure.starts) == ("charge", 1, 0, 1)
    assert (failure.type, failure.message) == ("headrace.FailPermanently", "no 7 CHF")
    assert "FailPermanently: no 7 CHF" in failure.traceback
    assert (await job.status()).on_failed == "mourn"


async def test_a_call_may_name_another_and_a_queue_one_for_all(
    app: App[None], told: Ledger
) -> None:
    @app.task(name="other")
    async def other(job_id: str, arguments: dict[str, Any], failure: Failure) -> None:
        await told.mourn(f"other {job_id}", arguments, failure)

    await app.queue("default").configure(on_failed="other")
    assert (await app.queue("default").stats()).on_failed == "other"
    async with running(Worker(app)):
        await app.tasks["quiet"].options(id="a").enqueue(1)
        assert (await told.next())[0] == "other a"
        await app.tasks["quiet"].options(id="b", on_failed="mourn").enqueue(1)
        assert (await told.next())[0] == "b"
        await app.tasks["charge"].options(id="c", on_failed=other).enqueue(1)
        assert (await told.next())[0] == "other c"
        await app.queue("default").configure(on_failed="")
        with pytest.raises(JobFailed):
            await app.tasks["quiet"].enqueue_and_wait(1)
    assert told.left == 0
    assert (await app.queue("default").stats()).on_failed is None


async def test_a_job_that_nobody_could_read_is_told_too(app: App[None], told: Ledger) -> None:
    misfit = Job("x", "default", "charge", b'{"amount":[1]}', on_failed="mourn")
    broken = Job("y", "default", "charge", b"\xff{", on_failed="mourn")
    async with running(Worker(app)):
        await app.enqueue_many([misfit, broken])
        found = {
            job_id: (args, failure) for job_id, args, failure in [await told.next() for _ in "xy"]
        }
    assert found["x"][0] == {"amount": [1]}
    assert found["y"][0] is None
    assert {failure.reason for _, failure in found.values()} == {FailReason.UNDECODABLE}


async def test_a_process_slot_is_told_the_same(app: App[None]) -> None:
    mourn = app.task(executor="process", name="mourn-apart", keep=60)(process_app.mourn.function)
    async with running(Worker(app, process_slots=1)):
        job = await app.tasks["charge"].options(on_failed=mourn).enqueue(7)
        with pytest.raises(JobFailed):
            await job.result(timeout=patience(15))
        rows = await until(lambda: jobs_in(app, "completed", mourn.name), within=30)
        result = await app.job(rows[0].id).result()
    assert result[1:] == [
        *("mourn-apart", job.id, {"amount": 7}),
        *("permanent", "no 7 EUR"),
    ]


class MarkedApp(App[None]):
    codec = Marked()


async def test_a_kit_runs_it_and_the_arguments_are_the_codecs() -> None:
    app = MarkedApp("memory://")
    seen: list[Any] = []

    @app.task
    def mourn(context: Context, job_id: str, arguments: Any, failure: Failure) -> None:
        seen.append((job_id, arguments, failure.message))

    charged = app.task(name="charge", on_failed=mourn)(charge)
    async with Kit(app) as kit:
        job = await charged.enqueue(5)
        ran = await kit.run_until_idle()
        kit.assert_enqueued(charged, {"amount": 5})
    assert [attempt.outcome for attempt in ran] == ["failed", "completed"]
    assert seen == [(job.id, {"amount": 5}, "no 5 EUR")]


async def test_a_handler_that_does_not_take_them_is_a_dead_letter_of_its_own(
    app: App[None],
) -> None:
    @app.task(name="narrow")
    async def narrow(job_id: str) -> None: ...

    async with running(Worker(app)):
        await app.tasks["quiet"].options(on_failed="narrow").enqueue(1)
        rows = await until(lambda: jobs_in(app, "failed", "narrow"), within=15)
    assert rows[0].reason == FailReason.UNDECODABLE
    assert "it has to take that id, the arguments and a Failure" in (rows[0].message or "")


# Mistakes, before anything is sent


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "on_failed=7 is no task: pass a task or a task's name"),
        (charge, "is no task: pass a task or a task's name"),
        ("", "on_failed '' is not valid"),
        ("a\nb", "is not valid"),
        ("é" * 129, "is not valid"),
        ("charge", "on_failed='charge' is the task itself: name another"),
    ],
    ids=["number", "function", "empty", "control", "long", "itself"],
)
def test_what_is_no_other_task_is_refused(value: Any, words: str) -> None:
    app = App("memory://")
    charged: Task[..., Any] = app.task(name="charge")(charge)
    with pytest.raises(InvalidOption) as refused:
        charged.options(on_failed=value)
    assert words in str(refused.value)
    with pytest.raises(InvalidOption):
        App("memory://").task(name="charge", on_failed=value)(charge)


async def test_a_job_that_anybody_made_is_checked_as_well(app: App[None]) -> None:
    for on_failed in ("charge", "a\tb"):
        with pytest.raises(InvalidOption):
            await app.enqueue_many([Job("x", "default", "charge", b"{}", on_failed=on_failed)])
    with pytest.raises(InvalidOption, match="on_failed"):
        await app.queue("default").configure(on_failed="a\tb")


def narrow(job_id: str) -> None: ...


def by_name(*, job_id: str, arguments: Any, failure: Failure) -> None: ...


def wide(job_id: str, arguments: Any, failure: Failure, more: int = 0) -> None: ...


@pytest.mark.parametrize("function", [narrow, by_name], ids=["narrow", "by-name"])
def test_a_worker_does_not_start_where_the_named_task_takes_something_else(
    function: Callable[..., None],
) -> None:
    app = App("memory://")
    app.task(name="mourn")(function)
    app.task(name="charge", on_failed="mourn")(charge)
    with pytest.raises(InvalidOption, match="on_failed='mourn' of the task 'charge' takes"):
        app.load()


def test_one_that_takes_more_or_is_unknown_here_is_right() -> None:
    app = App("memory://")
    app.task(name="mourn")(wide)
    app.task(name="charge", on_failed="mourn")(charge)
    app.task(name="other", on_failed="elsewhere.mourn")(charge)
    app.load()


def test_a_task_can_not_name_itself_by_another_of_its_names() -> None:
    app = App("memory://")
    app.task(name="mourn", aliases=["old"], on_failed="old")(wide)
    with pytest.raises(InvalidOption, match="is the task itself"):
        app.load()


def test_a_blueprint_s_task_is_named_as_it_is_called_in_the_end() -> None:
    blueprint: Blueprint[Any] = Blueprint(prefix="pay.")
    mourn = blueprint.task(wide)
    charged = blueprint.task(on_failed=mourn)(charge)
    app = App("memory://")
    app.include(blueprint, prefix="shop.")
    assert charged.settings.on_failed == mourn.name == "shop.pay.wide"
    assert charged.job(1).on_failed == "shop.pay.wide"
