"""The handlers, without the web service."""

from pathlib import Path

import pytest
from headrace.testing import Kit

from shop.app import Resources, app
from shop.ledger import Ledger
from shop.mailer import Mailer
from shop.models import Message, Order
from shop.tasks.mail import send
from shop.tasks.orders import place, quote
from shop.tasks.reports import bought_together
from tests.orders import order


class BusyMailer(Mailer):
    """Does what mail servers do: it refuses a few mails before it takes one."""

    def __init__(self, folder: Path, *, refusals: int) -> None:
        super().__init__(folder)
        self._left = refusals

    async def send(self, message: Message, *, key: str) -> None:
        if self._left:
            self._left -= 1
            raise ConnectionError("421 try again later")
        await super().send(message, key=key)


async def test_an_order_is_booked_and_its_receipt_mailed(data: Path) -> None:
    bought = Order.model_validate(order(7, "tea", "cake"))
    async with Kit(app) as kit:
        await place.enqueue(bought)
        await kit.run_until_idle(raise_errors=True)
        kit.assert_enqueued(send, id="receipt-7")
    assert list(Ledger(data).orders()) == [bought]
    assert "It costs 20.00." in (data / "outbox" / "receipt-7.eml").read_text()


async def test_an_order_whose_job_runs_twice_is_booked_once(data: Path) -> None:
    bought = Order.model_validate(order(7))
    async with Kit(app) as kit:
        await kit.perform(place.job(bought))
        await kit.perform(place.job(bought))
        kit.assert_enqueued(send, count=1)
    assert list(Ledger(data).orders()) == [bought]


async def test_a_mail_is_sent_again_until_the_server_takes_it(data: Path) -> None:
    mailer = BusyMailer(data / "outbox", refusals=3)
    message = Message(to="ada@example.org", subject="Hello", text="How are you?")
    async with Kit(app, state=Resources(Ledger(data), mailer)) as kit:
        job = await send.options(id="hello").enqueue(message)
        await kit.run_until_idle(advance=True)  # minutes of waiting take no time
        assert (await job.status()).failures == 3
    assert (data / "outbox" / "hello.eml").exists()


@pytest.mark.parametrize(("products", "delivery"), [(1, "4.90"), (5, "0")])
async def test_a_large_order_is_delivered_free(products: int, delivery: str) -> None:
    bought = Order.model_validate(order(1, *(f"product {n}" for n in range(products))))
    async with Kit(app) as kit:
        assert str((await kit.perform(quote.job(bought))).delivery) == delivery


async def test_a_report_counts_pairs_and_says_how_far_it_is(data: Path) -> None:
    ledger = Ledger(data)
    for number, products in enumerate([("tea", "cake"), ("tea", "cake", "jam"), ("tea",)]):
        ledger.book(Order.model_validate(order(number + 1, *products)))
    async with Kit(app):
        job = await bought_together.enqueue(1)
        steps = [piece["done"] async for piece in job.stream()]
        report = await job.result()
    assert steps == [1, 2, 3]
    assert report.orders == 3
    assert [(pair.products, pair.orders) for pair in report.pairs] == [(("cake", "tea"), 2)]
