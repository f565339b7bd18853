"""Wake-up tokens inside one process: at most one a queue, taken by one waiter."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque

from headrace.storage.sqlite.step import QueueName

Sleeper = tuple[asyncio.AbstractEventLoop, "asyncio.Future[bool]"]


class Tokens:
    """The tokens of a process; called from the writer's thread and from event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: set[QueueName] = set()
        self._sleepers: defaultdict[QueueName, deque[Sleeper]] = defaultdict(deque)

    def leave(self, queue: QueueName) -> None:
        """Give a token to who has waited longest; else leave it, unless one is there."""
        with self._lock:
            sleepers = self._sleepers.get(queue)
            while sleepers:
                loop, future = sleepers.popleft()
                try:
                    loop.call_soon_threadsafe(self._give, queue, future)
                except RuntimeError:
                    continue  # its loop was closed
                return
            self._left.add(queue)

    def _give(self, queue: QueueName, future: asyncio.Future[bool]) -> None:
        if future.done():
            self.leave(queue)  # it has just given up
        else:
            future.set_result(True)

    async def take(
        self, queue: QueueName, future: asyncio.Future[bool], *, timeout_s: float
    ) -> bool:
        """Wait for a token, or for ``future`` to be ended by somebody else."""
        sleeper = (asyncio.get_running_loop(), future)
        with self._lock:
            if queue in self._left:
                self._left.discard(queue)
                return True
            self._sleepers[queue].append(sleeper)
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            self._forget(queue, sleeper)
            if not future.done():
                future.set_result(False)
        return future.result()

    def _forget(self, queue: QueueName, sleeper: Sleeper) -> None:
        with self._lock:
            sleepers = self._sleepers.get(queue)
            if sleepers is not None and sleeper in sleepers:
                sleepers.remove(sleeper)
            if not sleepers:
                self._sleepers.pop(queue, None)
