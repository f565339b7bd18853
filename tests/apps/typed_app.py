"""Tasks of each kind whose argument and result are models, also where processes import them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from pydantic import BaseModel, Field

from headrace import App, Task

PRICE = 3


class Order(BaseModel):
    item: str
    count: int = Field(gt=0)
    at: datetime


class Receipt(BaseModel):
    order: Order
    total: int


async def sell(order: Order) -> Receipt:
    return Receipt(order=order, total=PRICE * order.count)


def sell_in_thread(order: Order) -> Receipt:
    return Receipt(order=order, total=PRICE * order.count)


def sell_in_process(order: Order) -> Receipt:
    return Receipt(order=order, total=PRICE * order.count)


def declare(app: App[None]) -> list[Task[[Order], Receipt]]:
    return [
        app.task(sell),
        app.task(sell_in_thread),
        app.task(executor="process")(sell_in_process),
    ]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[App[None]]:
    async with App(url, tenant=f"test-{secrets.token_hex(6)}") as app:
        yield app
