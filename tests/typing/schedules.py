"""Schedules as users declare and store them, for type checkers only; see ``calls.py``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from headrace import App, At, Blueprint, Context, Cron, Every, JobHandle, Retry, Task


class State:
    """What a lifespan yields."""

    pool: int = 0


@asynccontextmanager
async def lifespan() -> AsyncGenerator[State, None]:
    """Yield the state of a worker."""
    yield State()


app = App(lifespan=lifespan, name="reports")
mail: Blueprint[State] = Blueprint(prefix="mail.")


@app.cron("0 9 * * 1", tz="America/New_York", args={"region": "eu"}, options={"priority": 8})
@app.cron("0 9 * * 2", dst="skip", catch_up="latest", jitter=timedelta(minutes=5), overlap="skip")
@app.every(30, id="often", start=datetime.now(UTC), end=None, catch_up=3)
@app.task(queue="reports")
async def report(region: str, *, depth: int = 1) -> int:
    """Is seen as a task without schedules is."""
    return len(region) + depth


@app.every(timedelta(hours=1), options={"expires": 60, "retry": Retry(min=1), "headers": {}})
async def tick() -> str:
    """A coroutine that is made a task by its schedule."""
    return "tick"


@app.every(0.5)
def tock(number: int = 1) -> int:
    """A plain function that is made a task by its schedule."""
    return number


@app.cron("@hourly")
async def look(context: Context[State], number: int = 1) -> int:
    """Takes a context, which is no part of the call."""
    assert_type(context.state, State)
    return context.state.pool + number


@app.cron("@hourly")
@app.task
async def anything(value: object = None, more: int = 0) -> list[str]:
    """Its first parameter takes anything."""
    return [repr(value)] * more


@mail.every(60)
@mail.task
def send(to: str = "") -> str:
    """Of a blueprint."""
    return to


# fmt: off (an ignore is on the line of its error)
@app.cron("@daily", dst="shfit")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
@app.every("often")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
@app.every(5, catch_up="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
@app.every(5, options={"delay": 5})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
@app.task
def wrong() -> None:
    """Schedules that can't be."""


# fmt: on


app.schedule("eu", report.options(priority=8).job(region="eu"), Cron("0 9 * * 1"), jitter=60)
app.schedule("us", report.job("us"), At(datetime.now(UTC)))
app.schedule("us", report.job(5), Every(5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.schedule("us", report, Every(5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.schedule("us", report.job("us"), "0 9 * * 1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def uses() -> None:
    """Call them."""
    assert_type(await report.enqueue("eu", depth=2), JobHandle[int])
    assert_type(await report("eu"), int)
    report.job(region=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(tick, Task[[], str, Coroutine[Any, Any, str]])
    assert_type(await tick.enqueue(), JobHandle[str])
    assert_type(tock(2), int)
    assert_type(await tock.enqueue(number=3), JobHandle[int])
    assert_type(await look.enqueue(1), JobHandle[int])
    await anything.enqueue(object(), 2)
    assert_type(send("a@b.c"), str)
