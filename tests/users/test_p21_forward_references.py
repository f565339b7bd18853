"""P21: an annotation may name a class that is defined later; one that is nowhere is told."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from headrace import App, UsageError, Worker
from headrace.testing import Kit, running
from tests.apps import later_app, typed_app, typing_only_app
from tests.apps.later_app import Invoice, Item, Line, Order, Parcel
from tests.support.until import patience

NOWHERE = r"typing_only_app\.ship name 'Order', which can't be found: define or import it at module"


async def test_p21_a_class_that_is_defined_later_is_read_at_first_use(storage_url: str) -> None:
    order = Order([Item("tea")])
    async with typed_app.opened(storage_url) as app:
        tasks = [
            app.task(later_app.ship.function),
            app.task(executor="process")(later_app.ship_in_process.function),
        ]
        async with running(Worker(app, process_slots=1)):
            for task in tasks:
                job = await task.enqueue(order, note="now")
                assert await job.result(timeout=patience(20)) == [Parcel(Item("tea"), "now")]


async def test_p21_so_is_one_in_a_model() -> None:
    invoice = Invoice(lines=[Line(text="tea")])
    async with Kit(later_app.app) as kit:
        job = await later_app.bill.enqueue(invoice)
        await kit.run_until_idle()
        assert await job.result() == invoice


def test_p21_what_only_type_checkers_import_is_told_before_any_io() -> None:
    order = Order([])
    for call in (
        lambda: typing_only_app.ship.job(order),
        lambda: typing_only_app.ship.options(delay=1).job(order),
        lambda: Worker(typing_only_app.app),
    ):
        with pytest.raises(UsageError, match=NOWHERE):
            call()


def test_p21_a_local_class_is_told_where_the_task_is_declared() -> None:
    class Local:
        pass

    async def handler(value: Local) -> None: ...

    with pytest.raises(UsageError, match=r"name 'Local', which can't be found.*not in a function"):
        App("memory://").task(handler)


def test_p21_a_later_class_that_can_not_be_stored_is_refused_at_first_use() -> None:
    def handler(value: object) -> None: ...

    handler.__module__, handler.__qualname__ = __name__, "handler"
    handler.__annotations__["value"] = "Later"
    task = App("memory://").task(handler)
    globals()["Later"] = type("Later", (), {})
    try:
        for _ in range(2):
            with pytest.raises(UsageError, match="Later has no JSON form"):
                task.job(1)
    finally:
        del globals()["Later"]


def test_p21_looking_at_a_task_that_was_not_read_yet_breaks_nothing() -> None:
    signature: Any = typing_only_app.ship.signature
    assert "Signature" in repr(signature)
    assert not hasattr(signature, "__wrapped__")
    assert type(copy.copy(signature)) is type(signature)
