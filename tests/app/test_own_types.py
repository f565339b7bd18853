"""An app's own types: `App(encoders=..., decoders=...)`, wherever its tasks run."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import App, InvalidOption, NotSerializable, UsageError, Worker
from headrace.testing import Kit, running
from tests.apps import money_app
from tests.apps.money_app import Money
from tests.support.until import patience


async def test_they_pass_through_a_worker_and_its_processes(storage_url: str) -> None:
    async with money_app.opened(storage_url) as app:
        tasks = money_app.declare(app)
        async with running(Worker(app, process_slots=1)):
            for task in tasks:
                job = await task.enqueue(Money(3))
                assert await job.result(timeout=patience(20)) == [Money(3), Money(6)]
                assert (await job.status()).args == {"money": 3}


async def test_a_kit_has_them_too() -> None:
    async with money_app.opened("memory://") as app, Kit(app) as kit:
        tasks = money_app.declare(app)
        jobs = [await task.enqueue(Money(3)) for task in tasks]
        kit.assert_enqueued(tasks[0], {"money": Money(3)})
        await kit.run_until_idle()
        for job in jobs:
            assert await job.result() == [Money(3), Money(6)]


async def test_a_handle_that_knows_the_task_decodes_them(app: App[None]) -> None:
    async with money_app.opened(app.url) as own:
        [task, *_] = money_app.declare(own)
        async with running(Worker(own, process_slots=1)):
            job = await task.enqueue(Money(1))
            await job.result(timeout=patience(20))
        assert await own.job(job.id, task=task.name).result() == [Money(1), Money(2)]
        assert await own.job(job.id).result() == [1, 2], "plain data where no task is said"


async def test_what_no_task_declares_is_no_place_for_them() -> None:
    async with money_app.opened("memory://") as app:
        with pytest.raises(
            NotSerializable, match=r"args\.money is a Money.*annotate the parameter"
        ):
            await app.enqueue("elsewhere", queue="other", money=Money(1))


async def test_processes_need_functions_that_they_can_import() -> None:
    async with money_app.opened("memory://", encode=lambda money: money.cents) as app:
        [task, *_] = money_app.declare(app)
        assert task.job(Money(1)).payload == b'{"money":1}', "the others may be any"
        with pytest.raises(UsageError, match=r"can't be passed to another process.*not a lambda"):
            Worker(app)


@pytest.mark.parametrize(
    "options",
    [
        {"encoders": {Money: money_app.to_cents}},
        {"decoders": {Money: Money}},
        {"encoders": {int: str}, "decoders": {int: int}},
    ],
)
def test_conversions_that_can_not_be_used_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        App("memory://", **options)


def test_another_app_knows_nothing_of_them() -> None:
    with pytest.raises(UsageError, match=r"Money has no JSON form.*App\(encoders"):
        App("memory://").task(money_app.double)
