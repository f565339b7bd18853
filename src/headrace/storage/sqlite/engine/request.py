"""One call on its way through the thread that works on the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from headrace.errors import ReplyLost, StorageError, StorageUnavailable
from headrace.storage.sqlite.engine.step import Clock, Step

T = TypeVar("T")
Work = Callable[[Step], T]

LOOK_S = 1.0
"""How often who waits in a thread looks whether the other one still serves."""


def nothing() -> None:
    """Tell nobody."""


class Request(Generic[T]):
    """What to do, and where the answer goes: to an event loop, to a thread, or nowhere.

    Args:
        work: it may raise `StorageError`; then its own changes are undone.
        clock: the storage's.
        is_durable: False: a power loss may undo it.
        grows: whether it adds jobs, so that a full disk is an error of its own.

    Attributes:
        loop: that of who awaits ``future``.
        future: resolved there.
        done: called when it is answered.
        won: what the work returned.
        error: why it was not done.
    """

    __slots__ = (
        "_answers",
        "_has_ended",
        "_is_answered",
        "clock",
        "done",
        "error",
        "future",
        "grows",
        "is_durable",
        "loop",
        "won",
        "work",
    )

    def __init__(self, work: Work[T], clock: Clock, *, is_durable: bool, grows: bool) -> None:
        self.work: Work[T] = work
        self.clock: Clock = clock
        self.is_durable: bool = is_durable
        self.grows: bool = grows
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[T] | None = None
        self.done: Callable[[], object] = nothing
        self.won: Any = None
        self.error: StorageError | None = None
        self._has_ended: Callable[[], bool] | None = None
        self._answers: SimpleQueue[None] | None = None
        self._is_answered = False

    def is_for(self, has_ended: Callable[[], bool]) -> None:
        """Say how to see that nobody answers any more, for who will `wait` in another thread."""
        self._has_ended = has_ended
        self._answers = SimpleQueue()

    def answer(self) -> None:
        """Wake the thread that waits, if one does."""
        self._is_answered = True
        if self._answers is not None:
            self._answers.put(None)

    def resolve(self) -> None:
        """Hand the answer over, in the caller's loop."""
        future = self.future
        if future is None or future.done():
            return
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(self.won)

    def wait(self, timeout_s: float = inf) -> T:
        """Block until it is answered, and return what the work returned.

        Raises:
            ReplyLost: it took longer than ``timeout_s``.
            StorageUnavailable: the storage was closed before it came to it.
            StorageError: what the work raised, or the database.
        """
        assert self._answers is not None and self._has_ended is not None  # noqa: S101, PT018
        give_up_at = time.monotonic() + timeout_s
        while not self._is_answered:
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                raise ReplyLost(f"SQLite: no answer in {timeout_s:g} s")
            if self._has_ended() and not self._is_answered:
                raise StorageUnavailable("SQLite: the storage was closed in another thread")
            with suppress(Empty):
                self._answers.get(timeout=min(left_s, LOOK_S))
        if self.error is not None:
            raise self.error
        done: T = self.won
        return done


def answer(batch: Sequence[Request[Any]]) -> None:
    """Answer requests, those of one loop together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request[Any]]] = {}
    for request in batch:
        request.done()
        if request.loop is None:
            request.answer()
        else:
            by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        try:
            loop.call_soon_threadsafe(partial(_resolve, requests))
        except RuntimeError:
            continue  # the loop was closed meanwhile


def _resolve(requests: Sequence[Request[Any]]) -> None:
    for request in requests:
        request.resolve()
