"""What waits: for a wake-up token, for the ends of jobs, and a thread for its answers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue

from headrace.errors import StorageUnavailable
from headrace.storage.incarnations import BeatReply, ClaimReply, SlotsAsked
from headrace.storage.sqlite.engine.engine import Engine
from headrace.storage.sqlite.engine.engines import detach_now
from headrace.storage.sqlite.engine.step import Clock, QueueName, Step
from headrace.storage.sqlite.verbs import incarnations
from headrace.storage.values import CallId, End

LONGEST_BLOCK_S = 2.0


class SqliteWaiter:
    """Waits for a token of one lane.

    Args:
        engine: of the storage.
        queue: the queue's name.
        lane: which of its lanes.
        clock: the storage's.
        claim: the storage's own, for this queue.
    """

    def __init__(
        self,
        engine: Engine,
        queue: QueueName,
        lane: str,
        clock: Clock,
        *,
        claim: Callable[..., Awaitable[ClaimReply]],
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._lane = lane
        self._clock = clock
        self._claim = claim
        self._pending: asyncio.Future[bool] | None = None
        self._has_ended = asyncio.Event()
        self._is_interrupted = False
        engine.tokens.know(queue, lane)

    async def wait(self, timeout_s: float) -> bool:
        """Wait for at most ``timeout_s`` (0.01 to 2); whether a token came.

        Raises:
            StorageError: the database can't be used.
        """
        if self._is_interrupted:
            return False
        pending = self._pending = asyncio.get_running_loop().create_future()
        self._has_ended.clear()
        try:
            await self._engine.listen(self._clock)
            block_s = min(max(timeout_s, 0.01), LONGEST_BLOCK_S)
            return await self._engine.tokens.take(
                self._queue, self._lane, pending, timeout_s=block_s
            )
        finally:
            self._pending = None
            self._has_ended.set()

    async def claim(self, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        """Claim as soon as the pending `wait` ends, else now.

        Raises:
            StorageError: the database can't be used, or the wait was interrupted.
        """
        if self._pending is not None:
            await self._has_ended.wait()
        if self._is_interrupted:
            raise StorageUnavailable("the waiter was interrupted")
        return await self._claim(call=call, nonce=nonce, slots=slots)

    async def interrupt(self) -> None:
        """End a pending `wait`, and every later one."""
        self._is_interrupted = True
        if self._pending is not None and not self._pending.done():
            self._pending.set_result(False)

    async def aclose(self) -> None:
        """Nothing is open."""


class SqliteChannel:
    """A channel of this process; its name begins with the process's own.

    Args:
        engine: of the storage.
        clock: the storage's.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.name: str = f"{engine.name}.{secrets.token_hex(8)}"
        self._engine = engine
        self._clock = clock
        self._ends: asyncio.Queue[End | None] = asyncio.Queue()
        self._is_open = False

    async def receive(self) -> End | None:
        """Wait for the next end; None: just subscribed, so read what may have been missed.

        Raises:
            StorageError: the database can't be used, or the channel was closed.
        """
        if not self._is_open:
            await self._engine.listen(self._clock)
            loop = asyncio.get_running_loop()
            ends = self._ends = asyncio.Queue()

            def deliver(end: End) -> None:
                try:
                    loop.call_soon_threadsafe(ends.put_nowait, end)
                except RuntimeError:
                    self._engine.unsubscribe(self.name)  # the loop was closed

            self._engine.subscribe(self.name, deliver)
            self._is_open = True
            return None
        end = await self._ends.get()
        if end is None:
            raise StorageUnavailable("the channel was closed")
        return end

    async def aclose(self) -> None:
        """Hear no more."""
        self._engine.unsubscribe(self.name)
        if self._is_open:
            self._is_open = False
            self._ends.put_nowait(None)


class SqliteInbox:
    """The same channel for a thread that blocks.

    Args:
        engine: of the storage.
        clock: the storage's.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.name: str = f"{engine.name}.{secrets.token_hex(8)}"
        self._engine = engine
        self._clock = clock
        self._ends: SimpleQueue[End] = SimpleQueue()
        self._is_open = False

    def receive(self, timeout_s: float) -> End | None:
        """Block until the next end; None: nothing came in time, or it has just subscribed.

        Raises:
            StorageError: the database can't be used, or is that of a process which forked this one.
        """
        if self._engine.is_inherited:
            raise StorageUnavailable("the inbox was opened before a fork: open one of this process")
        if not self._is_open:
            self._engine.listen_now(self._clock)
            self._engine.subscribe(self.name, self._ends.put)
            self._is_open = True
            return None
        try:
            return self._ends.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None

    def close(self) -> None:
        """Hear no more."""
        self._engine.unsubscribe(self.name)
        self._is_open = False


class SqliteBeater:
    """Beats from a thread.

    Args:
        engine: attached for it.
        tenant: whose queues.
        clock: the storage's.
        timeout_s: how long a call may take.
    """

    def __init__(self, engine: Engine, tenant: str, clock: Clock, *, timeout_s: float) -> None:
        self._engine = engine
        self._tenant = tenant
        self._clock = clock
        self._timeout_s = timeout_s
        self._is_closed = False

    def beat(self, queue: str, incarnation: str) -> BeatReply:
        """Say that the incarnation lives.

        Raises:
            ReplyLost: the answer took too long.
        """
        name = (self._tenant, queue)

        def beat(step: Step) -> BeatReply:
            return incarnations.beat(step, name, incarnation)

        return self._engine.writer.call(beat, self._clock, timeout_s=self._timeout_s)

    def close(self) -> None:
        """Give the engine up."""
        if not self._is_closed:
            self._is_closed = True
            detach_now(self._engine)
