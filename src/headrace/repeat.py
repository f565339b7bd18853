"""Repeats a call while the storage is away: the one place that tells an outage from an error."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from headrace.backoff import Backoff
from headrace.errors import ReplyLost, StorageError, StorageUnavailable

T = TypeVar("T")

NOT_ANSWERED = (StorageUnavailable, ReplyLost)
"""What a storage raises that is away, of which nobody knows for how long."""


def _never() -> bool:
    return False


def _unseen(_error: StorageError) -> None:
    """Do nothing."""


def _silent(_error: StorageError, _pause_s: float) -> None:
    """Do nothing."""


class Tries:
    """What the tries of one call have in common, however it waits between two of them.

    Args:
        on_failure: told of each call that was not answered; what it raises ends this.
        on_pause: told of the error and the length of each pause that follows one.
        for_s: how long to go on before the last error is raised.
    """

    def __init__(
        self,
        *,
        on_failure: Callable[[StorageError], None] = _unseen,
        on_pause: Callable[[StorageError, float], None] = _silent,
        for_s: float = math.inf,
    ) -> None:
        self._on_failure = on_failure
        self._on_pause = on_pause
        self._give_up_at = time.monotonic() + for_s
        self._backoff = Backoff()

    def pause_s(self, error: StorageError) -> float:
        """Note that a call was not answered, and return how long to wait before the next.

        Raises:
            StorageError: that error, once it has gone on for so long.
        """
        self._on_failure(error)
        left_s = self._give_up_at - time.monotonic()
        if left_s <= 0:
            raise error
        pause_s = min(self._backoff.next_s(), left_s)
        self._on_pause(error, pause_s)
        return pause_s


class Doubt:
    """Once an answer was lost, what was asked for may be done, whatever comes after.

    As a context manager it raises the lost answer in place of a later error.
    """

    def __init__(self) -> None:
        self._lost: ReplyLost | None = None

    def note(self, error: StorageError) -> None:
        """Note the error of one try."""
        if isinstance(error, ReplyLost):
            self._lost = error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._lost is None or isinstance(error, ReplyLost):
            return
        if isinstance(error, StorageError):
            raise self._lost from error


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
    tries = Tries(on_failure=on_failure, on_pause=on_pause, for_s=for_s)
    while not is_over():
        try:
            return await call()
        except NOT_ANSWERED as error:
            pause_s = tries.pause_s(error)
        await pause(pause_s)
    return None


def repeat_blocking(
    call: Callable[[], T],
    *,
    on_failure: Callable[[StorageError], None] = _unseen,
    on_pause: Callable[[StorageError, float], None] = _silent,
    for_s: float = math.inf,
) -> T:
    """Call until there is an answer, as `repeat_until_answered` does, and block meanwhile."""
    started_at = time.monotonic()
    try:
        return call()
    except NOT_ANSWERED as error:
        left_s = for_s - (time.monotonic() - started_at)
        tries = Tries(on_failure=on_failure, on_pause=on_pause, for_s=left_s)
        pause_s = tries.pause_s(error)
    while True:
        time.sleep(pause_s)
        try:
            return call()
        except NOT_ANSWERED as error:
            pause_s = tries.pause_s(error)
