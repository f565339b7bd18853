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


def _silent(_error: StorageError, _pause_s: float) -> None:
    """Do nothing."""


async def repeat_until_answered(
    call: Callable[[], Awaitable[T]],
    *,
    is_over: Callable[[], bool] = _never,
    on_failure: Callable[[StorageError], None] = _unseen,
    on_pause: Callable[[StorageError, float], None] = _silent,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    for_s: float = math.inf,
) -> T | None:
    """Call until there is an answer, with growing pauses.

    Args:
        call: makes it; what it repeats must be harmless, or carry a number.
        is_over: asked before each call.
        on_failure: told of each call that was not answered; what it raises ends this.
        on_pause: told of the error and the length of each pause that follows one.
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
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                raise
            pause_s = min(backoff.next_s(), left_s)
            on_pause(error, pause_s)
        await pause(pause_s)
    return None
