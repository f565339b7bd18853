"""Repeats a call while the storage is away: the one place that tells an outage from an error."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.backoff import Backoff
from headrace.errors import ReplyLost, StorageError, StorageUnavailable

T = TypeVar("T")


def _never() -> bool:
    return False


def _unseen(_error: StorageError) -> None:
    """Do nothing."""


async def repeat_until_answered(
    call: Callable[[], Awaitable[T]],
    *,
    is_over: Callable[[], bool] = _never,
    on_failure: Callable[[StorageError], None] = _unseen,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    for_s: float = math.inf,
) -> T | None:
    """Call until there is an answer, with growing pauses.

    Args:
        call: makes it; what it repeats must be harmless, or carry a number.
        is_over: asked before each call.
        on_failure: told of each call that was not answered; what it raises ends this.
        pause: waits for so many seconds, or less.
        for_s: how long to go on before the last error is raised.

    Returns:
        The answer, None if it was over before.

    Raises:
        StorageError: it was refused, or was not answered for so long.
    """
    backoff = Backoff()
    give_up_at = time.monotonic() + for_s
    while not is_over():
        try:
            return await call()
        except (StorageUnavailable, ReplyLost) as error:
            on_failure(error)
            pause_s = backoff.next_s()
            if time.monotonic() + pause_s > give_up_at:
                raise
        await pause(pause_s)
    return None
