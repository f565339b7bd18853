"""What is called around every handler: the type, and how several become one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from headrace.context import Context

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Context[Any], CallNext], Awaitable[Any]]
"""``async def middleware(context, call_next)``: awaits ``call_next()``, returns its result."""


def wrap(middleware: Sequence[Middleware], context: Context[Any], handler: CallNext) -> CallNext:
    """Return ``handler`` with middleware around it, the first outermost."""
    call = handler
    for layer in reversed(middleware):
        call = partial(layer, context, call)
    return call
