"""Wake-up tokens inside one process: at most one a lane, taken by one waiter."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Iterable

from headrace.storage.sqlite.engine.step import QueueName

Sleeper = tuple[asyncio.AbstractEventLoop, "asyncio.Future[bool]"]
LaneName = tuple[QueueName, str]


class Tokens:
    """The tokens of a process; called from the writer's thread and from event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: set[LaneName] = set()
        self._sleepers: defaultdict[LaneName, deque[Sleeper]] = defaultdict(deque)
        self._lanes: defaultdict[QueueName, set[str]] = defaultdict(set)

    def know(self, queue: QueueName, lane: str) -> None:
        """Note that somebody here consumes a lane."""
        with self._lock:
            self._lanes[queue].add(lane)

    def leave(self, queue: QueueName, lanes: Iterable[str] | None) -> None:
        """Leave a token in some lanes of a queue, None: in all that are consumed here."""
        with self._lock:
            for lane in self._lanes.get(queue, ()) if lanes is None else lanes:
                self._leave((queue, lane))

    def _leave(self, lane: LaneName) -> None:
        """Give a token to who has waited longest; else leave it, unless one is there."""
        sleepers = self._sleepers.get(lane)
        while sleepers:
            loop, future = sleepers.popleft()
            try:
                loop.call_soon_threadsafe(self._give, lane, future)
            except RuntimeError:
                continue  # its loop was closed
            return
        self._left.add(lane)

    def _give(self, lane: LaneName, future: asyncio.Future[bool]) -> None:
        if future.done():
            self.leave(lane[0], [lane[1]])  # it has just given up
        else:
            future.set_result(True)

    async def take(
        self, queue: QueueName, lane: str, future: asyncio.Future[bool], *, timeout_s: float
    ) -> bool:
        """Wait for a token, or for ``future`` to be ended by somebody else."""
        name = (queue, lane)
        sleeper = (asyncio.get_running_loop(), future)
        with self._lock:
            if name in self._left:
                self._left.discard(name)
                return True
            self._sleepers[name].append(sleeper)
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            self._forget(name, sleeper)
            if not future.done():
                future.set_result(False)
        return future.result()

    def _forget(self, lane: LaneName, sleeper: Sleeper) -> None:
        with self._lock:
            sleepers = self._sleepers.get(lane)
            if sleepers is not None and sleeper in sleepers:
                sleepers.remove(sleeper)
            if not sleepers:
                self._sleepers.pop(lane, None)
