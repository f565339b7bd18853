"""Runs plain functions in threads.

A thread can't be stopped, only asked. An attempt whose function does not return soon is given up:
its outcome is recorded, and the thread is counted as leaked until it ends by itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import thread as pool
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import anyio

from headrace.forks import on_fork

ASK_S = 0.25
"""How long a function may take to return once `Context.cancelled` is true."""


# At its end a process waits for the threads of all pools. In the fork of one of them that thread
# would wait for itself, which is an error, and make the exit code of a child 1.
_waited_for: MutableMapping[Any, Any] = pool._threads_queues  # type: ignore[assignment]  # noqa: SLF001
on_fork(in_child=_waited_for.clear)


class Threads:
    """The threads of a worker; one is started when none is idle.

    Args:
        limit: how many run at once, leaked ones included. More functions than that wait.
    """

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self._pool = ThreadPoolExecutor(limit, thread_name_prefix="headrace-handler")

    async def run(
        self,
        function: Callable[[], Any],
        *,
        on_leak: Callable[[], None],
        on_end: Callable[[], None],
    ) -> Any:
        """Call ``function`` in a thread, with this task's context variables, and return its result.

        When this is cancelled, a function that has not begun never does. One that has may return
        soon, and then its result is returned; else it goes on, ``on_leak`` is called, ``on_end`` in
        the loop once it has ended, and the cancellation goes on.
        """
        future = self._pool.submit(copy_context().run, _call, function)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # Cancelling the wrapper has cancelled what was not running yet.
            if future.cancelled():
                raise
            loop = asyncio.get_running_loop()
            ended = asyncio.Event()
            future.add_done_callback(partial(_call_in_loop, loop, ended.set))
            try:
                with anyio.move_on_after(ASK_S):
                    await ended.wait()
            finally:
                if not future.done():
                    on_leak()
                    future.add_done_callback(partial(_call_in_loop, loop, on_end))
            if future.done():
                return future.result()
            raise

    def close(self) -> None:
        """Start no more; idle threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _call(function: Callable[[], Any]) -> Any:
    """Call it as a coroutine would: a future can't hold `StopIteration`, and would never end."""
    pid = os.getpid()
    try:
        return function()
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error
    finally:
        if os.getpid() != pid:
            os._exit(0)  # it forked and returned in both processes


def _call_in_loop(
    loop: asyncio.AbstractEventLoop, on_end: Callable[[], None], _done: Future[Any]
) -> None:
    with suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(on_end)
