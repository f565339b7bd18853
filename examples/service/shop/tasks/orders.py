"""Orders: booking them, and what they would cost."""

import logging
from decimal import Decimal

from anyio import to_thread
from headrace import Context

from shop.app import Resources, app
from shop.models import Message, Order, Quote, Receipt
from shop.tasks import mail

log = logging.getLogger(__name__)

FREE_DELIVERY_FROM = Decimal(50)
DELIVERY = Decimal("4.90")


@app.task(queue="orders", timeout=30, max_attempts=5)
async def place(context: Context[Resources], order: Order) -> Receipt:
    """Book an order and have its receipt mailed.

    A job can run again after a crash: booking twice changes nothing, and the mail has an id.
    """
    await to_thread.run_sync(context.state.ledger.book, order)
    log.info("booked order %d", order.number)
    receipt = Message(to=order.email, subject="Your order", text=f"It costs {order.total}.")
    await mail.send.options(id=f"receipt-{order.number}").enqueue(receipt)
    return Receipt(order=order.number, total=order.total)


@app.task(queue="quotes", timeout=5, max_attempts=2)
async def quote(order: Order) -> Quote:
    """Say what an order would cost."""
    is_free = order.total >= FREE_DELIVERY_FROM
    return Quote(goods=order.total, delivery=Decimal() if is_free else DELIVERY)
