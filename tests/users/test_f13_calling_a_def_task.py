"""F13: a task that is called is its function, as in every peer."""

from __future__ import annotations

import inspect
import warnings

import pytest

from headrace import App, Context, HeadraceError, OutsideHandler, Worker, current_job
from headrace.testing import running

app = App("memory://f13")


@app.task
def double(number: int) -> int:
    return 2 * number


@app.task(executor="process")
def triple(number: int) -> int:
    return 3 * number


@app.task
async def half(number: int) -> float:
    return number / 2


@app.task
def named(context: Context, prefix: str) -> str:
    return f"{prefix} {context.task}"


@app.task
async def named_later(context: Context, prefix: str) -> str:
    return f"{prefix} {context.task}"


def test_f13_a_def_task_returns_what_its_function_returns_now() -> None:
    """F13: no coroutine that somebody forgets to await."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert double(2) == 4
        assert triple(number=2) == 6


async def test_f13_an_async_def_task_is_awaited() -> None:
    """F13: its function is a coroutine function, and so is its call."""
    called = half(3)
    assert inspect.iscoroutine(called)
    assert await called == 1.5


async def test_f13_a_context_outside_a_handler_is_an_error_that_says_what_to_do() -> None:
    """F13: it is a HeadraceError, still a LookupError, and points to the kit's `perform`."""
    with pytest.raises(OutsideHandler, match=r"named was called.* Context.*kit\.perform") as caught:
        named("a")
    assert isinstance(caught.value, HeadraceError)
    assert isinstance(caught.value, LookupError)
    with pytest.raises(OutsideHandler, match=r"kit\.perform"):
        await named_later("a")
    with pytest.raises(OutsideHandler, match="outside a handler"):
        current_job()


async def test_f13_inside_a_handler_the_context_is_that_of_its_job(app: App[None]) -> None:
    """F13: a handler may call another task as the function that it is."""

    @app.task(name="inner")
    def inner(context: Context, word: str) -> str:
        return f"{word} {context.task}"

    @app.task(name="outer")
    async def outer() -> str:
        return inner("in")

    async with running(Worker(app)):
        assert await outer.enqueue_and_wait() == "in outer"
