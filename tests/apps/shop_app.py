"""A user's program: tasks of a shop, on a server that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from headrace import App, CallNext, Context, FailPermanently, Retry, RetryLater


@dataclass
class Pool:
    """Stands for what handlers share."""

    used: list[str] = field(default_factory=list)
    is_open: bool = True


pools: list[Pool] = []
order: list[str] = []


@asynccontextmanager
async def lifespan() -> AsyncIterator[Pool]:
    pool = Pool()
    pools.append(pool)
    yield pool
    pool.is_open = False


# Port 1: whatever leaves the kit fails at once.
app = App("redis://localhost:1", tenant="shop", lifespan=lifespan, retry_for=0)


@app.middleware
async def trace(context: Context[Pool], call_next: CallNext) -> Any:
    order.append(context.task.rpartition(".")[2])
    return await call_next()


@dataclass
class Order:
    number: int
    items: tuple[str, ...] = ()


@app.task(queue="mail", max_attempts=3, retry=Retry(min=10, max=1000, factor=2))
async def send(to: str, *, template: str = "plain", tries: int = 0) -> str:
    """Fail as often as ``tries`` says."""
    failures = order.count("send") - 1
    if failures < tries:
        raise ConnectionError(f"no answer for {to}")
    return f"{template} to {to}"


@app.task(queue="orders")
async def ship(context: Context[Pool], order: Order) -> int:
    """Enqueue one mail and one invoice."""
    assert context.state.is_open
    context.state.used.append(context.task)
    await send.enqueue("a@b.c", template="shipped")
    await bill.enqueue(order.number)
    return len(order.items)


@app.task(queue="orders")
async def bill(number: int) -> str:
    return f"bill {number}"


@app.task(queue="orders")
async def quote(context: Context[Pool], number: int) -> str:
    """Wait for another job."""
    text = await bill.enqueue_and_wait(number)
    context.state.used.append(text)
    return f"quote for {text}"


@app.task(queue="orders")
async def again(times: int) -> None:
    """Enqueue itself."""
    await again.enqueue(times + 1)


@app.task(queue="ticks", keep=0)
async def tick() -> None:
    """Come again every minute."""
    await tick.options(delay=60).enqueue()


@app.task(queue="orders", max_attempts=2)
async def check(verdict: str) -> None:
    if verdict == "later":
        raise RetryLater(30)
    raise FailPermanently(verdict)


@app.task(queue="orders", max_attempts=1)
async def fetch(context: Context[Pool]) -> str:
    """Come too early the first time."""
    if context.start == 1:
        context.snooze(60, "not yet")
    return "there"


@app.task(queue="orders", timeout=0.05, max_attempts=1)
async def hang() -> None:
    await asyncio.sleep(30)


@app.task(queue="orders", keep=0)
async def forget(number: int) -> int:
    return number


@app.task(queue="orders")
async def lie() -> int:
    """Return another type than it declares."""
    return "no number"  # type: ignore[return-value]  # the point


@app.task(queue="orders")
async def leak() -> Any:
    """Return what can't be stored."""
    return object()


class Door:
    """Where `hold` stands until it is opened; of one event loop."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()


doors = [Door()]


@app.task(queue="slow")
async def hold(name: str) -> str:
    """Run until the door is opened."""
    order.append(f"begin {name}")
    doors[-1].reached.set()
    await doors[-1].opened.wait()
    order.append(f"end {name}")
    return name


def reset() -> None:
    """Forget what earlier tests did."""
    pools.clear()
    order.clear()
    doors.append(Door())
