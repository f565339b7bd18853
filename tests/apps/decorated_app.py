"""Handlers under plain decorators, and handlers that set context variables."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import structlog

from headrace import App, Context, current_job
from tests.support.adopt import adopt_task

app = App(tenant="decorated-tests")

F = TypeVar("F", bound=Callable[..., Any])

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")


def traced(function: F) -> F:
    """Do what most decorators do: nobody thinks of coroutines."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def bridged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a coroutine function a plain one, in a loop of its own."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(function(*args, **kwargs))

    return wrapper


@app.task(name="double", queue="work")
@traced
async def double(number: int) -> int:
    await asyncio.sleep(0)
    assert current_job().task == "double"
    return 2 * number


@app.task(name="double_in_process", queue="work", executor="process")
@traced
async def double_in_process(context: Context, number: int) -> int:
    await asyncio.sleep(0)
    assert current_job() is context
    return 2 * number


@app.task(name="double_bridged", queue="work")
@bridged
async def double_bridged(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


@app.task(name="fail", queue="work", max_attempts=1)
@traced
async def fail() -> int:
    await asyncio.sleep(0)
    raise SystemExit(7)


@app.task(name="fail_in_process", queue="work", max_attempts=1, executor="process")
@traced
async def fail_in_process() -> int:
    await asyncio.sleep(0)
    raise SystemExit(7)


@app.task(name="hang", queue="work", max_attempts=1, timeout=0.1)
@traced
async def hang() -> None:
    await asyncio.Event().wait()


def _bind(customer: str) -> dict[str, Any]:
    before = structlog.contextvars.get_contextvars() | {"tenant": tenant.get("")}
    structlog.contextvars.bind_contextvars(customer=customer)
    tenant.set(customer)
    return before


@app.task(name="bind_in_loop", queue="work")
async def bind_in_loop(customer: str) -> dict[str, Any]:
    return _bind(customer)


@app.task(name="bind_in_thread", queue="work")
def bind_in_thread(customer: str) -> dict[str, Any]:
    return _bind(customer)


@app.task(name="bind_in_process", queue="work", executor="process")
def bind_in_process(customer: str) -> dict[str, Any]:
    return _bind(customer)


def adopt(other: App[Any]) -> None:
    """Give another app these tasks."""
    for task in app.tasks.values():
        adopt_task(other, task)
