"""One handler alone, as a worker would call it."""

from __future__ import annotations

import anyio
import pytest

from headrace import (
    FailPermanently,
    Job,
    JobFailed,
    ResultMismatch,
    RetryLater,
    UnknownTask,
    current_job,
)
from headrace.testing import Kit
from tests.apps import shop_app
from tests.apps.shop_app import Order, app, bill, check, hang, hold, leak, lie, send, ship


async def test_a_handler_returns_its_result(kit: Kit) -> None:
    assert await kit.perform(bill.job(3)) == "bill 3"
    assert shop_app.order == ["bill"], "middleware is called"
    kit.assert_not_enqueued(bill)


async def test_what_a_handler_enqueues_is_stored(kit: Kit) -> None:
    assert await kit.perform(ship.job(Order(4, ("a",)))) == 1
    kit.assert_enqueued(bill.job(4))
    [pool] = shop_app.pools
    assert not pool.is_open


async def test_a_handler_has_its_context(kit: Kit) -> None:
    seen = []

    async def look(_context: object, call_next: object) -> object:
        job = current_job()
        seen.append((job.job_id, job.start, job.failures, job.headers, job.enqueued_at))
        return await call_next()  # type: ignore[operator]  # as middleware is called

    app.middlewares.append(look)
    try:
        call = bill.options(id="one", headers={"user": "ada"})
        await kit.perform(call.job(1), start=3)
    finally:
        app.middlewares.remove(look)
    assert seen == [("one", 3, 2, {"user": "ada"}, kit.now)]


@pytest.mark.parametrize(
    ("job", "error", "text"),
    [
        (send.job("x", tries=1), ConnectionError, "no answer for x"),
        (check.job("later"), RetryLater, "run again later"),
        (check.job("refused"), FailPermanently, "refused"),
        (hang.job(), TimeoutError, "longer than its 0.05 s"),
        (ship.job("no order"), JobFailed, "ValidationError: Expected `object`"),  # type: ignore[arg-type]  # the point
        (leak.job(), JobFailed, "NotSerializable: result is"),
        (lie.job(), ResultMismatch, "not of the type that it declares"),
        (Job(id="x", queue="q", task="nobody", payload=b"{}"), UnknownTask, "'nobody'"),
    ],
    ids=["error", "later", "permanent", "timeout", "arguments", "result", "type", "unknown"],
)
async def test_what_goes_wrong_is_raised(
    kit: Kit, job: Job, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        await kit.perform(job)
    assert type(caught.value) is error


async def test_a_handler_that_is_not_waited_for_any_more_ends(kit: Kit) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(kit.perform, hold.job("a"))
        await shop_app.doors[-1].reached.wait()
        group.cancel_scope.cancel()
    shop_app.doors[-1].opened.set()
    assert shop_app.order == ["hold", "begin a"]
