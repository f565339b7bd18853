"""Orders: accepted at once, and carried out by a worker."""

from typing import Annotated

from fastapi import APIRouter, Body, HTTPException, Response
from headrace import JobFailed, WaitTimeout
from pydantic import BaseModel

from shop.app import app
from shop.models import Order, Quote
from shop.tasks.orders import place, quote
from shop.web.jobs import Accepted, accepted

router = APIRouter(tags=["orders"])

QUOTE_LIMIT_S = 3


class Imported(BaseModel):
    """What became of a list of orders."""

    new: int
    known: int


@router.post("/orders", status_code=202)
async def place_order(order: Order, response: Response) -> Accepted:
    """Take an order. Sent again, it is the same job: its number is the job's id."""
    job = await place.options(id=f"order-{order.number}").enqueue(order)
    return accepted(job, response)


@router.post("/orders/import", status_code=202)
async def import_orders(orders: Annotated[list[Order], Body(max_length=10_000)]) -> Imported:
    """Take many orders at once, in chunks of 500 that are stored whole or not at all."""
    jobs = await app.enqueue_many(
        place.options(id=f"order-{order.number}").job(order) for order in orders
    )
    known = sum(job.outcome != "queued" for job in jobs)
    return Imported(new=len(jobs) - known, known=known)


@router.post("/quotes")
async def ask_for_quote(order: Order) -> Quote:
    """Ask a worker and wait for its answer: a request and its response.

    A quote that comes too late is of no use to anybody, so its job expires with the wait.
    """
    asked = quote.options(wait_timeout=QUOTE_LIMIT_S, expires=QUOTE_LIMIT_S, priority=8)
    try:
        return await asked.enqueue_and_wait(order)
    except WaitTimeout as error:
        raise HTTPException(504, "no quote in time: try again later") from error
    except JobFailed as error:
        is_late = error.reason == "expired"
        raise HTTPException(504 if is_late else 502, f"no quote: {error.reason}") from error
