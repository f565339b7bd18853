"""Claims the jobs of one lane for one session: the only place that waits for work.

Free slots, then a claim, then attempts; when there was nothing, a wake-up token, the next due time
or two seconds, whichever is first, and again. A token is only a hint: it may be lost, doubled or
stolen.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

import anyio

from headrace.backoff import Backoff
from headrace.errors import ReplyLost, StorageError, StorageUnavailable
from headrace.events import StorageLost, StorageRecovered
from headrace.storage.base import Waiter
from headrace.storage.values import BATCH_LIMIT, ClaimReply
from headrace.worker.session import Session

BLOCK_S = 2.0
REFUSED_PAUSE_S = 1.0
UNBLOCK_S = 1.0


class Fetcher:
    """The consumer of one session.

    Args:
        session: whose jobs.
        lane: which of them.
        waiter: blocks on the lane's wake-up token.
    """

    def __init__(self, session: Session, lane: str, waiter: Waiter) -> None:
        self._session = session
        self._lane = lane
        self._slots = session.lanes[lane]
        self._waiter = waiter
        self._nudge = asyncio.Event()
        self._blocked: asyncio.Task[bool] | None = None
        self._is_refused = False
        self._is_closing = False
        self._asking = anyio.CancelScope()
        self.is_consuming: bool = False
        self.empty_at: float = -math.inf
        session.on_change(self._nudge.set)
        self._slots.on_grant(session.queue, self._nudge.set)

    def close(self) -> None:
        """Claim no more; `run` returns soon, whether or not the storage answers."""
        self._is_closing = True
        self._nudge.set()
        asyncio.get_running_loop().call_later(UNBLOCK_S, self._asking.cancel)

    def look(self) -> None:
        """End a pending sleep: claim now."""
        self._nudge.set()

    async def run(self) -> None:
        """Claim until the session is closed or gone."""
        session = self._session
        slots = self._slots
        try:
            while not self._is_over:
                self._nudge.clear()
                if session.settler.is_backed_up:
                    await self._sleep(REFUSED_PAUSE_S)
                    continue
                has_token = self._take_token()
                count = slots.take(session.queue)
                if count:
                    await self._fill(count)
                elif has_token:
                    await self._claim(0)
                else:
                    await self._sleep(None)
        finally:
            self.is_consuming = False
            slots.give_back(session.queue, 0, is_hungry=False)
            with anyio.CancelScope(shield=True):
                await self._unblock()

    @property
    def _is_over(self) -> bool:
        return self._is_closing or self._session.is_gone.is_set()

    async def _fill(self, count: int) -> None:
        """Claim for ``count`` slots that were taken, and wait if there was nothing."""
        session = self._session
        # Half the slots a call: the worker runs one half while the server hands out the other,
        # which drains a tenth faster.
        asked = min(count, BATCH_LIMIT, (self._slots.total + 1) // 2)
        got = 0
        is_hungry = False
        asked_at = time.monotonic()
        try:
            reply = await self._claim(asked)
            if reply is None:
                return
            for job in reply.jobs:
                session.start(job, self._lane)
            got = len(reply.jobs)
            is_hungry = reply.has_more or got == asked
            if got < asked:
                await asyncio.sleep(0)  # the handlers of an idle worker start before the rest here
        finally:
            self._slots.give_back(session.queue, count - got, is_hungry=is_hungry)
        if got < asked and not reply.has_more:
            if not got:
                self.empty_at = asked_at
            due_s = BLOCK_S if reply.next_due_ms is None else reply.next_due_ms / 1000
            self._block()
            await self._sleep(min(due_s, BLOCK_S) if not self._is_refused else REFUSED_PAUSE_S)

    async def _claim(self, count: int) -> ClaimReply | None:
        """Claim, however long the storage is away; None: the session is over.

        Repetitions carry the same number and nonce, so what a lost answer claimed comes again.
        """
        session = self._session
        slots = {self._lane: count}
        async with session.claims as call:
            nonce = session.claims.nonce
            reply = await self._repeat(
                lambda: session.storage.claim(session.queue, call=call, nonce=nonce, slots=slots)
            )
        if reply is not None and reply.is_gone:
            session.condemned()
            return None
        return reply

    async def _repeat(self, operation: Callable[[], Awaitable[ClaimReply]]) -> ClaimReply | None:
        backoff = Backoff()
        lost_at: float | None = None
        loop = asyncio.get_running_loop()
        while not self._is_over:
            try:
                with anyio.CancelScope() as self._asking:
                    reply = await operation()
                if self._asking.cancelled_caught:
                    break  # what it may have claimed is handed back with the session
            except (StorageUnavailable, ReplyLost) as error:
                if lost_at is None:
                    lost_at = loop.time()
                    self.is_consuming = False
                    self._session.emit(StorageLost(queue=self._session.queue, error=str(error)))
                await self._sleep(backoff.next_s())
                self._nudge.clear()
            else:
                self.is_consuming = True
                if lost_at is not None:
                    after_ms = round((loop.time() - lost_at) * 1000)
                    self._session.emit(
                        StorageRecovered(queue=self._session.queue, after_ms=after_ms)
                    )
                return reply
        return None

    def _block(self) -> None:
        """Have one blocking call on its way; it ends by itself, or with its connection."""
        if self._blocked is None:
            self._blocked = asyncio.create_task(self._waiter.wait(BLOCK_S))
            self._blocked.add_done_callback(lambda _task: self._nudge.set())

    def _take_token(self) -> bool:
        """Whether a blocking call has ended with a token."""
        if self._blocked is None or not self._blocked.done():
            return False
        blocked, self._blocked = self._blocked, None
        try:
            self._is_refused = False
            return blocked.result()
        except StorageError:
            # Memory is full, or the connection is lost: look once a second instead.
            self._is_refused = True
            return False

    async def _sleep(self, timeout_s: float | None) -> None:
        """Wait for a nudge: a grant, a token, the end of a block, or the session's end."""
        if timeout_s is None:
            await self._nudge.wait()
            return
        timer = asyncio.get_running_loop().call_later(timeout_s, self._nudge.set)
        try:
            await self._nudge.wait()
        finally:
            timer.cancel()

    async def _unblock(self) -> None:
        """End the blocking call and its connection."""
        blocked, self._blocked = self._blocked, None
        if blocked is not None and not blocked.done():
            with anyio.move_on_after(UNBLOCK_S):
                await self._waiter.interrupt()
                await asyncio.wait([blocked])
            # A silent server must not hold the worker up: a token that it still moves is only late.
            blocked.cancel()
            await asyncio.wait([blocked])
        if blocked is not None and not blocked.cancelled():
            blocked.exception()
        await self._waiter.aclose()
