"""The one way in which tests wait for something that gives no event."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

import anyio

T = TypeVar("T")

POLL_SECONDS = 0.005


@overload
async def until(
    predicate: Callable[[], Awaitable[T]], *, within: float = ..., what: str = ...
) -> T: ...
@overload
async def until(predicate: Callable[[], T], *, within: float = ..., what: str = ...) -> T: ...
async def until(predicate: Callable[[], object], *, within: float = 5.0, what: str = "") -> object:
    """Call the predicate, plain or async, every 5 ms until its value is true, and return it.

    Raises:
        AssertionError: it was still false after ``within`` seconds; the message has the last value.
    """
    deadline = time.monotonic() + within
    while True:
        value = predicate()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what or 'the condition'}: {value!r} after {within:g} s")
        await anyio.sleep(POLL_SECONDS)
